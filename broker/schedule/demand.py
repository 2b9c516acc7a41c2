"""From a spec to numbers: how many nodes and tasks, and what a node must give for its tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from accounting.tres import Tres, gres_counts
from broker.model.constraint import Counted, Expression, kinds, parse, ways
from broker.model.job import Job
from broker.model.offer import Alternative, Market, Need
from broker.model.site import Partition
from broker.model.spec import ALL, UNLIMITED, Gres, Memory, Resources, TaskSpec, Where


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job asks of a partition's nodes; MiB."""

    min_nodes: int
    max_nodes: int | None
    """None: as many as it takes."""
    tasks: int
    tasks_per_node: int | None
    """At most so many tasks on a node."""
    cpus_per_task: int
    min_cpus: int
    """At least so many cpus on each node, whatever its tasks."""
    mem_per_node: Memory | None
    mem_per_cpu: int | None
    mem_per_gpu: int | None
    gres: tuple[Gres, ...]
    """On each node."""
    gpus: tuple[Gres, ...]
    """In the whole job."""
    gpus_per_task: tuple[Gres, ...]
    cpus_per_gpu: int | None
    whole_node: bool
    overcommit: bool = False
    tasks_per_socket: int | None = None
    """At most so many tasks on a socket."""
    tasks_per_core: int | None = None
    fewest: bool = False
    """Of a range of nodes the lower end is tried first (`--use-min-nodes`)."""
    kinds: tuple[Counted, ...] = ()
    """Sorts of nodes of which there have to be so many (`-C [a*2&b*1]`)."""
    ways: tuple[Expression, ...] = ()
    """What its nodes may all be; one of several for all of them (`-C [a|b]`)."""
    partition: str = ""
    most_cpus: int | None = None
    """Cpus of a node that the jobs of the partition may hold together (MaxCPUsPerNode)."""
    tasks_open: bool = False
    """The nodes are a range and no tasks were asked for: their number is known at the start."""
    named: frozenset[str] = frozenset()
    """All of these nodes, or no others (`-w`)."""

    def on_node(self, tasks: int, node: Tres, gpus: tuple[Gres, ...]) -> Tres:
        """What the job takes for them of a node that has `node` and enough for `for_tasks`."""
        least = self.for_tasks(tasks, node, gpus)
        if not self.whole_node:
            return least
        memory = self._memory(node.cpu, dict(node.gres).get("gpu", 0), node)
        memory = max(least.mem_mib, min(memory, node.mem_mib))
        return Tres(cpu=node.cpu, mem_mib=memory, node=1, gres=node.gres)

    def for_tasks(self, tasks: int, node: Tres, gpus: tuple[Gres, ...]) -> Tres:
        """What `tasks` tasks, and a part of the job's `gpus`, need of a node that has `node`."""
        gres = (*self.gres, *gpus, *(_times(gpu, tasks) for gpu in self.gpus_per_task))
        counts = gres_counts(_sum(gres))
        wanted_gpus = dict(counts).get("gpu", 0)
        cpus = self._cpus(tasks, wanted_gpus)
        memory = self._memory(cpus, wanted_gpus, node)
        return Tres(cpu=cpus, mem_mib=memory, node=1, gres=counts)

    def _cpus(self, tasks: int, gpus: int) -> int:
        cpus = 1 if self.overcommit else tasks * self.cpus_per_task
        if self.cpus_per_gpu:
            cpus = max(cpus, self.cpus_per_gpu * gpus)
        return max(cpus, self.min_cpus)

    def _memory(self, cpus: int, gpus: int, node: Tres) -> int:
        if self.mem_per_node == ALL:
            return node.mem_mib
        if isinstance(self.mem_per_node, int):
            return self.mem_per_node
        if self.mem_per_gpu is not None:
            return self.mem_per_gpu * gpus
        return node.mem_mib if self.mem_per_cpu is None else self.mem_per_cpu * cpus

    def may_hold(self, cpus: int, held: int = 0) -> bool:
        """Whether so many cpus of a node are within what the partition's jobs may hold of it."""
        return self.most_cpus is None or held + cpus <= self.most_cpus


def _times(gres: Gres, factor: int) -> Gres:
    return gres.model_copy(update={"count": gres.count * factor})


def _sum(gres: Iterable[Gres]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in gres:
        counts[one.label()] = counts.get(one.label(), 0) + one.count
    return counts


READS = frozenset(("overcommit", "use-min-nodes", "ntasks-per-gpu", "ntasks-per-tres"))
"""Options that a demand depends on, beside what the spec has as resources."""


def asked_by(spec: TaskSpec) -> tuple[Resources, tuple[tuple[str, str], ...]]:
    """What the demand of a spec follows from: most of a long queue asks alike."""
    return spec.resources, tuple(one for one in spec.options if one[0] in READS)


def demand(spec: TaskSpec, partition: Partition | None) -> Demand:
    """The numbers behind a spec, with the partition's defaults for what was not asked.

    Without -n there is one task per node (Slurm 25.11); without -N as few nodes as the tasks take.
    """
    asked = spec.resources
    features = parse(asked.constraint) if asked.constraint else None
    sorts = kinds(features) if features else ()
    least = sum(one.count for one in sorts)
    nodes = max(asked.min_nodes or 1, least)
    if asked.max_nodes is None:
        nodes = max(nodes, len(asked.nodelist))
    tasks = asked.tasks or nodes * (asked.tasks_per_node or 1)
    if asked.tasks and asked.min_nodes:
        nodes = max(least, min(nodes, asked.tasks))
    most_cpus = partition.max_cpus_per_node if partition else None
    if most_cpus is not None:
        nodes = max(nodes, -(-tasks * (asked.cpus_per_task or 1) // most_cpus))
    per_node, per_cpu = _memory_of(asked, partition)
    return Demand(
        min_nodes=nodes,
        max_nodes=_max_nodes(asked, tasks, least),
        kinds=sorts,
        ways=ways(features) if features else (),
        tasks=tasks,
        tasks_per_node=asked.tasks_per_node or _served_together(spec),
        cpus_per_task=asked.cpus_per_task or 1,
        min_cpus=asked.min_cpus_per_node or 1,
        mem_per_node=per_node,
        mem_per_cpu=per_cpu,
        mem_per_gpu=asked.mem_per_gpu_mib if isinstance(asked.mem_per_gpu_mib, int) else None,
        gres=asked.gres,
        gpus=asked.gpus,
        gpus_per_task=() if _gpus_of_node(asked) else asked.gpus_per_task,
        cpus_per_gpu=asked.cpus_per_gpu,
        whole_node=asked.exclusive or (partition is not None and partition.whole_nodes),
        partition=partition.name if partition else "",
        most_cpus=most_cpus,
        overcommit=spec.option("overcommit") is not None,
        tasks_per_socket=asked.tasks_per_socket,
        tasks_per_core=asked.tasks_per_core,
        fewest=spec.option("use-min-nodes") is not None or _by_gpus(asked) is not None,
        tasks_open=asked.tasks is None and asked.tasks_per_node is None and _is_range(asked),
        named=frozenset(asked.nodelist),
    )


def _gpus_of_node(asked: Resources) -> int:
    return sum(one.count for one in asked.gres if one.name == "gpu")


def _served_together(spec: TaskSpec) -> int | None:
    """How many tasks the GPUs of one node serve, where so many share one (22.05)."""
    gpus = _gpus_of_node(spec.resources)
    each = gpus and (spec.option("ntasks-per-gpu") or spec.option("ntasks-per-tres"))
    return int(each) * gpus if each else None


def _is_range(asked: Resources) -> bool:
    return asked.max_nodes is not None and asked.max_nodes != (asked.min_nodes or 1)


def _max_nodes(asked: Resources, tasks: int, least: int) -> int | None:
    if asked.max_nodes is not None and asked.max_nodes < least:
        return asked.max_nodes  # too few for what is counted: there can be no place for it (22.05)
    if asked.max_nodes is not None:
        return max(least, min(asked.max_nodes, tasks) if asked.tasks else asked.max_nodes)
    if asked.nodelist:
        return None
    if asked.min_nodes is not None:
        return max(least, min(asked.min_nodes, tasks))
    return _by_gpus(asked)


def _by_gpus(asked: Resources) -> int | None:
    """Most nodes that its GPUs can be spread over, where nothing else says how many (22.05)."""
    if (asked.min_nodes, asked.max_nodes, asked.tasks, asked.tasks_per_node) != (None,) * 4:
        return None
    return sum(gpu.count for gpu in asked.gpus) or None


def _memory_of(asked: Resources, partition: Partition | None) -> tuple[Memory | None, int | None]:
    """(per node, per cpu): as asked, else the partition's DefMemPerCPU, else the whole node."""
    if asked.mem_per_node_mib is not None:
        return asked.mem_per_node_mib, None
    if asked.mem_per_cpu_mib == ALL:
        return ALL, None
    if isinstance(asked.mem_per_cpu_mib, int):
        return None, asked.mem_per_cpu_mib
    if asked.mem_per_gpu_mib is not None:
        return None, None
    return None, partition.def_mem_per_cpu_mib if partition else None


def cpus_for_memory(asked: Resources, partitions: Iterable[Partition]) -> dict[str, int]:
    """What changes where more memory is asked for than MaxMemPerCPU gives to the cpus.

    Memory by cpu is dealt out among as many as that takes; of memory by node each node has to
    have the cpus for it (22.05).
    """
    most = min((p.max_mem_per_cpu_mib for p in partitions if p.max_mem_per_cpu_mib), default=None)
    if most is None:
        return {}
    per_cpu, per_node = asked.mem_per_cpu_mib, asked.mem_per_node_mib
    if isinstance(per_cpu, int) and per_cpu > most:
        times = -(-per_cpu // most)
        cpus = times * (asked.cpus_per_task or 1)
        found = {"cpus_per_task": cpus, "mem_per_cpu_mib": -(-per_cpu // times)}
        return found if asked.tasks else found | {"min_cpus_per_node": cpus}
    if isinstance(per_node, int) and per_node > most:
        return {"min_cpus_per_node": max(asked.min_cpus_per_node or 1, -(-per_node // most))}
    return {}


def wanted(ask: Demand) -> Tres:
    """ReqTRES: what the job asks for in all, as far as it is known before nodes are chosen.

    `-N 2-3` alone counts the cpus of one task (25.11).
    """
    if ask.max_nodes == 0:
        return Tres()
    per_node = tuple(_times(gres, ask.min_nodes) for gres in ask.gres)
    by_task = tuple(_times(gres, ask.tasks) for gres in ask.gpus_per_task)
    counts = gres_counts(_sum((*per_node, *ask.gpus, *by_task)))
    gpus = dict(counts).get("gpu", 0)
    tasks = 1 if ask.tasks_open else ask.tasks
    cpus = ask.min_nodes if ask.overcommit else tasks * ask.cpus_per_task
    cpus = max(cpus, (ask.cpus_per_gpu or 0) * gpus)
    if isinstance(ask.mem_per_node, int):
        memory = ask.mem_per_node * ask.min_nodes
    elif ask.mem_per_gpu is not None:
        memory = ask.mem_per_gpu * gpus
    else:
        memory = (ask.mem_per_cpu or 0) * cpus
    return Tres(cpu=cpus, mem_mib=memory, node=ask.min_nodes, gres=counts)


BARE = Tres(cpu=1, mem_mib=1024)
"""Stands for "the whole node" of a machine that is still to be chosen: it asks for any memory."""


def need_of(spec: TaskSpec, ask: Demand, run_seconds: int) -> Need:
    """What to buy for it: tasks spread evenly over as few nodes as were asked for."""
    tasks = -(-ask.tasks // ask.min_nodes)
    share = tuple(
        gpu.model_copy(update={"count": -(-gpu.count // ask.min_nodes)}) for gpu in ask.gpus
    )
    tres = ask.for_tasks(tasks, BARE, share)
    kinds = [gres for gres in (*ask.gres, *ask.gpus, *ask.gpus_per_task) if gres.name == "gpu"]
    return Need(
        cpus=tres.cpu,
        mem_mib=tres.mem_mib,
        nodes=ask.min_nodes,
        gpu_type=next((gres.type for gres in kinds if gres.type), None),
        gpus=_gpus(ask, tasks, share),
        tmp_mib=spec.resources.tmp_mib or 0,
        cpus_exactly=spec.resources.cpus_exactly,
        constraint=spec.resources.constraint,
        alternatives=tuple(_alternative(where) for where in spec.resources.any_of),
        ordered=spec.resources.ordered,
        run_seconds=run_seconds,
        whole_node=ask.whole_node,
        data_gib=spec.resources.data_gib or 0,
        data_region=spec.resources.data_region or "",
        build=spec.resources.build,
    )


def need_for(job: Job, ask: Demand) -> Need:
    """The same for a job, which may have lost machines before: then elsewhere, or there again."""
    first, last = regions(job)
    need = need_of(job.spec, ask, expected_seconds(job))
    return replace(need, first_region=first, last_regions=last) if first or last else need


def regions(job: Job) -> tuple[str | None, tuple[str, ...]]:
    """The region that goes before all others, and those that go behind."""
    if job.spec.managed is None or not job.lost_regions:
        return None, ()
    return (None, job.lost_regions) if job.spec.managed.eager else (job.lost_regions[-1], ())


def expected_seconds(job: Job) -> int:
    """How long a purchase is taken to be used: the time limit, else an hour."""
    return 3600 if job.time_limit == UNLIMITED else int(job.time_limit)


def _gpus(ask: Demand, tasks: int, share: tuple[Gres, ...]) -> int:
    by_task = tuple(_times(gres, tasks) for gres in ask.gpus_per_task)
    counts = gres_counts(_sum((*ask.gres, *share, *by_task)))
    return dict(counts).get("gpu", 0)


def _alternative(where: Where) -> Alternative:
    return Alternative(
        regions=(where.region,) if where.region else (),
        zones=(where.zone,) if where.zone else (),
        instance_types=(where.instance_type,) if where.instance_type else (),
        markets=(Market(where.market),) if where.market else (),
        gpu=(where.gpu.type or "", where.gpu.count) if where.gpu else None,
        max_micro_usd_per_hour=where.max_micro_usd_per_hour,
    )
