"""Which node a step's tasks are on: how many there, and which ranks (Slurm 25.11's layouts)."""

from collections.abc import Callable, Sequence

from broker.model.job import Step
from broker.model.spec import Output, StepSpec

BLOCK, CYCLIC, PLANE, ARBITRARY = "block", "cyclic", "plane", "arbitrary"
PACK = "pack"

Counts = tuple[int, ...]
Ranks = tuple[tuple[int, ...], ...]
"""By node, in the order of the step's nodes."""


def kind_of(spec: StepSpec) -> str:
    """The first word of its distribution; Slurm's own is cyclic only where that is the same."""
    word = spec.distribution.partition(":")[0].partition(",")[0].partition("=")[0].lower()
    if word in (CYCLIC, PLANE, ARBITRARY):
        return word
    chosen = word in ("", "*") and spec.tasks <= spec.nodes
    return CYCLIC if chosen else BLOCK


def counts(spec: StepSpec, room: Sequence[int]) -> Counts:
    """Tasks of each node, of which `room` says how many it has cpus for."""
    kind = kind_of(spec)
    if kind == PLANE:
        return _round(spec.tasks, room, size=_plane_size(spec))
    if kind == BLOCK and PACK in spec.distribution.lower().split(","):
        return _packed(spec.tasks, room)
    return _round(spec.tasks, room)


def _round(tasks: int, room: Sequence[int], *, size: int = 1) -> Counts:
    """`size` for each node in turn while it has room; once all are full, regardless of that."""
    found = [0] * len(room)
    while tasks:
        full = all(count >= most for count, most in zip(found, room, strict=True))
        for place, most in enumerate(room):
            more = min(tasks, size if full else min(size, max(0, most - found[place])))
            found[place] += more
            tasks -= more
    return tuple(found)


def _packed(tasks: int, room: Sequence[int]) -> Counts:
    """The first nodes are filled; each keeps one at least."""
    found = [1] * len(room)
    left = tasks - len(room)
    for place, most in enumerate(room):
        more = min(left, max(0, most - 1))
        found[place] += more
        left -= more
    found[-1] += max(0, left)
    return tuple(found)


def ranks(step: Step) -> Ranks:
    """The tasks of each of a placed step's nodes, by rank."""
    spec, each = step.spec, [share.tasks for share in step.shares]
    if spec is None or len(each) < 2:
        return tuple(tuple(range(count)) for count in each)
    nodes = tuple(str(share.node) for share in step.shares)
    return LAYOUTS[kind_of(spec)](spec, each, nodes)


OF_ONE = frozenset("tnN")
"""Letters of patterns that differ from task to task or from node to node."""


def shares_files(step: Step, jobs: Output) -> bool:
    """Whether tasks of several nodes write one file that is to be begun anew.

    `jobs` names the files of the job, which are those of a step that nobody watches.
    """
    spec = step.spec
    if spec is None:
        return False
    usual = Output() if spec.interactive else Output(stdout=jobs.stdout or "", stderr=jobs.stderr)
    output = spec.output or usual
    if (output.open_mode or jobs.open_mode) == "append":
        return False
    names = [name for name in (output.stdout, output.stderr) if name is not None]
    return any(name != "/dev/null" and not is_of_one(name) for name in names)


def is_of_one(pattern: str) -> bool:
    """Whether each task, or each node, has a file of its own by that name."""
    letters = (piece.lstrip("0123456789")[:1] for piece in pattern.split("%")[1:])
    return "\\" not in pattern and any(letter in OF_ONE for letter in letters)


def _block_ranks(_spec: StepSpec, each: Sequence[int], _nodes: Sequence[str]) -> Ranks:
    starts = [sum(each[:place]) for place in range(len(each))]
    return tuple(
        tuple(range(start, start + count)) for start, count in zip(starts, each, strict=True)
    )


def _cyclic_ranks(_spec: StepSpec, each: Sequence[int], _nodes: Sequence[str]) -> Ranks:
    turns = sorted((turn, node) for node, count in enumerate(each) for turn in range(count))
    found: list[list[int]] = [[] for _ in each]
    for rank, (_, node) in enumerate(turns):
        found[node].append(rank)
    return tuple(map(tuple, found))


def _plane_ranks(spec: StepSpec, each: Sequence[int], _nodes: Sequence[str]) -> Ranks:
    """Blocks for each node in turn, a full one left out."""
    found: list[list[int]] = [[] for _ in each]
    rank, size = 0, _plane_size(spec)
    while rank < sum(each):
        for own, most in zip(found, each, strict=True):
            more = min(size, most - len(own))
            own.extend(range(rank, rank + more))
            rank += more
    return tuple(map(tuple, found))


def _arbitrary_ranks(spec: StepSpec, _each: Sequence[int], nodes: Sequence[str]) -> Ranks:
    return tuple(
        tuple(rank for rank, host in enumerate(spec.hosts[: spec.tasks]) if host == node)
        for node in nodes
    )


def _plane_size(spec: StepSpec) -> int:
    digits = spec.distribution.partition("=")[2].partition(",")[0].partition(":")[0]
    return max(1, int(digits)) if digits.isdecimal() else 1


LAYOUTS: dict[str, Callable[[StepSpec, Sequence[int], Sequence[str]], Ranks]] = {
    BLOCK: _block_ranks,
    CYCLIC: _cyclic_ranks,
    PLANE: _plane_ranks,
    ARBITRARY: _arbitrary_ranks,
}
