"""The resource options of one job component as the spec's Resources."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

from broker.model import constraint
from broker.model.errors import BadOption
from broker.model.site import Site
from broker.model.spec import Gres, Memory, Resources
from gateway.translate import gpu_layout, gres
from gateway.translate.gpu_layout import Layout
from gateway.translate.refusals import (
    BAD_FEATURE,
    BAD_NODE,
    BAD_PARTITION,
    FIRST_LINES,
    NO_NODES,
)
from sbatch_shim.grammar.errors import OPTION_ERROR, GrammarError, error_line, failed, fatal
from sbatch_shim.grammar.hostlist import HostlistError, expand, sorted_names
from sbatch_shim.grammar.parse import Given

Part = Mapping[str, Given]
Refuse = Callable[[str], GrammarError]
"""Makes the controller's refusal of a text."""
ReadLines = Callable[[str], str]
"""The content of a file named by an option. Raises NeedFile."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The options of a component, and what reading them needs."""

    part: Part
    site: Site
    spelling: gres.Spelling
    refuse: Refuse
    read_nodefile: ReadLines
    program: str = "sbatch"

    def refuse_after(self, line: str, text: str) -> GrammarError:
        """The refusal of a text, behind a line of its own."""
        refusal = self.refuse(text)
        return GrammarError(error_line(self.program, line) + refusal.stderr, refusal.code)

    def value(self, long: str) -> Any:
        """What was read from its text, as its kind has it; None if it was not given."""
        given = self.part.get(long)
        return None if given is None else given.value

    def number(self, long: str) -> int | None:
        found = self.value(long)
        return found if isinstance(found, int) else None

    def memory(self, long: str) -> Memory | None:
        found = self.value(long)
        return found if isinstance(found, int) or found == "ALL" else None

    def text(self, long: str) -> str | None:
        """The text of an option; None if it was not given, or given empty."""
        given = self.part.get(long)
        return (given.text or None) if given is not None else None


def resources(asked: Asking) -> Resources:
    """Raises GrammarError with Slurm's text for what no node could give."""
    with gres.told_by(asked.program, asked.refuse):
        return _resources(asked)


def _resources(asked: Asking) -> Resources:
    """GPUs per task and in all are the same GPUs: the former then say how many there are."""
    part, spelling = asked.part, asked.spelling
    nodelist = _nodelist(asked)[: asked.number("ntasks")]
    low, high = _node_count(asked, len(nodelist))
    fixed = low if high in {low, None} else None
    gpus = gres.counted(part, spelling)
    gpu_layout.must_nest(gpus)
    each, whole = gres.per_node(part, spelling), gres.per_job(part, spelling, nodes=fixed)
    by_task = gres.per_task(part, spelling)
    layout = _layout(asked, gpus, Layout(least=low, most=high))
    gres.must_have_gpus(part, gpus=gres.total((*each, *whole, *by_task)))
    gres.must_be_of_one_mind(part, (*each, *whole, *by_task))
    _must_have_nodes(asked, nodelist)
    exclude = _exclude(asked, nodelist)
    shape = _shape(asked)
    return Resources(
        min_nodes=layout.least,
        max_nodes=layout.most,
        tasks=layout.tasks,
        tasks_per_node=layout.tasks_per_node,
        cpus_per_task=asked.number("cpus-per-task") or gres.tres_per_task(part).get("cpu"),
        min_cpus_per_node=asked.number("mincpus"),
        sockets=shape[0],
        cores_per_socket=shape[1],
        threads_per_core=shape[2],
        tasks_per_socket=layout.tasks_per_socket,
        tasks_per_core=asked.number("ntasks-per-core"),
        mem_per_node_mib=_whole_node(asked) or asked.memory("mem"),
        mem_per_cpu_mib=None if _whole_node(asked) else asked.memory("mem-per-cpu"),
        mem_per_gpu_mib=asked.memory("mem-per-gpu"),
        tmp_mib=asked.number("tmp"),
        gres=each,
        gpus=() if by_task or _are_the_same(each, whole) else whole,
        gpus_per_task=by_task,
        cpus_per_gpu=asked.number("cpus-per-gpu"),
        constraint=_features(asked, "constraint"),
        prefer=_features(asked, "prefer"),
        nodelist=nodelist,
        exclude=exclude,
        exclusive=asked.value("exclusive") == "exclusive",
        contiguous="contiguous" in part,
    )


def _must_have_nodes(asked: Asking, nodelist: tuple[str, ...]) -> None:
    if asked.value("distribution") == "arbitrary" and not nodelist:
        raise failed(asked.program, NO_HOSTS)


NO_HOSTS = (
    "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"
)


def _node_count(asked: Asking, named: int) -> tuple[int | None, int | None]:
    """Least and most; a most of 0 is refused by the controller, but for `--test-only` (25.11).

    More nodes join those that are `named` where they are too few.
    """
    given = asked.part.get("nodes")
    if given is None:
        return named or None, None
    if "test-only" in asked.part:
        return given.value.low or None, given.value.high or None
    return given.value.low or None, given.value.high


def _are_the_same(each: Iterable[Gres], whole: Iterable[Gres]) -> bool:
    """Whether the GPUs of nodes are those of the job, shared out evenly among some of them."""
    kinds = {one.type for one in (*each, *whole) if one.name == gres.GPU}
    node = gres.total(each)
    return len(kinds) == 1 and node > 0 and gres.total(whole) % node == 0


def _layout(asked: Asking, gpus: gres.Gpus, nodes: Layout) -> Layout:
    """Nodes and tasks as they are asked for outright, or as GPUs imply them."""
    told = replace(
        nodes,
        tasks=asked.number("ntasks") or _by_geometry(asked),
        tasks_per_node=asked.number("ntasks-per-node"),
        tasks_per_socket=asked.number("ntasks-per-socket"),
        sockets=_shape(asked)[0],
    )
    each = asked.number("ntasks-per-gpu") or asked.number("ntasks-per-tres")
    return gpu_layout.settled(gpus, told, tasks_per_gpu=each)


def _whole_node(asked: Asking) -> Literal["ALL"] | None:
    """`--mem-per-cpu=0` is all memory of the nodes, as `--mem=0` (22.05)."""
    return "ALL" if asked.memory("mem-per-cpu") == "ALL" else None


def _shape(asked: Asking) -> tuple[int | None, int | None, int | None]:
    """Sockets of a node, cores of a socket, threads of a core, one by one or as `-B` has them."""
    hint = HINTED.get(asked.text("hint") or "")
    if hint is not None:
        return hint
    given = asked.value("extra-node-info")
    short = [*(given if isinstance(given, tuple) else ()), None, None, None]
    sockets, cores, threads = (
        asked.number(long) or short[place] for place, long in enumerate(SHAPE_OPTIONS)
    )
    return sockets, cores, threads


HINTED = {
    "compute_bound": (None, None, 1),
    "memory_bound": (None, 1, 1),
    "nomultithread": (None, None, 1),
}
"""What `--hint` makes of the shape, whatever else is asked of it (22.05)."""
SHAPE_OPTIONS = ("sockets-per-node", "cores-per-socket", "threads-per-core")


def _by_geometry(asked: Asking) -> int | None:
    """A task for each thread of what `-B`, or a fixed number of nodes, has of sockets and cores."""
    pieces = [piece for piece in _shape(asked) if piece]
    nodes = asked.value("nodes")
    fixed = nodes is not None and nodes.high in (None, nodes.low)
    if not pieces or not (fixed or "extra-node-info" in asked.part):
        return None
    return max(1, nodes.low if nodes is not None else 1) * prod(pieces)


def _features(asked: Asking, long: str) -> str | None:
    text = asked.text(long)
    if text is None:
        return None
    if any(char.isspace() for char in text):
        raise asked.refuse(BAD_FEATURE)
    try:
        return read_features(text)
    except BadOption:
        raise asked.refuse(BAD_FEATURE) from None


def read_features(text: str) -> str:
    """Features as sbatch takes them; a comma is an `&`. Raises BadOption."""
    text = text.replace(",", "&")
    constraint.parse(text)
    return text


def _nodelist(asked: Asking) -> tuple[str, ...]:
    text = asked.text("nodelist")
    if text is None and "nodelist" in asked.part and not asked.part.keys() & {"nodes", "test-only"}:
        raise asked.refuse(NO_NODES)
    if asked.text("nodefile") and _last(asked, "nodelist", "nodefile") == "nodefile":
        text = _nodefile(asked, asked.text("nodefile") or "")
    elif text and "/" in text:
        text = asked.read_nodefile(text)
    text = ",".join((text or "").split())
    if not text:
        return ()
    try:
        names = expand(text)
    except HostlistError:
        raise fatal(asked.program, "Invalid node list specified") from None
    return tuple(sorted_names(set(names)))


def _last(asked: Asking, *longs: str) -> str:
    """Which of the options was given last."""
    return [long for long in asked.part if long in longs][-1]


def _nodefile(asked: Asking, file: str) -> str:
    try:
        return asked.read_nodefile(file)
    except GrammarError as wrong:
        raise GrammarError(
            wrong.stderr + error_line(asked.program, "Invalid --nodefile node file"), OPTION_ERROR
        ) from None


def _exclude(asked: Asking, nodelist: Iterable[str]) -> tuple[str, ...]:
    text = asked.text("exclude")
    if text and "/" in text:
        text = ",".join(asked.read_nodefile(text).split())
    if not text:
        return ()
    try:
        names = tuple(sorted_names(set(expand(text))))
    except HostlistError:
        raise asked.refuse(BAD_NODE) from None
    if set(names) & set(nodelist):
        raise asked.refuse(BAD_NODE)
    return names


def must_know(asked: Asking) -> None:
    """Refuses nodes, then partitions that the site has not: the controller's order (22.05).

    No name at all is the default partition (25.11; 22.05 refuses it).
    """
    wanted = (*_nodelist(asked), *_exclude(asked, ()))
    declared = {node.name for node in asked.site.nodes} if wanted else set()
    for name in wanted:
        if name not in declared and not _elastic(asked.site, name):
            raise asked.refuse(BAD_NODE)
    names = [name for name in (asked.text("partition") or "").split(",") if name]
    unknown = ",".join(name for name in names if asked.site.partition(name) is None)
    if unknown:
        line = FIRST_LINES["partition"].format(unknown)
        raise asked.refuse_after(line, BAD_PARTITION)


def _elastic(site: Site, name: str) -> bool:
    pools = [partition.elastic for partition in site.partitions if partition.elastic]
    for pool in pools:
        digits = name.removeprefix(pool.prefix)
        if name.startswith(pool.prefix) and digits.isdecimal():
            return 1 <= int(digits) <= pool.max_nodes
    return False
