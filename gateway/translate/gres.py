"""Generic resources of options as the spec has them, in the site's names and spelling."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from broker.model.site import Site
from broker.model.spec import Gres
from broker.optimize.gpus import gpu_key, gres_type
from gateway.translate.refusals import BAD_GRES, BAD_TRES
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line
from sbatch_shim.grammar.parse import Given
from sbatch_shim.grammar.resources import NAME, SHAPE, GresError, Item, read_gpus, read_gres
from sbatch_shim.grammar.values import ALL, read_digits

GPU = "gpu"
NEEDS_SOCKETS = "--gpus-per-socket option requires --sockets-per-node specification"
NEEDS_TASKS = (
    "Failed to validate job spec. --gpus-per-task or --tres-per-task used without either --gpus or"
    " -n/--ntasks is not allowed."
)
NEEDS_GPUS_OR_TASKS = (
    "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a"
    " node/ntask specification"
)

WITH_AND_WITHOUT = "Invalid GRES specification (with and without type identification)"

Part = Mapping[str, Given]


class Gpus(NamedTuple):
    """How many GPUs are asked for in each way; 0 where nothing is said of it."""

    whole: int
    node: int
    socket: int
    task: int


class NamelessError(Exception):
    """A resource without a name, which only the controller refuses."""


class Complaint(Exception):
    """What nobody can ask for, in lines that begin with the command's name."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


@contextmanager
def told_by(program: str, refuse: Callable[[str], GrammarError]) -> Iterator[None]:
    """What is wrong within is told by the command; `refuse` makes the controller's refusal."""
    try:
        yield
    except NamelessError:
        raise refuse(BAD_TRES) from None
    except Complaint as wrong:
        lines = (error_line(program, line) for line in wrong.lines)
        raise GrammarError("".join(lines), FAILURE) from None


class Spelling:
    """How this site writes the types of GPUs; words are matched as the catalogue matches them."""

    def __init__(self, site: Site, known: Iterable[str] = ()) -> None:
        counts = [name for node in site.nodes for name, _ in node.whole.gres]
        self.names = {GPU, *(name.partition(":")[0] for name in counts)}
        types = [name.partition(":")[2] for name in counts if ":" in name]
        self._types = {gpu_key(kind): kind for kind in (*known, *types)}

    def type(self, typed: str | None) -> str | None:
        """`A10G`, `a10g`, `nvidia_a10g` in the one spelling that nodes have."""
        if typed is None:
            return None
        return self._types.get(gpu_key(typed)) or gres_type(typed)

    def gres(self, items: Iterable[Item]) -> tuple[Gres, ...]:
        """One of each label, the last one asked; none of what is asked 0 times."""
        found = {}
        for item in items:
            kind = self.type(item.type) if item.name == GPU else item.type
            gres = Gres(name=item.name, type=kind, count=item.count)
            found[gres.label()] = gres
        return tuple(gres for gres in found.values() if gres.count)


def per_node(part: Part, spelling: Spelling) -> tuple[Gres, ...]:
    """`--gres`, `--gpus-per-node`, `--gpus-per-socket`. Raises Complaint, NamelessError."""
    return spelling.gres([*_of_node(part, spelling), *_per_socket(part)])


def _of_node(part: Part, spelling: Spelling) -> list[Item]:
    """Of the two the GPUs of `--gres` count (22.05)."""
    items = _gres_items(part["gres"].text or "", spelling) if "gres" in part else []
    if any(item.name == GPU for item in items):
        return items
    return items + _gpus(part, "gpus-per-node")


def _per_socket(part: Part) -> list[Item]:
    if "gpus-per-socket" not in part:
        return []
    geometry = part["extra-node-info"].value if "extra-node-info" in part else (None,)
    sockets = part["sockets-per-node"].value if "sockets-per-node" in part else geometry[0]
    if sockets is None:
        raise Complaint(NEEDS_SOCKETS, BAD_GRES)
    return [item._replace(count=item.count * sockets) for item in _gpus(part, "gpus-per-socket")]


def _gres_items(text: str, spelling: Spelling) -> list[Item]:
    try:
        items = read_gres(text)
    except GresError as wrong:
        if wrong.kind == NAME:
            raise NamelessError(BAD_TRES) from wrong
        raise Complaint(BAD_TRES) from wrong
    if any(item.name not in spelling.names for item in items):
        raise Complaint(BAD_GRES)
    return list(items)


def per_job(part: Part, spelling: Spelling, *, nodes: int | None = None) -> tuple[Gres, ...]:
    """`--gpus`, or as many as `--ntasks-per-gpu` implies. Raises as `per_node`.

    `nodes`: how many were asked for, where that is one number.
    """
    return spelling.gres(_gpus(part, "gpus") or _implied(part, nodes))


def _implied(part: Part, nodes: int | None) -> list[Item]:
    """Where no GPU is asked for otherwise: for the tasks, else one for each node (22.05)."""
    each = next((part[long].value for long in PER_GPU if long in part), None)
    if each is None or any(long in part for long in OF_GPUS):
        return []
    count = -(-part["ntasks"].value // each) if "ntasks" in part else nodes
    return [Item(GPU, None, count)] if count else []


PER_GPU = ("ntasks-per-gpu", "ntasks-per-tres")
OF_GPUS = ("gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "tres-per-task")


def must_be_of_one_mind(part: Part, asked: Iterable[Gres]) -> None:
    """GPUs with a type and without one are not asked for together. Raises Complaint (22.05).

    Also not where `--gres` counts instead of `--gpus-per-node`.
    """
    typed = {one.type is not None for one in asked if one.name == GPU}
    typed |= {item.type is not None for item in _gpus(part, "gpus-per-node") if item.count}
    if len(typed) > 1:
        raise Complaint(WITH_AND_WITHOUT)


def per_task(part: Part, spelling: Spelling) -> tuple[Gres, ...]:
    """`--gpus-per-task` and the GPUs of `--tres-per-task`. Raises as `per_node`."""
    items = _gpus(part, "gpus-per-task")
    for name, count in tres_per_task(part).items():
        base, _, kind = name.removeprefix("gres/").partition(":")
        if base == GPU and name.startswith("gres/"):
            items.append(Item(GPU, kind or None, count))
    return spelling.gres(items)


def tres_per_task(part: Part) -> dict[str, int]:
    """Of `--tres-per-task`."""
    return counts_of((part["tres-per-task"].text or "") if "tres-per-task" in part else "")


def counts_of(text: str) -> dict[str, int]:
    """`cpu=2,gres/gpu:1` as counts by name; what has no count does nothing (25.11)."""
    found = {}
    for token in text.split(","):
        name, equals, count = token.partition("=")
        if not equals:
            name, _, count = token.rpartition(":")
        number = read_digits(count)
        if name and number is not None:
            found[name] = number
    return found


def _gpus(part: Part, long: str) -> list[Item]:
    """What is no count is taken for a type that no node has, so the engine refuses it (25.11)."""
    if long not in part:
        return []
    try:
        return list(read_gpus(part[long].text or ""))
    except GresError as wrong:
        if wrong.kind == SHAPE:
            raise Complaint(BAD_TRES) from wrong
        return [Item(GPU, part[long].text, 1)]


def counted(part: Part, spelling: Spelling) -> Gpus:
    """How many GPUs are asked for in which way; none if they are not all of one type.

    Raises as `per_node`.
    """
    ways = (
        spelling.gres(_gpus(part, "gpus")),
        spelling.gres(_of_node(part, spelling)),
        spelling.gres(_gpus(part, "gpus-per-socket")),
        per_task(part, spelling),
    )
    if len({one.type for way in ways for one in way if one.name == GPU}) > 1:
        return Gpus(0, 0, 0, 0)
    return Gpus(*map(total, ways))


def total(gres: Iterable[Gres]) -> int:
    """How many GPUs of any type."""
    return sum(one.count for one in gres if one.name == GPU)


def must_have_gpus(part: Part, *, gpus: int) -> None:
    """Refuses figures per GPU or per task that have nothing to stand on. Raises Complaint."""
    if not gpus:
        for long, name in (("cpus-per-gpu", "cpus_per_tres"), ("mem-per-gpu", "mem_per_tres")):
            if long in part and part[long].value != ALL:
                asked = f"{name}=gres/gpu:{part[long].value}"
                raise Complaint(f"Requested {asked} but did not request any GPU.", BAD_GRES)
    if _asks_for(part, "gpus-per-task") and not _says_how_many_tasks(part):
        raise Complaint(NEEDS_TASKS, BAD_GRES)
    for long in PER_GPU:
        if long in part and not gpus and not {"ntasks", "nodes", "nodelist"} & part.keys():
            raise Complaint(NEEDS_GPUS_OR_TASKS, BAD_GRES)


def _says_how_many_tasks(part: Part) -> bool:
    """Outright, by GPUs in all, or by nodes if they are one number (22.05)."""
    nodes = part["nodes"].value if "nodes" in part else None
    fixed = nodes is not None and nodes.low == nodes.high
    told = part.keys() & {"ntasks", "ntasks-per-node", "extra-node-info"}
    return fixed or bool(told) or _asks_for(part, "gpus")


def _asks_for(part: Part, long: str) -> bool:
    return any(item.count for item in _gpus(part, long))


def help_text(spelling: Spelling) -> str:
    """What `--gres=help` prints."""
    rows = "".join(f"{name}[[:type]:count]\n" for name in sorted(spelling.names))
    return f"Valid gres options are:\n{rows}"
