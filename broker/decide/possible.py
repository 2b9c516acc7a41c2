"""Whether a job could ever run: judged on its partitions' nodes as if they were empty."""

from collections.abc import Iterator
from dataclasses import replace

from broker.decide.rules import QuoteFor
from broker.model.constraint import names
from broker.model.constraint import parse as parse_constraint
from broker.model.errors import BadOption
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node, NodeState
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import Gres, Resources
from broker.schedule.demand import Demand, demand
from broker.schedule.eligible import is_of_kind
from broker.schedule.fit import choose, room
from broker.schedule.gates import barred, beyond, partition_gate
from broker.schedule.shapes import shape
from sbatch_shim.grammar.hostlist import fold

NOT_AVAILABLE = "Requested node configuration is not available"
NO_NODES = "Node count specification invalid"
UNKNOWN_FEATURE = "Invalid feature specification"
SHAPE = ("sockets", "cores_per_socket", "threads_per_core")
CLOSED = ("AccountNotAllowed", "QOSNotAllowed", "PartitionTimeLimit", "PartitionNodeLimit")
"""Partitions that will not have a job for these are not looked at any further (22.05)."""


def must_be_possible(site: Site, job: Job, quote: QuoteFor) -> tuple[Partition, str]:
    """The first partition that could ever run the job, and nodes it might get.

    Raises BadOption, naming the option where Slurm has a line of its own for it.
    """
    if job.spec.resources.max_nodes == 0:
        raise BadOption("nodes", "0", NO_NODES)
    hints: list[str] = []
    for partition in _partitions(site, job):
        ask = demand(job.spec, partition)
        if partition_gate(site, job, partition, nodes=ask.min_nodes) in CLOSED:
            return partition, ""
        place = _declared_place(site, partition, job=job, ask=ask)
        place = place or _bought_place(partition, ask, job=job, quote=quote, hints=hints)
        if place is not None:
            return partition, place
    raise BadOption(_lacking(site, job) or "", "", NOT_AVAILABLE, hint="; ".join(hints))


def must_start_somewhere(site: Site, job: Job, quote: QuoteFor) -> tuple[Partition, str]:
    """As `must_be_possible`, but a job that would wait for a partition to change is refused too.

    That is how `--test-only` judges (Slurm 25.11). Raises BadOption.
    """
    partition, place = must_be_possible(site, job, quote)
    ask = demand(job.spec, partition)
    if barred(site, job, partition, ask=ask):
        raise BadOption("", "", NOT_AVAILABLE)
    return partition, place


def must_know_features(site: Site, constraint: str | None) -> None:
    """Refuses words that no node has, also where others would do (`spot|x`, Slurm 25.11).

    Where partitions are elastic, nodes that could be bought count too.
    """
    if constraint is None:
        return
    asked = names(parse_constraint(constraint))
    elastic = any(partition.elastic for partition in site.partitions)
    if elastic and site.offered_features is None:
        return
    known = {word.lower() for node in site.nodes for word in node.features}
    bought = (partition.elastic.buy for partition in site.partitions if partition.elastic)
    known |= {word for policy in bought for word in policy.features}
    offered = site.offered_features if elastic else None
    if not asked <= known | (offered or frozenset()):
        raise BadOption("constraint", constraint, UNKNOWN_FEATURE)


def _partitions(site: Site, job: Job) -> Iterator[Partition]:
    found = (site.partition(name) for name in job.partitions)
    return (partition for partition in found if partition is not None)


def _declared_place(site: Site, partition: Partition, *, job: Job, ask: Demand) -> str | None:
    """Declared nodes on which the job would run if they were empty.

    A job that is beyond all of the partition waits (EnforcePartLimits=NO): one node is judged.
    """
    asked = job.spec.resources
    nodes = [node for node in _nodes(site, partition) if node.name not in asked.exclude]
    nodes = [node for node in nodes if (asked.tmp_mib or 0) <= node.tmp_disk_mib]
    nodes = [node for node in nodes if node.whole.cpu >= _cpus_together(ask)]
    nodes = [node for node in nodes if _tasks_fit(ask, node)]
    records = [declared(node, site) for node in nodes]
    waits = beyond(site, partition, ask)
    if waits:  # a job that cannot start as things are: how its nodes are built is not looked at
        asked = asked.model_copy(update=dict.fromkeys(SHAPE))
    rooms = [room(record, ()) for record in records if is_of_kind(record, asked)]
    if not rooms or (not waits and not _all_named(site, asked, {one.name for one in rooms})):
        return None
    if not waits:
        shares = choose(ask, rooms)
        return fold(share.node for share in shares) if shares else None
    one = replace(ask, min_nodes=1, max_nodes=1, tasks=_on_one(ask), gpus=_least(ask), kinds=())
    return rooms[0].name if choose(one, rooms) else None


def _nodes(site: Site, partition: Partition) -> list[DeclaredNode]:
    return [node for node in site.nodes if node.name in partition.members]


def _on_one(ask: Demand) -> int:
    return min(ask.tasks_per_node or 1, ask.tasks)


def _least(ask: Demand) -> tuple[Gres, ...]:
    """The part of the job's GPUs that one of its nodes must have."""
    return tuple(g.model_copy(update={"count": -(-g.count // ask.min_nodes)}) for g in ask.gpus)


def _cpus_together(ask: Demand) -> int:
    """Cpus that one node must have: those of the tasks that may be on it (MinCPUsNode)."""
    tasks = 1 if ask.overcommit else min(ask.tasks_per_node or 1, ask.tasks)
    return max(ask.min_cpus, tasks * ask.cpus_per_task)


def _all_named(site: Site, asked: Resources, usable: set[NodeName]) -> bool:
    """Whether the declared nodes that are named are all such as the job could use."""
    declared_names = {node.name for node in site.nodes}
    return {name for name in asked.nodelist if name in declared_names} <= usable


def _tasks_fit(ask: Demand, node: DeclaredNode) -> bool:
    """Whether the tasks that have to be on one node are within the limit for its sockets.

    It has to have the cpus for as many tasks as a socket or a core may have (22.05).
    """
    most = max(ask.tasks_per_socket or 0, ask.tasks_per_core or 0)
    if most * ask.cpus_per_task > node.whole.cpu:
        return False
    if ask.tasks_per_socket is None:
        return True
    return min(ask.tasks_per_node or 1, ask.tasks) <= ask.tasks_per_socket * node.sockets


def _bought_place(
    partition: Partition, ask: Demand, *, job: Job, quote: QuoteFor, hints: list[str]
) -> str | None:
    wide = ask.max_nodes is not None and ask.min_nodes > ask.max_nodes
    if partition.elastic is None or wide or not _within_most(ask):
        return None
    elastic = partition.elastic
    lacking = shape(job, ask, lambda need: quote(need, elastic)).lacking
    if lacking is not None:
        hints.append(lacking.explain)
    return f"{elastic.prefix}1" if lacking is None else None


def _within_most(ask: Demand) -> bool:
    """Whether a machine with a task or more is within MaxCPUsPerNode; whole ones never are."""
    if ask.most_cpus is None:
        return True
    return not ask.whole_node and ask.may_hold(_cpus_together(ask))


def _lacking(site: Site, job: Job) -> str | None:
    """The option of which no declared node has enough, in Slurm's order of complaint."""
    partitions = list(_partitions(site, job))
    nodes = [node for partition in partitions for node in _nodes(site, partition)]
    if not nodes or any(partition.elastic for partition in partitions):
        return None
    ask = demand(job.spec, partitions[0])
    cpus = _cpus_together(ask)
    memory = (
        ask.mem_per_node if isinstance(ask.mem_per_node, int) else (ask.mem_per_cpu or 0) * cpus
    )
    asked = job.spec.resources
    needs = (
        ("mincpus", cpus, max(node.whole.cpu for node in nodes)),
        ("mem", memory, max(node.whole.mem_mib for node in nodes)),
        ("tmp", asked.tmp_mib or 0, max(node.tmp_disk_mib for node in nodes)),
        *(
            ("sockets-per-node", getattr(asked, name) or 0, max(getattr(n, name) for n in nodes))
            for name in SHAPE
        ),
    )
    return next((option for option, need, most in needs if need > most), None)


def declared(node: DeclaredNode, site: Site) -> Node:
    """The record of a declared node as it is when the service first sees it."""
    return Node(
        name=node.name,
        launch=0,
        state=NodeState.BOOTING,
        whole=replace(node.whole, node=1),
        partitions=tuple(p.name for p in site.partitions if node.name in p.members),
        declared=True,
        features=node.features,
        weight=node.weight,
        sockets=node.sockets,
        cores_per_socket=node.cores_per_socket,
        threads_per_core=node.threads_per_core,
        boards=node.boards,
        real_memory_mib=node.whole.mem_mib,
        tmp_disk_mib=node.tmp_disk_mib,
        gres_text=node.gres_text,
        micro_usd_per_hour=node.micro_usd_per_hour,
    )
