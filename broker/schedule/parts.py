"""Which part of a job's allocation a step gets, and whether that is free now (Slurm 25.11).

On one node: the first of the allocation. Steps share nothing unless `--overlap` is said.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from accounting.tres import GresCounts, Tres, gres_counts
from broker.model.errors import BadOption
from broker.model.ids import NodeName
from broker.model.job import Job, Share, Step, StepState
from broker.model.spec import ALL, Gres, StepSpec

TOO_MANY_CPUS = "More processors requested than permitted"
TOO_MUCH_MEMORY = "Memory required by task is not available"
TOO_MANY_GRES = "Invalid generic resource (gres) specification"
GPU = "gpu"


@dataclass(slots=True)
class Free:
    """What the allocation still has on its node for one more step."""

    node: NodeName
    launch: int
    tres: Tres
    cpu_ids: set[int]
    gpu_ids: set[int]

    def take(self, share: Share) -> None:
        self.tres = self.tres - share.tres
        self.cpu_ids -= set(share.cpu_ids)
        self.gpu_ids -= set(share.gpu_ids)


def all_of(whole: Share) -> Free:
    return Free(whole.node, whole.launch, whole.tres, set(whole.cpu_ids), set(whole.gpu_ids))


def waits(step: Step) -> bool:
    """Whether a numbered step has not got its part yet."""
    return step.spec is not None and step.share is None and step.state is StepState.PENDING


def placeable(job: Job) -> list[tuple[Step, Share]]:
    """Waiting steps that find room now, in the order of their numbers; a later one may pass."""
    waiting = [step for step in job.steps if waits(step)]
    if not waiting or not job.shares:
        return []
    free = _free(job.shares[0], job.steps)
    found = []
    for step in waiting:
        share = _try(job, step, free)
        if share is not None:
            found.append((step, share))
    return found


def _try(job: Job, step: Step, free: Free) -> Share | None:
    assert step.spec is not None
    try:
        wish = part(job, step.spec)
    except BadOption:
        return None  # its nodes turned out smaller than what was asked: it ends with its job
    if step.spec.overlap:
        return _given(step.spec, wish, all_of(job.shares[0]))
    counted = _counted(wish, step.spec)
    if not counted.fits(free.tres):
        return None
    share = _given(step.spec, wish, free)
    free.take(replace(share, tres=counted))
    return share


def _free(whole: Share, steps: Iterable[Step]) -> Free:
    free = all_of(whole)
    for step in steps:
        if step.share is None or step.spec is None or step.spec.overlap or step.state.final:
            continue
        free.take(replace(step.share, tres=_counted(step.share.tres, step.spec)))
    return free


def _given(step: StepSpec, wish: Tres, free: Free) -> Share:
    """The lowest ids of those that are free."""
    count = dict(wish.gres).get(GPU, 0)
    return Share(
        node=free.node,
        launch=free.launch,
        tres=wish,
        cpu_ids=tuple(sorted(free.cpu_ids)[: wish.cpu]),
        gpu_ids=tuple(sorted(free.gpu_ids)[:count]),
        tasks=step.tasks,
    )


def _counted(tres: Tres, spec: StepSpec) -> Tres:
    """`--mem=0` shares the allocation's memory with the other steps."""
    shared = spec.mem_per_node_mib in (0, ALL)
    return replace(tres, mem_mib=0 if shared else tres.mem_mib, node=0)


def part(job: Job, spec: StepSpec) -> Tres:
    """What the step uses of the allocation's first node.

    Raises BadOption, with Slurm's text, where the whole allocation is too small for it.
    """
    whole = job.shares[0].tres
    cpus = _cpus(whole, spec)
    wish = Tres(cpus, _memory(job, spec, cpus), 1, _gres(whole.gres, spec.gres))
    if wish.mem_mib > whole.mem_mib:
        raise BadOption("mem", str(wish.mem_mib), TOO_MUCH_MEMORY)
    return wish


def _cpus(whole: Tres, spec: StepSpec) -> int:
    needed = spec.tasks * (spec.cpus_per_task or 1)
    if needed > whole.cpu and not spec.overcommit:
        raise BadOption("ntasks", str(spec.tasks), TOO_MANY_CPUS)
    return min(needed, whole.cpu) if spec.exact and not spec.whole else whole.cpu


def _memory(job: Job, spec: StepSpec, cpus: int) -> int:
    """Where the step says nothing: all of a figure per node, its cpus' part of one per cpu."""
    whole = job.shares[0].tres
    if spec.mem_per_cpu_mib is not None:
        return whole.mem_mib if spec.mem_per_cpu_mib == ALL else spec.mem_per_cpu_mib * cpus
    if spec.mem_per_node_mib is not None:
        every = spec.mem_per_node_mib in (0, ALL)
        return whole.mem_mib if every else int(spec.mem_per_node_mib)
    if job.spec.resources.mem_per_node_mib is not None or not whole.cpu:
        return whole.mem_mib
    return whole.mem_mib * cpus // whole.cpu


def _gres(whole: GresCounts, wanted: tuple[Gres, ...] | None) -> GresCounts:
    if wanted is None:
        return whole
    counts: dict[str, int] = {}
    for gres in wanted:
        label = _spelled(gres, whole)
        counts[label] = counts.get(label, 0) + gres.count
    return gres_counts(counts)


def _spelled(gres: Gres, whole: GresCounts) -> str:
    """The name as the node has it, with its type if that is the only one. Raises BadOption."""
    names = [name for name, _ in whole if name.lower() == gres.label().lower()]
    typed = [name for name, _ in whole if name.startswith(f"{gres.name}:")]
    if not names or gres.count > dict(whole)[names[0]]:
        raise BadOption("gres", gres.label(), TOO_MANY_GRES)
    return typed[0] if gres.type is None and len(typed) == 1 else names[0]
