"""Kinds of values, and how each command writes them: an unset instant is N/A or Unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from accounting.rates import dollars
from accounting.tres import Tres, memory_text
from broker.model.job import ExitCode
from broker.model.spec import ALL, UNLIMITED, Limit, Memory
from gateway.query.context import Context
from gateway.query.moments import show_moment
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import UNITS, show_cpu_time, show_long, show_scaled, show_short

Writer = Callable[[Any, Context], str]
"""A value, never None, to text."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Writers per command, and the words for a value that is not set."""

    squeue: Writer
    scontrol: Writer
    sacct: Writer
    squeue_none: str = "(null)"
    scontrol_none: str = "(null)"
    sacct_none: str = ""


def plain(value: object, _: Context) -> str:
    """As it is."""
    return str(value)


def _count(value: int, ctx: Context) -> str:
    return scaled(value, ctx, "") if value >= UNIT_STEP and not ctx.noconvert else str(value)


UNIT_STEP = 1024
INT_MAX = 2**31


def scaled(number: int, ctx: Context, unit: str) -> str:
    """A size counted in `unit` (empty: ones), in the unit asked for or the largest exact one."""
    if ctx.noconvert:
        return f"{number}{unit}"
    if ctx.unit:
        return forced(number, unit, ctx.unit)
    return show_scaled(number, unit) if unit else _ones(number)


def _ones(number: int) -> str:
    value, power = float(number), 0
    while value >= UNIT_STEP and value % 512 == 0 and power < len(UNITS):
        value, power = value / UNIT_STEP, power + 1
    unit = UNITS[power - 1] if power else ""
    return f"{value:.0f}{unit}" if value == int(value) else f"{value:.2f}{unit}"


def forced(number: int, unit: str, wanted: str) -> str:
    """The size in the unit wanted: whole, or with two decimals (sacct --units, 25.11)."""
    steps = UNITS.find(wanted) - (UNITS.find(unit) if unit else -1)
    value = number / UNIT_STEP**steps
    return f"{value:.0f}{wanted}" if value == int(value) else f"{value:.2f}{wanted}"


def _underscored(value: str, _: Context) -> str:
    return value.replace(" ", "_")


def _flag(value: bool, _: Context) -> str:
    return "1" if value else "0"


def _moment(value: int, ctx: Context) -> str:
    return show_moment(value, ctx)


@lru_cache(maxsize=8192)
def _span(value: Limit) -> str:
    """squeue's form; the same few spans come again and again in a long listing."""
    return "INVALID" if isinstance(value, int) and value < 0 else show_short(value)


def _moment_or_word(value: int | str, ctx: Context) -> str:
    return value if isinstance(value, str) else show_moment(value, ctx)


def _short(value: Limit, _: Context) -> str:
    return _span(value)


def _limit(value: Limit, _: Context) -> str:
    """squeue keeps limits in 32 bits: one that does not fit is INVALID (25.11)."""
    return "INVALID" if isinstance(value, int) and value >= INT_MAX else _span(value)


def _long(value: Limit, _: Context) -> str:
    return show_long(value)


def _minutes(value: Limit, _: Context) -> str:
    return UNLIMITED if value == UNLIMITED else str(value // 60)


def _memory(value: Memory, ctx: Context) -> str:
    return "0" if value == ALL or not value else scaled(int(value), ctx, "M")


def _memory_tres(value: int, ctx: Context) -> str:
    natural = not (ctx.unit or ctx.noconvert)
    return memory_text(value) if natural else scaled(value, ctx, "M")


def _hosts(value: tuple[str, ...], _: Context) -> str:
    return value[0] if len(value) == 1 else fold(value)


def _cpu(value: int, _: Context) -> str:
    return show_cpu_time(value) if value else "00:00:00"


def _kibibytes(value: int, ctx: Context) -> str:
    return scaled(value, ctx, "K") if value else "0"


def _money(value: int, _: Context) -> str:
    return dollars(value)


def _tres_shown(value: tuple[Tres, int | None], ctx: Context) -> dict[str, str]:
    tres, units = value
    shown = {
        "cpu": str(tres.cpu) if tres.cpu else "",
        "mem": _memory_tres(tres.mem_mib, ctx) if tres.mem_mib else "",
        "node": str(tres.node) if tres.node else "",
        "billing": str(units) if units else "",
        **{f"gres/{name}": str(count) for name, count in tres.gres},
    }
    return {name: text for name, text in shown.items() if text}


def _tres_by_id(value: tuple[Tres, int | None], ctx: Context) -> str:
    return ",".join(f"{name}={text}" for name, text in _tres_shown(value, ctx).items())


def _tres_by_name(value: tuple[Tres, int | None], ctx: Context) -> str:
    return ",".join(sorted(f"{name}={text}" for name, text in _tres_shown(value, ctx).items()))


def _exit(value: ExitCode, _: Context) -> str:
    return f"{value.code}:{value.signal}"


def _same(write: Writer, *nones: str) -> Kind:
    return Kind(write, write, write, *nones)


TEXT = _same(plain)
"""Text or a number; `(null)` where there is none."""
PLAIN = _same(plain, "", "", "")
"""Empty where there is none."""
NAMED = _same(plain, "N/A", "N/A")
REASON = Kind(plain, _underscored, plain)
"""Slurm's word for why a job waits or failed; scontrol puts underscores for blanks."""
FLAG = _same(_flag)
MOMENT = _same(_moment, "N/A", "Unknown", "Unknown")
BEGUN = _same(_moment_or_word, "N/A", "Unknown", "Unknown")
"""A start, or sacct's word for one that never was."""
DEADLINE = _same(_moment, "N/A", "N/A", "None")
SPAN = Kind(_short, _long, _long, "NOT_SET", "N/A", "")
LIMIT = Kind(_limit, _long, _long, "NOT_SET", "N/A", "")
RAW_MINUTES = _same(_minutes)
MEMORY = _same(_memory)
HOSTS = _same(_hosts, "", "(null)", "None assigned")
EXIT = _same(_exit)
TRES = Kind(_tres_by_id, _tres_by_id, _tres_by_name, "N/A")
HELD = _same(_hosts, "", "", "None assigned")
"""Nodes that a job holds: scontrol leaves the place empty while there are none."""
HOST = _same(plain, "n/a", "", "")
EMPTY = _same(plain, "(null)", "", "")
SPECIAL = _same(plain, "N/A", "*")
"""Cores set aside for the system."""
TIME_MIN = Kind(_short, _long, _long, "N/A", "N/A")
CPU_TIME = _same(_cpu)
KIBIBYTES = _same(_kibibytes)
MONEY = _same(_money)
COUNT = _same(_count)
