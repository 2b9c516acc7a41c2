"""A submission: judged against the site, then a record, or Slurm's refusal."""

from collections.abc import Iterator
from dataclasses import replace

from accounting.assoc import InvalidAccount, InvalidQos, Standing
from accounting.ids import JobId
from accounting.tres import Tres
from broker.decide.possible import must_know_features, must_start_somewhere
from broker.decide.reserved import must_admit, possible_here, within_reservation
from broker.decide.rules import Decision, QuoteFor
from broker.model import events as ev
from broker.model.commands import StartEstimate, Submit, TestSubmit
from broker.model.errors import BadOption, Denied, OverLimit, Refused
from broker.model.job import ArrayPlace, ExitCode, HetPlace, Hold, Job, JobState, Owner
from broker.model.site import Partition, Site
from broker.model.spec import UNLIMITED, DependencyKind, Limit, TaskSpec
from broker.schedule import priority
from broker.schedule.demand import (
    cpus_for_memory,
    demand,
    expected_seconds,
    need_for,
    wanted,
)
from broker.schedule.gates import limit_of, must_be_let_in
from broker.schedule.limits import asking, at_submit, known_of, stands_in
from broker.schedule.view import TARGETS
from broker.world import World
from sbatch_shim.grammar.hostlist import sorted_names
from sbatch_shim.grammar.values import read_sampling

OVER_LIMIT = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
BAD_ARRAY = "Invalid job array specification"
BAD_NODE = "Invalid node name specified"
BAD_SAMPLING = "Invalid accounting frequency requested"
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
    return Decision([_queued(record)], record.id)


def _judged(world: World, record: Job, quote: QuoteFor) -> None:
    """Of a held job nodes are looked for when it is released (22.05). Raises BadOption.

    A loop submits the same task over and over: what its own nodes could run, they still can.
    """
    if record.hold is not None and record.spec.resources.max_nodes != 0:
        return
    kind = record.partitions, record.account, record.qos, record.time_limit
    known = world.possible
    if known and known[0] is world.site and known[1] is record.spec and known[2] == kind:
        return
    possible_here(world, record, quote)
    partitions = (world.site.partition(name) for name in record.partitions)
    elastic = any(one is not None and one.elastic is not None for one in partitions)
    if not elastic and record.spec.reservation is None:
        world.possible = world.site, record.spec, kind


def _heterogeneous(world: World, asked: Submit, first: Job, *, quote: QuoteFor) -> Decision:
    """A record for each component, with ids one after the other; all of them or none."""
    others = [_record(world, spec, asked.owner, now=first.submitted) for spec in asked.more]
    facts = []
    for offset, record in enumerate(_apart([first, *others])):
        job_id = JobId(first.id + offset)
        place = HetPlace(base=first.id, offset=offset, size=1 + len(others))
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


def _counted(site: Site, want: Tres) -> Tres:
    """GPU types that no declared node has are not counted, where nothing is bought (25.11)."""
    if any(partition.elastic for partition in site.partitions):
        return want
    types = {name for node in site.nodes for name, _ in node.whole.gres}
    gres = tuple((name, count) for name, count in want.gres if name in types or ":" not in name)
    return replace(want, gres=gres)


def decide_test(world: World, asked: TestSubmit, now: int, *, quote: QuoteFor) -> Decision:
    """When and where the job would start, for `--test-only`."""
    record = _record(world, asked.spec, asked.owner, now=now)
    site, bound = within_reservation(world, record)
    partition, nodes = must_start_somewhere(site, bound, quote)
    cost, old = _at_most(record, partition, quote, site=site)
    estimate = StartEstimate(
        job=record.id,
        start=max(now, record.spec.begin or now),
        cpus=record.want.cpu,
        nodes=nodes,
        partition=partition.name,
        micro_usd=cost,
        old_price=old,
    )
    return Decision(reply=estimate)


def _at_most(job: Job, partition: Partition, quote: QuoteFor, *, site: Site) -> tuple[int, str]:
    """Micro-dollars until its limit (an hour without one) on the best offer, or own nodes.

    And what is to be said of the offer's price if it is old.
    """
    ask, seconds = demand(job.spec, partition), expected_seconds(job)
    best = None
    if partition.elastic is not None:
        best = quote(need_for(job, ask), partition.elastic).first
        each = best.offer.micro_usd_per_hour if best else 0
    else:
        each = site.dearest(partition)
    return each * ask.min_nodes * seconds // 3600, best.old_price if best else ""


def _record(world: World, spec: TaskSpec, owner: Owner, *, now: int) -> Job:
    site = world.site
    if len(world.jobs) >= site.max_job_count:
        raise Refused("Job limit reached", hint=f"MaxJobCount is {site.max_job_count}")
    partitions = _partitions(site, spec, owner)
    more = cpus_for_memory(spec.resources, partitions)
    if more:
        resources = spec.resources.model_copy(update=more)
        spec = spec.model_copy(update={"resources": resources})
    stands = _standing(site, spec, owner, partition=partitions[0])
    must_know_features(site, spec.resources.constraint)
    if spec.resources.prefer not in TARGETS:
        must_know_features(site, spec.resources.prefer)
    _must_know_dependencies(world, spec)
    limit = _time_limit(spec, partitions[0], now)
    job_id = JobId(world.next_job_id)
    hold = Hold.USER if spec.hold else None
    record = Job(
        id=job_id,
        spec=spec,
        owner=owner,
        account=str(stands.account),
        qos=stands.qos.name,
        partitions=tuple(p.name for p in partitions),
        submitted=now,
        time_limit=limit,
        want=_counted(site, wanted(demand(spec, partitions[0]))),
        priority=priority.initial(job_id, held=spec.hold, asked=spec.priority),
        hold=hold,
        reason=hold.value if hold else "None",
        array=_array(job_id, spec, site),
        after=spec.after,
        eligible=None if spec.hold or spec.after else max(now, spec.begin or now),
        comment=spec.comment,
    )
    must_admit(world, record)
    _must_be_sampled(site, record, partitions[0])
    _must_be_within_limits(world, record, stands)
    return record


def _partitions(site: Site, spec: TaskSpec, owner: Owner) -> list[Partition]:
    """Those named that let the user in; one is enough (EnforcePartLimits=NO)."""
    if not spec.partitions:
        if site.default_partition is None:
            raise BadOption("partition", "", "No partition specified or system default partition")
        must_be_let_in(site, site.default_partition, owner, reservation=spec.reservation)
        return [site.default_partition]
    found: list[Partition] = []
    refused: Denied | None = None
    for name in spec.partitions:
        partition = site.partition(name)
        if partition is None:
            raise BadOption(
                "partition",
                name,
                "Invalid partition name specified",
                hint="partitions here: " + ", ".join(p.name for p in site.partitions),
            )
        try:
            must_be_let_in(site, partition, owner, reservation=spec.reservation)
            found.append(partition)
        except Denied as error:
            refused = refused or error
    if refused is not None and not found:
        raise refused
    return found


def _standing(site: Site, spec: TaskSpec, owner: Owner, *, partition: Partition) -> Standing:
    try:
        return stands_in(
            site, owner.user, partition=partition.name, account=spec.account, qos=spec.qos
        )
    except InvalidAccount as error:
        raise BadOption("account", spec.account or "", str(error)) from error
    except InvalidQos as error:
        raise BadOption("qos", spec.qos or "", str(error)) from error


def _must_be_within_limits(world: World, record: Job, stands: Standing) -> None:
    tasks = len(record.array.waiting) if record.array else 1
    ask = asking(world.site, record, record.partitions[0], tasks=tasks)
    known = known_of(world.site, world.tally, world.charges, now=record.submitted)
    broken = at_submit(known, stands, ask=ask)
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


def _time_limit(spec: TaskSpec, partition: Partition, now: int) -> Limit:
    limit = limit_of(spec.time_limit, partition)
    if spec.deadline is not None:
        shortest = spec.time_min or (0 if limit == UNLIMITED else int(limit))
        if spec.deadline <= now or now + shortest > spec.deadline:
            raise OverLimit(
                "deadline",
                str(spec.deadline),
                str(now + shortest),
                message="Requested time limit is invalid (missing or exceeds some limit)",
            )
    return limit


def _must_be_sampled(site: Site, record: Job, partition: Partition) -> None:
    """Where memory is counted, tasks are looked at no more seldom than the site does (22.05)."""
    text = record.spec.option("acctg-freq")
    ask = demand(record.spec, partition)
    counted = any(one is not None for one in (ask.mem_per_node, ask.mem_per_cpu, ask.mem_per_gpu))
    seconds = read_sampling(text or "").get("task")
    if counted and seconds is not None and not 0 < seconds <= site.gather_seconds:
        raise BadOption("acctg-freq", text or "", BAD_SAMPLING)


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
