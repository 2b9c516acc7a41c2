"""A submission: judged against the site, then a record, or Slurm's refusal."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from accounting.ids import JobId
from broker.decide.estimating import cost_of
from broker.decide.possible import must_start_somewhere
from broker.decide.reading import reading_of
from broker.decide.reserved import must_admit, possible_here, within_reservation
from broker.decide.rules import Decision, QuoteFor
from broker.model import events as ev
from broker.model.commands import StartEstimate, Submit, TestSubmit
from broker.model.errors import BadOption, OverLimit, Refused
from broker.model.evolve import evolved, finish
from broker.model.job import ArrayPlace, ExitCode, HetPlace, Job, JobState, Owner
from broker.model.site import Site
from broker.model.spec import UNLIMITED, DependencyKind, Limit, TaskSpec
from broker.model.tally import party_of, used_by
from broker.schedule import priority
from broker.schedule.gates import gate
from broker.schedule.limits import Bound, asking, first_broken
from broker.schedule.sums import Known, known_of
from broker.world import World
from sbatch_shim.grammar.hostlist import expand, sorted_names

OVER_LIMIT = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
BAD_ARRAY = "Invalid job array specification"
BAD_NODE = "Invalid node name specified"
BAD_SAMPLING = "Invalid accounting frequency requested"
NO_IDS = "Resource temporarily unavailable"
BAD_DEPENDENCY = "Job dependency problem"
NEEDS_A_KNOWN_JOB = frozenset({DependencyKind.AFTEROK, DependencyKind.AFTERNOTOK})


def decide_submit(world: World, asked: Submit, now: int, *, quote: QuoteFor) -> Decision:
    """The job's record and its id. Raises Refused or Denied with Slurm's text (25.11).

    Where the site keeps refused jobs, the answer to what no node could run is the refusal.
    """
    if asked.more and any(spec.array for spec in (asked.spec, *asked.more)):
        raise BadOption("array", "", BAD_ARRAY)
    record = _record(world, asked.spec, asked.owner, now=now)
    if asked.more:
        return _heterogeneous(world, asked, record, quote=quote)
    try:
        _judged(world, record, quote)
    except BadOption as refusal:
        if not world.site.keep_refused_jobs:
            raise
        return Decision(_kept(record), refusal)
    return Decision([_queued(_told(world, record, now))], record.id)


def _told(world: World, record: Job, now: int) -> Job:
    """With the reason why it waits, where that is known before anybody looks for room."""
    shut = reading_of(world, record.spec, record.owner).shut
    if shut is None or record.after or record.spec.reservation or gate(record, now):
        return record
    return finish(record, reason=shut)


def _judged(world: World, record: Job, quote: QuoteFor) -> None:
    """Of a held job nodes are looked for when it is released (22.05). Raises BadOption.

    What declared nodes could run, they still can.
    """
    if record.hold is not None and record.spec.resources.max_nodes != 0:
        return
    known = reading_of(world, record.spec, record.owner)
    if known.possible:
        return
    possible_here(world, record, quote)
    elastic = any(partition.elastic for partition in known.partitions)
    known.possible = not elastic and record.spec.reservation is None


def _heterogeneous(world: World, asked: Submit, first: Job, *, quote: QuoteFor) -> Decision:
    """A record for each component, with ids one after the other; all of them or none."""
    records = [first]
    for spec in asked.more:
        now = first.submitted
        records.append(_record(world, spec, asked.owner, now=now, beside=records))
    facts = []
    for offset, record in enumerate(_apart(records)):
        job_id = JobId(first.id + offset)
        place = HetPlace(base=first.id, offset=offset, size=len(records))
        value = priority.initial(job_id, held=record.spec.hold, asked=record.spec.priority)
        spec = _of_group(record.spec, first.id, offset)
        component = replace(record, id=job_id, het=place, priority=value, spec=spec)
        _judged(world, component, quote)
        facts.append(_queued(component))
    return Decision(facts, first.id)


def _of_group(spec: TaskSpec, base: JobId, offset: int) -> TaskSpec:
    """The tasks of a managed group are named by their places until they have ids."""
    if spec.managed is None:
        return spec
    outlives = tuple(base + place for place in spec.managed.outlives)
    root = base if offset else None
    managed = spec.managed.model_copy(update={"outlives": outlives, "root": root})
    return spec.model_copy(update={"managed": managed})


def _apart(records: list[Job]) -> list[Job]:
    """No component gets a node that another one names. Raises BadOption (22.05)."""
    named = [set(record.spec.resources.nodelist) for record in records]
    apart = []
    for number, record in enumerate(records):
        asked = record.spec.resources
        others = set().union(*named[:number], *named[number + 1 :])
        if others & named[number]:
            raise BadOption("nodelist", ",".join(sorted(others & named[number])), BAD_NODE)
        exclude = tuple(sorted_names(others | set(asked.exclude)))
        resources = asked.model_copy(update={"exclude": exclude})
        spec = record.spec.model_copy(update={"resources": resources})
        apart.append(replace(record, spec=spec) if others else record)
    return apart


def _queued(record: Job) -> ev.Queued:
    return ev.Queued(job=record.id, at=record.submitted, actor=record.owner.uid, record=record)


def _kept(record: Job) -> list[ev.Event]:
    """Facts of a job that no node could run."""
    ended = ev.Ended(
        job=record.id,
        at=record.submitted,
        state=JobState.FAILED,
        reason="BadConstraints",
        exit=ExitCode(0, 1),
    )
    return [_queued(record), ended]


def decide_test(world: World, asked: TestSubmit, now: int, *, quote: QuoteFor) -> Decision:
    """When and where the job would start, for `--test-only`."""
    record = _record(world, asked.spec, asked.owner, now=now)
    site, bound = within_reservation(world, record)
    partition, nodes = must_start_somewhere(site, bound, quote)
    cost = cost_of(record, partition, quote, site=site)
    estimate = StartEstimate(
        job=record.id,
        start=max(now, record.spec.begin or now),
        cpus=_cpus_on(site, record, frozenset(expand(nodes))),
        nodes=nodes,
        partition=partition.name,
        micro_usd=cost.now,
        most_micro_usd=cost.most,
        old_price=cost.old_price,
    )
    return Decision(reply=estimate)


def _cpus_on(site: Site, record: Job, names: AbstractSet[str]) -> int:
    """Cpus that it takes there: of whole nodes all, else one of each at least (22.05)."""
    asked = record.spec.resources
    if asked.exclusive:
        held = sum(node.whole.cpu for node in site.nodes if node.name in names)
        return held or record.want.cpu
    return max(record.want.cpu, len(names) * (asked.min_cpus_per_node or 1))


def _record(
    world: World, spec: TaskSpec, owner: Owner, *, now: int, beside: Sequence[Job] = ()
) -> Job:
    """As it would come in, beside others of the same submission."""
    site = world.site
    if len(world.jobs) >= site.max_job_count:
        raise Refused("Job limit reached", hint=f"MaxJobCount is {site.max_job_count}")
    if world.next_job_id > site.max_job_id:
        raise Refused(NO_IDS, hint=f"no job ids are left up to MaxJobId, {site.max_job_id}")
    known = reading_of(world, spec, owner)
    _must_know_dependencies(world, spec)
    limit = known.record.time_limit
    _must_end_in_time(spec, limit, now)
    job_id = JobId(world.next_job_id)
    record = evolved(
        known.record,
        id=job_id,
        submitted=now,
        priority=priority.initial(job_id, held=spec.hold, asked=spec.priority),
        array=_array(job_id, spec, site),
        eligible=None if spec.hold or spec.after else max(now, spec.begin or now),
    )
    must_admit(world, record)
    if not known.sampled:
        raise BadOption("acctg-freq", spec.option("acctg-freq") or "", BAD_SAMPLING)
    _must_be_within_limits(world, record, known.bounds, beside=beside)
    return record


def _must_be_within_limits(
    world: World, record: Job, bounds: tuple[Bound, ...], *, beside: Sequence[Job]
) -> None:
    if bounds:
        known = known_of(world.site, world.tally, world.charges, now=record.submitted)
        for other in beside:
            known.add(party_of(other), used_by(other))
        must_be_within(world.site, record, bounds, known=known)


def must_be_within(site: Site, record: Job, bounds: Iterable[Bound], *, known: Known) -> None:
    """Raises OverLimit for the first of the limits that the job breaks; UsageFactorSafe counts
    only once it is to start (22.05)."""
    tasks = len(record.array.waiting) if record.array else 1
    ask = replace(asking(site, record, record.partitions[0], tasks=tasks), factor=1.0)
    broken = first_broken(bounds, known, ask=ask)
    if broken is not None:
        raise OverLimit(broken.reason, str(broken.asked), str(broken.limit), message=OVER_LIMIT)


def _must_know_dependencies(world: World, spec: TaskSpec) -> None:
    """`afterok` and `afternotok` of an id the controller does not hold are refused (25.11)."""
    for wish in spec.after:
        known = wish.job is None or JobId(wish.job) in world.jobs
        known = known or bool(world.elements.get(JobId(wish.job or 0)))
        future = wish.job is not None and wish.job == world.next_job_id
        if future or wish.job == 0 or (not known and wish.kind in NEEDS_A_KNOWN_JOB):
            raise BadOption("dependency", f"{wish.kind.value}:{wish.job}", BAD_DEPENDENCY)


def _must_end_in_time(spec: TaskSpec, limit: Limit, now: int) -> None:
    if spec.deadline is None:
        return
    shortest = spec.time_min or (0 if limit == UNLIMITED else int(limit))
    if spec.deadline <= now or now + shortest > spec.deadline:
        raise OverLimit(
            "deadline",
            str(spec.deadline),
            str(now + shortest),
            message="Requested time limit is invalid (missing or exceeds some limit)",
        )


def _array(job_id: JobId, spec: TaskSpec, site: Site) -> ArrayPlace | None:
    if spec.array is None:
        return None
    tasks = spec.array.tasks
    if not tasks or tasks[-1] >= site.max_array_size:
        raise BadOption("array", str(tasks[-1:]), BAD_ARRAY)
    return ArrayPlace(
        base=job_id,
        task=None,
        waiting=tasks,
        count=len(tasks),
        first=tasks[0],
        last=tasks[-1],
        step=spec.array.step,
        limit=spec.array.limit or None,
    )


def fresh_ids(world: World) -> Iterator[JobId]:
    """Ids that are free, as long as the facts are applied in order."""
    number = world.next_job_id
    while True:
        yield JobId(number)
        number += 1
