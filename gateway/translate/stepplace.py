"""On which nodes of its job a step of srun's runs, and how many tasks (Slurm 25.11)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.model.job import Job
from broker.schedule.ranks import ARBITRARY
from gateway.translate import gres
from sbatch_shim.grammar.errors import failed, fatal, warning_line
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.parse import COMMAND_LINE, Given
from sbatch_shim.grammar.values import NodeCount

TOO_FEW_NODES = "Only allocated {} nodes asked for {}"
TOO_FAR = "--relative and --nodes option incompatible with count of allocated nodes ({}+{}>{})"
NO_HOSTS = "Hostlist is empty!  Can't run job."
UNPLACED = "You asked for {} tasks but hostlist specified {} nodes"
UNEVEN = (
    "can't honor --ntasks-per-node set to {} which doesn't match the requested tasks {} with the "
    "number of requested nodes {}. Ignoring --ntasks-per-node."
)

Part = Mapping[str, Given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The fields of a step's spec that say where its tasks are."""

    nodes: int
    tasks: int
    tasks_per_node: int | None
    nodelist: tuple[str, ...]
    exclude: tuple[str, ...]
    relative: int
    distribution: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Nodes that were named, by hand or in a file."""

    nodelist: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def named(part: Part, read: Callable[[str], str]) -> Named:
    """`-w` and `-x`. Raises GrammarError, and what `read` raises."""
    listed = _text(part, "nodelist") or _text(part, "nodefile")
    return Named(_names(listed, read), _names(_text(part, "exclude"), read))


def _names(text: str, read: Callable[[str], str]) -> tuple[str, ...]:
    if "/" in text:
        text = ",".join(read(text).split())
    try:
        return tuple(expand(text))
    except HostlistError:
        raise fatal("srun", "Invalid node list specified") from None


def is_arbitrary(part: Part) -> bool:
    return _text(part, "distribution").lower().partition(":")[0] == ARBITRARY


def uneven(part: Part) -> str | None:
    """The warning where `--ntasks-per-node` does not fit the other counts and is left out."""
    each, tasks, nodes = (_number(part, "ntasks-per-node"), _number(part, "ntasks"), _least(part))
    if each is None or tasks is None or nodes is None or tasks // nodes == each:
        return None
    return warning_line("srun", UNEVEN.format(each, tasks, nodes)) if tasks > each else ""


def placement(part: Part, job: Job, names: Named, *, spelling: gres.Spelling) -> Placement:
    """Raises GrammarError where the job has too few nodes."""
    nodes = _nodes(part, job, names)
    hosts = names.nodelist if is_arbitrary(part) else ()
    tasks = (
        len(hosts)
        if hosts and "ntasks" not in part
        else tasks_of(part, job, nodes, spelling=spelling)
    )
    if is_arbitrary(part):
        if tasks > len(hosts):
            raise failed("srun", UNPLACED.format(tasks, len(hosts)))
        nodes = len(set(hosts[:tasks]))
    return Placement(
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=_number(part, "ntasks-per-node") if uneven(part) is None else None,
        nodelist=() if hosts else tuple(dict.fromkeys(names.nodelist)),
        exclude=names.exclude,
        relative=_number(part, "relative") or 0,
        distribution=_text(part, "distribution"),
        hosts=hosts,
    )


def _nodes(part: Part, job: Job, names: Named) -> int:
    """As many as asked for; else all that may be used, if there are tasks for them."""
    have, said = len(job.shares), "nodes" in part and part["nodes"].source == COMMAND_LINE
    usable = sum(1 for share in job.shares if share.node not in names.exclude)
    first = _number(part, "relative") or 0
    if not usable:
        raise failed("srun", NO_HOSTS)
    asked = (_least(part) if said else None) or max(1, min(usable, have - first))
    tasks = _number(part, "ntasks")
    if tasks is not None:
        asked = min(asked, tasks)
    if asked > have:
        raise failed("srun", TOO_FEW_NODES.format(have, asked))
    if first + asked > have:
        raise failed("srun", TOO_FAR.format(first, asked, have))
    return max(asked, len(set(names.nodelist) & {share.node for share in job.shares}))


def _least(part: Part) -> int | None:
    found = part["nodes"].value if "nodes" in part else None
    return max(1, int(found.low)) if isinstance(found, NodeCount) else None


def tasks_of(part: Part, job: Job, nodes: int, *, spelling: gres.Spelling) -> int:
    """Asked for; else as `--ntasks-per-node`, GPUs, or `-c` leave room for, else one a node."""
    told, each = _number(part, "ntasks"), _number(part, "ntasks-per-node")
    if told or each:
        return told or (each or 1) * nodes
    gpus = sum(one.count for one in gres.per_job(part, spelling))
    by_task = gpus_per_task(part, spelling)
    if gpus and by_task:
        return max(1, gpus // by_task)
    cpus = cpus_per_task(part)
    shares = job.shares[:nodes]
    return max(1, sum(share.tres.cpu // cpus for share in shares)) if cpus else nodes


def cpus_per_task(part: Part) -> int | None:
    return _number(part, "cpus-per-task") or gres.tres_per_task(part).get("cpu")


def gpus_per_task(part: Part, spelling: gres.Spelling) -> int | None:
    return sum(one.count for one in gres.per_task(part, spelling)) or None


def even_share(count: int, nodes: int) -> int:
    """Of a figure for all nodes that of each."""
    return -(-count // nodes)


def _text(part: Part, long: str) -> str:
    return (part[long].text or "") if long in part else ""


def _number(part: Part, long: str) -> int | None:
    found = part[long].value if long in part else None
    return found if isinstance(found, int) else None


def listed(ranks: Sequence[int]) -> str:
    """`[0-2]`, `3`: ranks as srun -v tells them."""
    if len(ranks) < 2:
        return "".join(map(str, ranks))
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    return "[" + ",".join("-".join(map(str, run)) for run in runs) + "]"
