"""What is asked of sreport beside the report: conditions, the time, TRES, the unit (22.05)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accounting.rollup import DAY, HOUR
from gateway.api.programs.reading import Options, fail
from gateway.query.context import Context
from gateway.query.reportunits import MINUTES, Unit, unit_of
from gateway.query.tresnames import FIXED
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.values import read_digits

BAD_CONDITION = " Unknown condition: {}\nUse keyword set to modify value\n"
BAD_TIME = "Invalid time specification (pos=0): {}\n"
BAD_COUNT = "sreport: error: Invalid value for TopCount ({})\n"
BAD_UNIT = "unknown time format {}\n"
NO_TRES = "sreport: fatal: No valid TRES given\n"
CONDITIONS = (
    "accounts", "all_clusters", "clusters", "end", "format", "groups", "names", "qos", "start",
    "topcount", "tree", "users", "wckeys", "partitions", "nodes", "jobs", "gid", "grouping",
    "flatview", "acctasparent", "printjobcount",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """Conditions by their full name, the window, TRES, the unit; what was complained of."""

    given: Mapping[str, str]
    window: tuple[int, int]
    tres: tuple[str, ...]
    unit: Unit
    said: str
    code: int


def words_of(options: Options, ctx: Context) -> Words:
    """As they were typed; most that is wrong is told and passed over. Raises Finished."""
    said: list[str] = []
    unit = unit_of(options.text("time") or MINUTES.name)
    if unit is None:
        said.append(BAD_UNIT.format(options.text("time")))
    given, unknown = _conditions(options.words[2:])
    said += unknown
    window = _window(given, ctx, said)
    if given.get("topcount") and read_digits(given["topcount"]) is None:
        unknown.append(BAD_COUNT.format(given["topcount"]))
        said.append(unknown[-1])
    tres = _tres(options, ctx)
    return Words(given, window, tres, unit or MINUTES, "".join(said), int(bool(unknown)))


def _tres(options: Options, ctx: Context) -> tuple[str, ...]:
    """The TRES of the report; cpu unless others are asked for."""
    text = (options.text("tres") or "cpu").lower()
    gres = sorted({f"gres/{name}" for node in ctx.site.nodes for name, _ in node.whole.gres})
    known = (*FIXED, *gres)
    if text == "all":
        return known
    asked = tuple(word for word in text.split(",") if word)
    if not any(word in known or word.startswith("gres/") for word in asked):
        raise fail(NO_TRES)
    return asked


def _conditions(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Conditions by their full name, and what is said of those that are none.

    Bare words name clusters.
    """
    found, said = {}, []
    for word in words:
        key, equals, value = word.partition("=")
        name = next((one for one in CONDITIONS if one.startswith(key.lower())), None)
        if name is not None:
            found[name] = value
        elif equals:
            said.append(BAD_CONDITION.format(word))
    return found, said


def _window(given: Mapping[str, str], ctx: Context, said: list[str]) -> tuple[int, int]:
    """Whole hours from start to end, one at least; yesterday where neither was given."""
    midnight = read_instant("00:00", ctx.now, offset=ctx.zone, past=True)
    start = _moment(given, "start", ctx, said=said)
    end = _moment(given, "end", ctx, said=said)
    start = midnight - DAY if start is None else start
    end = midnight if end is None else end
    start, end = _rounded(start), _rounded(end)
    return start, max(end, start + HOUR)


def _rounded(instant: int) -> int:
    """To the next hour from half past on, the seconds to minutes first."""
    minute = (instant + 30) // 60
    return (minute + 30) // 60 * HOUR


def _moment(given: Mapping[str, str], key: str, ctx: Context, *, said: list[str]) -> int | None:
    """The instant of a condition; what is none is complained of, and as good as not given."""
    if key not in given:
        return None
    try:
        return read_instant(given[key], ctx.now, offset=ctx.zone, past=True)
    except InstantError:
        said.append(BAD_TIME.format(given[key]))
        return None
