"""`--cpu-bind`: which of its node's cpus a task of srun's is to run on (Slurm 25.11)."""

from collections import namedtuple

CpuBind = namedtuple("CpuBind", "verbose kind items")
"""Whether it is told, the kind as Slurm spells it (`cores`, `mask_cpu`; empty: none was named),
and what stands behind the colon of those that have a list."""

ALONE = {
    **dict.fromkeys(("no", "none"), "none"),
    **dict.fromkeys(("thread", "threads"), "threads"),
    **dict.fromkeys(("core", "cores"), "cores"),
    **dict.fromkeys(("socket", "sockets"), "sockets"),
    **dict.fromkeys(("ldom", "ldoms"), "ldoms"),
    "rank": "rank",
    "rank_ldom": "rank_ldom",
    "help": "help",
}
LISTED = ("map_cpu", "mask_cpu", "map_ldom", "mask_ldom")
MASKS = ("mask_cpu", "mask_ldom")
LOUD = {"v": True, "verbose": True, "q": False, "quiet": False}
HELP = """CPU bind options:
    --cpu-bind=[quiet|verbose,]KIND
        none             to no cpus in particular
        threads          each task to threads of its own
        cores            each task to whole cores
        sockets          each task to whole sockets
        ldoms            each task to whole NUMA nodes
        rank             each task to the cpu of its place on the node
        rank_ldom        each task to the NUMA node of its place
        map_cpu:LIST     tasks to these cpus, in turn
        mask_cpu:LIST    tasks to these masks of cpus, in turn
        map_ldom:LIST    tasks to these NUMA nodes, in turn
        mask_ldom:LIST   tasks to these masks of NUMA nodes, in turn
        help             this text
"""
UNRECOGNIZED = 'unrecognized --cpu-bind argument "{}"'
NO_LIST = 'missing list for "--cpu-bind={}:<list>"'
MOST_TIMES = 1 << 16
"""An item such as `0*99999999999` must not be written out."""


class BindingError(ValueError):
    """Slurm's words about a value that cannot be read."""


def read_cpu_bind(text: str) -> CpuBind:
    """The last word of a kind counts. Raises BindingError."""
    verbose, kind = False, ""
    items: tuple[str, ...] = ()
    for word in _words(text.lower()):
        name, _, rest = word.partition(":")
        if name in LOUD:
            verbose = LOUD[name]
        elif name in LISTED:
            kind, items = name, _items(name, rest)
        elif word in ALONE:
            kind, items = ALONE[word], ()
        else:
            raise BindingError(UNRECOGNIZED.format(word))
    return CpuBind(verbose, kind, items)


def _words(text: str) -> "list[str]":
    """Commas behind a list's colon part its items, until a word comes that is none."""
    found: list[str] = []
    for word in text.split(","):
        listed = bool(found) and found[-1].partition(":")[0] in LISTED
        if listed and _is_item(word, found[-1].partition(":")[0]):
            found[-1] += f",{word}"
        else:
            found.append(word)
    return found


def _items(name: str, rest: str) -> "tuple[str, ...]":
    if not rest:
        raise BindingError(NO_LIST.format(name))
    items: list[str] = []
    for item in rest.split(","):
        value, _, times = item.partition("*")
        if not _is_item(item, name):
            raise BindingError(UNRECOGNIZED.format(f"{name}:{rest}"))
        items += [_plain(value, name)] * (int(times) if times else 1)
    return tuple(items)


def _is_item(item: str, name: str) -> bool:
    value, star, times = item.partition("*")
    if star and not (times.isdecimal() and 0 < int(times) <= MOST_TIMES):
        return False
    try:
        int(value, 16 if name in MASKS or value.startswith("0x") else 10)
    except ValueError:
        return False
    return value.isalnum()


def _plain(value: str, name: str) -> str:
    """Masks without `0x`, as Slurm tells them to tasks; numbers of cpus in decimal."""
    return value.removeprefix("0x") if name in MASKS else str(int(value, 0 if "x" in value else 10))
