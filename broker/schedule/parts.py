"""Which part of a job's allocation a step gets, and whether that is free now (Slurm 25.11).

Steps share nothing unless `--overlap` is said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from accounting.tres import GresCounts, Tres, gres_counts, sum_of
from broker.model.errors import BadOption
from broker.model.ids import NodeName
from broker.model.job import Job, Share, Step, StepState
from broker.model.spec import ALL, Gres, StepSpec
from broker.schedule.ranks import ARBITRARY, counts, kind_of

TOO_MANY_CPUS = "More processors requested than permitted"
TOO_MUCH_MEMORY = "Memory required by task is not available"
TOO_MANY_GRES = "Invalid generic resource (gres) specification"
NO_SUCH_NODES = "Requested node configuration is not available"
GPU = "gpu"

Shares = tuple[Share, ...]


@dataclass(slots=True)
class Free:
    """What the allocation still has on one of its nodes for one more step."""

    whole: Share
    tres: Tres
    cpu_ids: set[int]
    gpu_ids: set[int]

    @property
    def node(self) -> NodeName:
        return self.whole.node

    def take(self, share: Share) -> None:
        self.tres = self.tres - share.tres
        self.cpu_ids -= set(share.cpu_ids)
        self.gpu_ids -= set(share.gpu_ids)


def all_of(whole: Share) -> Free:
    return Free(whole, whole.tres, set(whole.cpu_ids), set(whole.gpu_ids))


def waits(step: Step) -> bool:
    """Whether a numbered step has not got its part yet."""
    return step.spec is not None and step.share is None and step.state is StepState.PENDING


def placeable(job: Job) -> list[tuple[Step, Shares]]:
    """Waiting steps that find room now, in the order of their numbers; a later one may pass."""
    waiting = [step for step in job.steps if waits(step)]
    if not waiting or not job.shares:
        return []
    free = _free(job)
    found = []
    for step in waiting:
        shares = _try(job, step, free)
        if shares:
            found.append((step, shares))
    return found


def has_room(job: Job, step: Step) -> bool:
    """Whether one more step would find its part free."""
    more = replace(job, steps=(*job.steps, step))
    return any(placed is step for placed, _ in placeable(more))


def _try(job: Job, step: Step, free: Sequence[Free]) -> Shares:
    spec = step.spec
    assert spec is not None
    if spec.overlap:
        free = [all_of(share) for share in job.shares]
    try:
        shares = _found(job, spec, free)
    except BadOption:
        return ()  # its nodes turned out smaller than what was asked: it ends with its job
    if not spec.overlap:
        _take(shares, spec, free)
    return shares


def _free(job: Job) -> list[Free]:
    free = [all_of(share) for share in job.shares]
    for step in job.steps:
        if step.spec is not None and not step.spec.overlap and not step.state.final:
            _take(step.shares, step.spec, free)
    return free


def _take(shares: Iterable[Share], spec: StepSpec, free: Iterable[Free]) -> None:
    by_node = {one.node: one for one in free}
    for share in shares:
        by_node[share.node].take(replace(share, tres=_counted(share.tres, spec)))


def part(job: Job, spec: StepSpec) -> Tres:
    """What the step would use of the whole allocation. Raises BadOption as `alone` does."""
    return sum_of(share.tres for share in alone(job, spec))


def alone(job: Job, spec: StepSpec) -> Shares:
    """What the step would get of each node if nothing else ran there.

    Raises BadOption, with Slurm's text, where the allocation is too small for it.
    """
    _must_exist(job, spec)
    shares = _found(job, spec, [all_of(share) for share in job.shares])
    if not shares:
        raise BadOption("ntasks", str(spec.tasks), TOO_MANY_CPUS)
    return shares


def _must_exist(job: Job, spec: StepSpec) -> None:
    named = {*spec.nodelist, *spec.hosts}
    candidates = {one.node for one in _candidates([all_of(share) for share in job.shares], spec)}
    if named - candidates or len(candidates) < spec.nodes:
        raise BadOption("nodelist", ",".join(sorted(named)), NO_SUCH_NODES)


# ---------------------------------------------------------------- choosing nodes


def _candidates(free: Sequence[Free], spec: StepSpec) -> list[Free]:
    """Those that `-x` and `-r` leave."""
    return [one for one in free[spec.relative :] if one.node not in spec.exclude]


def _found(job: Job, spec: StepSpec, free: Sequence[Free]) -> Shares:
    """Its shares if there is room for all; empty where there is none now.

    Raises BadOption where a node of the allocation is too small for it.
    """
    usable = [one for one in _candidates(free, spec) if _room(one, spec) or spec.overcommit]
    while len(usable) >= spec.nodes:
        chosen = _chosen(usable, spec)
        each = _counts(chosen, spec)
        if each is None:
            return ()
        wishes = [
            wish(job, one.whole, spec, tasks=tasks) for one, tasks in zip(chosen, each, strict=True)
        ]
        tight = [
            one.node
            for one, tres in zip(chosen, wishes, strict=True)
            if not _counted(tres, spec).fits(one.tres)
        ]
        if not tight:
            return tuple(
                _given(one, tres, tasks)
                for one, tres, tasks in zip(chosen, wishes, each, strict=True)
            )
        usable = [one for one in usable if one.node not in tight]
    return ()


def _room(one: Free, spec: StepSpec) -> int:
    """Tasks for which a node has cpus now; a step that is not exact needs all of it."""
    whole = not spec.exact or spec.whole
    if whole and one.tres.cpu < one.whole.tres.cpu:
        return 0
    return max(0, one.tres.cpu) // (spec.cpus_per_task or 1)


def _chosen(usable: Sequence[Free], spec: StepSpec) -> list[Free]:
    """Named ones, then the first of the others; the roomiest where those have too little."""
    named = {*spec.nodelist, *spec.hosts}
    must = [one for one in usable if one.node in named]
    rest = [one for one in usable if one.node not in named]
    count = max(0, spec.nodes - len(must))
    picked = must + rest[:count]
    if sum(_room(one, spec) for one in picked) < spec.tasks and not spec.overcommit:
        rest.sort(key=lambda one: -_room(one, spec))
        picked = must + rest[:count]
    return [one for one in usable if any(one is other for other in picked)]


def _counts(chosen: Sequence[Free], spec: StepSpec) -> tuple[int, ...] | None:
    """Tasks of each node; None where they are too many for them now."""
    if kind_of(spec) == ARBITRARY and spec.hosts:
        return tuple(spec.hosts[: spec.tasks].count(one.node) for one in chosen)
    room = [_room(one, spec) for one in chosen]
    if sum(room) < spec.tasks and not spec.overcommit:
        return None
    most = spec.tasks_per_node
    capped = room if most is None else [min(one, most) for one in room]
    return counts(spec, capped if sum(capped) >= spec.tasks else room)


def _given(free: Free, tres: Tres, tasks: int) -> Share:
    """The lowest ids of those that are free."""
    count = dict(tres.gres).get(GPU, 0)
    return Share(
        node=free.node,
        launch=free.whole.launch,
        tres=tres,
        cpu_ids=tuple(sorted(free.cpu_ids)[: tres.cpu]),
        gpu_ids=tuple(sorted(free.gpu_ids)[:count]),
        tasks=tasks,
    )


def _counted(tres: Tres, spec: StepSpec) -> Tres:
    """`--mem=0` shares the allocation's memory with the other steps."""
    shared = spec.mem_per_node_mib in (0, ALL)
    return replace(tres, mem_mib=0 if shared else tres.mem_mib, node=0)


# ---------------------------------------------------------------- what it needs on a node


def wish(job: Job, whole: Share, spec: StepSpec, *, tasks: int) -> Tres:
    """What `tasks` of the step use of a node.

    Raises BadOption, with Slurm's text, where all that the job has of it is too little.
    """
    cpus = _cpus(whole.tres, spec, tasks)
    wanted = _gres(whole.tres.gres, _wanted(spec, tasks))
    found = Tres(cpus, _memory(job, whole.tres, spec, cpus=cpus), 1, wanted)
    if found.mem_mib > whole.tres.mem_mib:
        raise BadOption("mem", str(found.mem_mib), TOO_MUCH_MEMORY)
    return found


def _cpus(whole: Tres, spec: StepSpec, tasks: int) -> int:
    needed = tasks * (spec.cpus_per_task or 1)
    return min(needed, whole.cpu) if spec.exact and not spec.whole else whole.cpu


def _memory(job: Job, whole: Tres, spec: StepSpec, *, cpus: int) -> int:
    """Where the step says nothing: all of a figure per node, its cpus' part of one per cpu."""
    if spec.mem_per_cpu_mib is not None:
        return whole.mem_mib if spec.mem_per_cpu_mib == ALL else spec.mem_per_cpu_mib * cpus
    if spec.mem_per_node_mib is not None:
        every = spec.mem_per_node_mib in (0, ALL)
        return whole.mem_mib if every else int(spec.mem_per_node_mib)
    if job.spec.resources.mem_per_node_mib is not None or not whole.cpu:
        return whole.mem_mib
    return whole.mem_mib * cpus // whole.cpu


def _wanted(spec: StepSpec, tasks: int) -> tuple[Gres, ...] | None:
    """Per node; None for all that there is."""
    by_task = [one.model_copy(update={"count": one.count * tasks}) for one in spec.gres_per_task]
    return spec.gres if not by_task else (*(spec.gres or ()), *by_task)


def _gres(whole: GresCounts, wanted: tuple[Gres, ...] | None) -> GresCounts:
    if wanted is None:
        return whole
    found: dict[str, int] = {}
    for gres in wanted:
        label = _spelled(gres, whole)
        found[label] = found.get(label, 0) + gres.count
    return gres_counts(found)


def _spelled(gres: Gres, whole: GresCounts) -> str:
    """The name as the node has it, with its type if that is the only one. Raises BadOption."""
    names = [name for name, _ in whole if name.lower() == gres.label().lower()]
    typed = [name for name, _ in whole if name.startswith(f"{gres.name}:")]
    if not names or gres.count > dict(whole)[names[0]]:
        raise BadOption("gres", gres.label(), TOO_MANY_GRES)
    return typed[0] if gres.type is None and len(typed) == 1 else names[0]
