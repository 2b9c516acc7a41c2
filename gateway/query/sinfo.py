"""The columns of sinfo: what is told of a partition and of its nodes (25.11.7)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from broker.model.site import Partition
from gateway.query import partwords as words
from gateway.query.context import Context
from gateway.query.fits import SINFO_FITS
from gateway.query.layout import Cell, Layout, by_letters, by_names
from gateway.query.moments import show_moment
from gateway.query.nodes import NodeView, free_of, host_of, load_of, used_gres
from gateway.query.shownode import node_address
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_short

INFINITE = "infinite"
NOTHING = "n/a"


@dataclass(frozen=True, slots=True)
class Group:
    """A line of sinfo: nodes of a partition; without nodes when none was chosen."""

    part: Partition
    nodes: tuple[NodeView, ...]

    @property
    def first(self) -> NodeView | None:
        return self.nodes[0] if self.nodes else None


Value = Callable[[Group, Context], str]

# ---------------------------------------------------------------- values of a partition


def part_star(group: Group, _: Context) -> str:
    return group.part.name + ("*" if group.part.default else "")


def part_name(group: Group, _: Context) -> str:
    return group.part.name


AVAILABLE = {"UP": "up", "DOWN": "down", "DRAIN": "drain", "INACTIVE": "inact"}


def available(group: Group, _: Context) -> str:
    return AVAILABLE.get(group.part.state, group.part.state.lower())


def longest(group: Group, _: Context) -> str:
    return show_short(group.part.max_time, INFINITE)


def usual_time(group: Group, _: Context) -> str:
    default = group.part.default_time
    return NOTHING if default is None else show_short(default, INFINITE)


def job_size(group: Group, _: Context) -> str:
    least, most = group.part.min_nodes or 1, group.part.max_nodes
    if most is None:
        return f"{least}-{INFINITE}"
    return str(least) if least == most else f"{least}-{most}"


def of_part(text: Callable[[Partition], object]) -> Value:
    """A value that the partition alone has."""
    return lambda group, _ctx: str(text(group.part))


def always(text: str) -> Value:
    """A value that is the same for every partition and node here."""
    return lambda _group, _ctx: text


# ---------------------------------------------------------------- values of nodes


def counted(group: Group) -> tuple[int, int, int, int]:
    kinds = [node.kind for node in group.nodes]
    counts = [kinds.count(kind) for kind in ("allocated", "idle", "other")]
    return counts[0], counts[1], counts[2], len(kinds)


def nodes_ai(group: Group, _: Context) -> str:
    allocated, idle, _other, _total = counted(group)
    return f"{allocated}/{idle}"


def nodes_aiot(group: Group, _: Context) -> str:
    return "/".join(map(str, counted(group)))


def node_count(group: Group, _: Context) -> str:
    return str(len(group.nodes))


def cpus_aiot(group: Group, _: Context) -> str:
    sums = [sum(column) for column in zip(*[node.cpus() for node in group.nodes], strict=True)]
    return "/".join(map(str, sums or [0, 0, 0, 0]))


def node_list(group: Group, _: Context) -> str:
    return fold(node.name for node in group.nodes)


def short_state(group: Group, _: Context) -> str:
    return group.first.short if group.first else NOTHING


def long_state(group: Group, _: Context) -> str:
    return group.first.long if group.first else NOTHING


def reserved_by(group: Group, _: Context) -> str:
    return group.first.reservation if group.first else ""


def joined_state(group: Group, _: Context) -> str:
    return group.first.joined if group.first else NOTHING


def _lowest(get: Callable[[NodeView], int]) -> Value:
    """The least of the nodes, with a plus where others have more."""

    def value(group: Group, _: Context) -> str:
        numbers = {get(node) for node in group.nodes}
        if not numbers:
            return "0"
        return f"{min(numbers)}{'+' if len(numbers) > 1 else ''}"

    return value


def _from_record(name: str, missing: Any) -> Callable[[NodeView], Any]:
    return lambda node: getattr(node.record, name) if node.record else missing


def _geometry(node: NodeView) -> str:
    record = node.record
    if record is None:
        return "1:1:1"
    return f"{record.sockets}:{record.cores_per_socket}:{record.threads_per_core}"


def geometry(group: Group, _: Context) -> str:
    shapes = sorted({_geometry(node) for node in group.nodes})
    return shapes[0] + ("+" if len(shapes) > 1 else "") if shapes else "0:0:0"


def features(group: Group, _: Context) -> str:
    record = group.first.record if group.first else None
    return ",".join(record.features) if record and record.features else "(null)"


def active_features(group: Group, ctx: Context) -> str:
    """All that a node has; a getter of its own, by which `-v` tells the two columns apart."""
    return features(group, ctx)


def gres(group: Group, _: Context) -> str:
    record = group.first.record if group.first else None
    return record.gres_text if record and record.gres_text else "(null)"


def gres_used(group: Group, _: Context) -> str:
    """How many of each kind the first node's jobs hold."""
    return "(null)" if group.first is None else used_gres(group.first)


def host_names(group: Group, ctx: Context) -> str:
    return fold({host_of(node, ctx) for node in group.nodes})


def address(group: Group, _: Context) -> str:
    return ",".join(dict.fromkeys(node_address(node) for node in group.nodes))


def reason(group: Group, _: Context) -> str:
    record = group.first.record if group.first else None
    return record.reason if record and record.reason else "none"


def reason_time(group: Group, ctx: Context) -> str:
    record = group.first.record if group.first else None
    if record is None or not record.reason or record.reason_at is None:
        return "Unknown"
    return show_moment(record.reason_at, ctx)


def reason_user(group: Group, ctx: Context) -> str:
    record = group.first.record if group.first else None
    if record is None or not record.reason or record.reason_uid is None:
        return "Unknown"
    return ctx.user_name(record.reason_uid)


def reason_user_long(group: Group, ctx: Context) -> str:
    name = reason_user(group, ctx)
    record = group.first.record if group.first else None
    return name if name == "Unknown" or record is None else f"{name}({record.reason_uid})"


def used_memory(group: Group, _: Context) -> str:
    numbers = sorted({node.used.mem_mib for node in group.nodes}) or [0]
    return f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def real_memory(node: NodeView) -> int:
    """MiB of the machine, as configured."""
    record = node.record
    return (record.real_memory_mib or node.whole.mem_mib) if record else 0


def _between(get: Callable[[NodeView, Context], float | None], form: str) -> Value:
    """The values of the nodes, lowest to highest; N/A where none is known."""

    def value(group: Group, ctx: Context) -> str:
        found = [one for node in group.nodes if (one := get(node, ctx)) is not None]
        texts = [format(one, form) for one in (min(found), max(found))] if found else ["N/A"]
        return "-".join(dict.fromkeys(texts))

    return value


load = _between(load_of, ".2f")
free_memory = _between(free_of, "d")


def version(_: Group, ctx: Context) -> str:
    return ctx.site.version


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of sinfo; `apart` keeps nodes apart that differ in it, `exact` only with --exact."""

    letter: str
    long: str
    header: str
    text: Value
    apart: Value | None = None
    exact: Value | None = None


cpus = _lowest(lambda node: node.whole.cpu)
memory = _lowest(lambda node: node.whole.mem_mib)
weight = _lowest(_from_record("weight", 1))
sockets = _lowest(_from_record("sockets", 1))
cores = _lowest(_from_record("cores_per_socket", 1))
threads = _lowest(_from_record("threads_per_core", 1))

# fmt: off
COLUMNS = (
    Column("",  "AllocMem",          "ALLOCMEM",          used_memory,  apart=used_memory),
    Column("S", "AllocNodes",        "ALLOCNODES",        always("all")),
    Column("a", "Available",         "AVAIL",             available),
    Column("V", "Cluster",           "CLUSTER",           always("N/A")),
    Column("",  "Comment",           "COMMENT",           always("(null)")),
    Column("Y", "Cores",             "CORES",             cores, exact=cores),
    Column("c", "CPUs",              "CPUS",              cpus, exact=cpus),
    Column("O", "CPUsLoad",          "CPU_LOAD",          load),
    Column("C", "CPUsState",         "CPUS(A/I/O/T)",     cpus_aiot),
    Column("L", "DefaultTime",       "DEFAULTTIME",       usual_time),
    Column("d", "Disk",              "TMP_DISK",          always("0")),
    Column("",  "Extra",             "EXTRA",             always("(null)")),
    Column("f", "Features",          "AVAIL_FEATURES",    features, apart=features),
    Column("b", "features_act",      "ACTIVE_FEATURES",   active_features, apart=features),
    Column("e", "FreeMem",           "FREE_MEM",          free_memory),
    Column("G", "Gres",              "GRES",              gres, apart=gres),
    Column("",  "GresUsed",          "GRES_USED",         gres_used, apart=gres_used),
    Column("g", "Groups",            "GROUPS",            of_part(words.groups_in_short)),
    Column("B", "MaxCPUsPerNode",    "MAX_CPUS_PER_NODE", of_part(words.most_cpus)),
    Column("m", "Memory",            "MEMORY",            memory, exact=memory),
    Column("o", "NodeAddr",          "NODE_ADDR",         address, apart=address),
    Column("A", "NodeAI",            "NODES(A/I)",        nodes_ai),
    Column("F", "NodeAIOT",          "NODES(A/I/O/T)",    nodes_aiot),
    Column("n", "NodeHost",          "HOSTNAMES",         host_names, apart=host_names),
    Column("N", "NodeList",          "NODELIST",          node_list),
    Column("D", "Nodes",             "NODES",             node_count),
    Column("h", "OverSubscribe",     "OVERSUBSCRIBE",     of_part(words.sharing)),
    Column("P", "Partition",         "PARTITION",         part_star),
    Column("R", "PartitionName",     "PARTITION",         part_name),
    Column("",  "Port",              "PORT",              always("0")),
    Column("M", "PreemptMode",       "PREEMPT_MODE",      of_part(words.preempt_mode)),
    Column("I", "PriorityJobFactor", "PRIO_JOB_FACTOR",   of_part(words.job_factor)),
    Column("p", "PriorityTier",      "PRIO_TIER",         of_part(lambda part: part.priority_tier)),
    Column("E", "Reason",            "REASON",            reason, apart=reason),
    Column("i", "Reservation",       "RESERVATION",       reserved_by, apart=reserved_by),
    Column("r", "Root",              "ROOT",              of_part(words.root_only)),
    Column("",  "Share",             "OVERSUBSCRIBE",     of_part(words.sharing)),
    Column("s", "Size",              "JOB_SIZE",          job_size),
    Column("X", "Sockets",           "SOCKETS",           sockets, exact=sockets),
    Column("z", "SocketCoreThread",  "S:C:T",             geometry, exact=geometry),
    Column("t", "StateCompact",      "STATE",             short_state, apart=long_state),
    Column("",  "StateComplete",     "STATECOMPLETE",     joined_state, apart=joined_state),
    Column("T", "StateLong",         "STATE",             long_state, apart=long_state),
    Column("Z", "Threads",           "THREADS",           threads, exact=threads),
    Column("l", "Time",              "TIMELIMIT",         longest),
    Column("H", "TimeStamp",         "TIMESTAMP",         reason_time, apart=reason_time),
    Column("u", "User",              "USER",              reason_user, apart=reason_user),
    Column("U", "UserLong",          "USER",              reason_user_long, apart=reason_user_long),
    Column("v", "Version",           "VERSION",           version),
    Column("w", "Weight",            "WEIGHT",            weight, exact=weight),
)
# fmt: on
BY_LETTER = {column.letter: column for column in COLUMNS if column.letter}
PART_LETTERS = frozenset("PRalLsrpI")
"""Columns that tell of a partition."""
BY_TEXT = {column.text: column for column in COLUMNS}
TIMED = frozenset((load, free_memory))
"""What changes by itself."""


def _cell(column: Column) -> Cell[Group]:
    timed = column.text in TIMED
    return Cell(column.header, column.text, timed, SINFO_FITS.get(column.letter))


LETTER_CELLS = {letter: _cell(column) for letter, column in BY_LETTER.items()}
NAME_CELLS = {column.long.lower(): _cell(column) for column in COLUMNS}


_LETTERS = sorted(BY_LETTER, key=lambda letter: (letter.isupper(), letter))
_BARRED = [f"{letter} |" if letter.isupper() else f"{letter}|" for letter in _LETTERS]
EVERY = (*_BARRED[:-1], _BARRED[-1].rstrip("|"))
"""What `all` shows: small letters, then capitals, with bars between (25.11)."""
EVERY_CELL = tuple((LETTER_CELLS[text[0]], text[1:]) for text in EVERY)


@lru_cache(maxsize=64)
def sinfo_letters(text: str) -> Layout[Group]:
    """`sinfo -o`, compiled."""
    return by_letters(text, LETTER_CELLS, every=EVERY)


@lru_cache(maxsize=64)
def sinfo_names(text: str) -> Layout[Group]:
    """`sinfo -O`, compiled."""
    return by_names(text, NAME_CELLS, every=EVERY_CELL)
