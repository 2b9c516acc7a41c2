"""A submission: judged against the site, then a record, or Slurm's refusal."""

from collections.abc import Iterator
from dataclasses import replace

from accounting.assoc import InvalidAccount, InvalidQos, standing
from accounting.ids import JobId
from broker.decide.rules import Decision, QuoteFor
from broker.model import events as ev
from broker.model.commands import StartEstimate, Submit, TestSubmit
from broker.model.constraint import holds, names
from broker.model.constraint import parse as parse_constraint
from broker.model.errors import BadOption, Denied, OverLimit, Refused
from broker.model.job import ArrayPlace, Hold, Job, Owner
from broker.model.node import Node, NodeState
from broker.model.offer import Need
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import UNLIMITED, DependencyKind, Gres, Limit, TaskSpec
from broker.schedule import priority
from broker.schedule.demand import Demand, demand, expected_seconds, need_of, wanted
from broker.schedule.fit import choose, room
from broker.schedule.gates import limit_of
from broker.world import World

NOT_AVAILABLE = "Requested node configuration is not available"
TOO_MUCH_MEMORY = "Memory specification can not be satisfied"
BAD_DEPENDENCY = "Job dependency problem"
NEEDS_A_KNOWN_JOB = frozenset({DependencyKind.AFTEROK, DependencyKind.AFTERNOTOK})


def decide_submit(world: World, asked: Submit, now: int, quote: QuoteFor) -> Decision:
    """The job's record and its id. Raises Refused or Denied with Slurm's text (25.11)."""
    record = _record(world, asked.spec, asked.owner, now)
    _must_be_possible(world.site, record, quote)
    facts = [ev.Queued(job=record.id, at=now, actor=asked.owner.uid, record=record)]
    return Decision(facts, record.id)


def decide_test(world: World, asked: TestSubmit, now: int, quote: QuoteFor) -> Decision:
    """When and where the job would start, for `--test-only`."""
    record = _record(world, asked.spec, asked.owner, now)
    partition, nodes = _must_be_possible(world.site, record, quote)
    estimate = StartEstimate(
        job=record.id,
        start=max(now, record.spec.begin or now),
        cpus=record.want.cpu,
        nodes=nodes,
        partition=partition.name,
    )
    return Decision(reply=estimate)


def _record(world: World, spec: TaskSpec, owner: Owner, now: int) -> Job:
    site = world.site
    if len(world.jobs) >= site.max_job_count:
        raise Refused("Job limit reached", hint=f"MaxJobCount is {site.max_job_count}")
    partitions = _partitions(site, spec, owner)
    account, qos = _account(site, spec, owner, partitions[0])
    _must_know_dependencies(world, spec)
    limit = _time_limit(spec, partitions[0], now)
    job_id = JobId(world.next_job_id)
    hold = Hold.USER if spec.hold else None
    return Job(
        id=job_id,
        spec=spec,
        owner=owner,
        account=account,
        qos=qos,
        partitions=tuple(p.name for p in partitions),
        submitted=now,
        time_limit=limit,
        want=wanted(demand(spec, partitions[0])),
        priority=priority.initial(job_id, held=spec.hold),
        hold=hold,
        reason=hold.value if hold else "None",
        array=_array(job_id, spec, site),
        after=spec.after,
        eligible=None if spec.hold or spec.after else max(now, spec.begin or now),
        comment=spec.comment,
    )


def _partitions(site: Site, spec: TaskSpec, owner: Owner) -> list[Partition]:
    if not spec.partitions:
        if site.default_partition is None:
            raise BadOption("partition", "", "No partition specified or system default partition")
        return [site.default_partition]
    found = []
    for name in spec.partitions:
        partition = site.partition(name)
        if partition is None:
            raise BadOption(
                "partition",
                name,
                "Invalid partition name specified",
                hint="partitions here: " + ", ".join(p.name for p in site.partitions),
            )
        if partition.root_only and owner.uid not in site.admins:
            raise Denied("Access/permission denied")
        found.append(partition)
    return found


def _account(site: Site, spec: TaskSpec, owner: Owner, partition: Partition) -> tuple[str, str]:
    try:
        stands = standing(
            site.book,
            owner.user,  # type: ignore[arg-type]
            account=spec.account,
            partition=partition.name,
            qos=spec.qos,
        )
    except InvalidAccount as error:
        raise BadOption("account", spec.account or "", str(error)) from error
    except InvalidQos as error:
        raise BadOption("qos", spec.qos or "", str(error)) from error
    return str(stands.account), stands.qos.name


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
                "Requested time limit is invalid (missing or exceeds some limit)",
            )
    return limit


def _array(job_id: JobId, spec: TaskSpec, site: Site) -> ArrayPlace | None:
    if spec.array is None:
        return None
    tasks = spec.array.tasks
    if not tasks or tasks[-1] >= site.max_array_size:
        raise BadOption("array", str(tasks[-1:]), "Invalid job array specification")
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


def _must_be_possible(site: Site, job: Job, quote: QuoteFor) -> tuple[Partition, str]:
    """The first partition that could ever run the job, and nodes it might get."""
    hints: list[str] = []
    for partition in (site.partition(name) for name in job.partitions):
        if partition is None:
            continue
        ask = demand(job.spec, partition)
        place = _place(site, partition, job.spec, ask) or _bought(partition, job, ask, quote, hints)
        if place is not None:
            return partition, place
    raise BadOption("", "", _why_not(site, job), hint="; ".join(hints))


def _why_not(site: Site, job: Job) -> str:
    wish = job.spec.resources.constraint
    if wish is not None and not _features_known(site, wish):
        return "Invalid feature specification"
    return NOT_AVAILABLE


def _features_known(site: Site, constraint: str) -> bool:
    """Elastic partitions know the catalogue's features, so only declared nodes are asked here."""
    if any(partition.elastic for partition in site.partitions):
        return True
    known = {word.lower() for node in site.nodes for word in node.features}
    return names(parse_constraint(constraint)) <= known


def _place(site: Site, partition: Partition, spec: TaskSpec, ask: Demand) -> str | None:
    """Declared nodes on which the job would run if they were empty.

    How many nodes it takes is not judged: such jobs wait (EnforcePartLimits=NO).
    """
    wish = spec.resources.constraint
    rooms = [
        room(declared(node, site), ())
        for node in site.nodes
        if node.name in partition.nodes and _has(node, wish)
    ]
    one = replace(ask, min_nodes=1, max_nodes=1, tasks=_on_one(ask), gpus=_least(ask))
    if not rooms or choose(one, rooms) is None:
        return None
    shares = choose(ask, rooms)
    return ",".join(share.node for share in shares) if shares else rooms[0].name


def _on_one(ask: Demand) -> int:
    return min(ask.tasks_per_node or 1, ask.tasks)


def _least(ask: Demand) -> tuple[Gres, ...]:
    """The part of the job's GPUs that one of its nodes must have."""
    return tuple(g.model_copy(update={"count": -(-g.count // ask.min_nodes)}) for g in ask.gpus)


def _has(node: DeclaredNode, wish: str | None) -> bool:
    if wish is None:
        return True
    return holds(parse_constraint(wish), frozenset(word.lower() for word in node.features))


def declared(node: DeclaredNode, site: Site) -> Node:
    """The record of a declared node as it is when the service first sees it."""
    return Node(
        name=node.name,
        launch=0,
        state=NodeState.BOOTING,
        whole=replace(node.whole, node=1),
        partitions=tuple(p.name for p in site.partitions if node.name in p.nodes),
        declared=True,
        features=node.features,
        weight=node.weight,
        sockets=node.sockets,
        cores_per_socket=node.cores_per_socket,
        threads_per_core=node.threads_per_core,
        real_memory_mib=node.whole.mem_mib,
        gres_text=node.gres_text,
        micro_usd_per_hour=node.micro_usd_per_hour,
    )


def _bought(
    partition: Partition, job: Job, ask: Demand, quote: QuoteFor, hints: list[str]
) -> str | None:
    if partition.elastic is None:
        return None
    found = quote(_need(job, ask), partition, partition.elastic)
    if found.explain:
        hints.append(found.explain)
    return f"{partition.elastic.prefix}1" if found.rungs else None


def _need(job: Job, ask: Demand) -> Need:
    return need_of(job.spec, ask, expected_seconds(job))


def fresh_ids(world: World) -> Iterator[JobId]:
    """Ids that are free, as long as the facts are applied in order."""
    number = world.next_job_id
    while True:
        yield JobId(number)
        number += 1
