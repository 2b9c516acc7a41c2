"""What is asked of sreport beside the report: conditions, the time, TRES, the unit (22.05)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accounting.rollup import DAY, HOUR
from gateway.api.desk import Desk
from gateway.api.programs.reading import Options, fail
from gateway.api.programs.sacct_filters import hosts
from gateway.query.context import Context
from gateway.query.refs import read_refs
from gateway.query.reportunits import MINUTES, Unit, unit_of
from gateway.query.sacct import AllOf, Window
from gateway.query.tresnames import FIXED
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.values import read_digits

BAD_CONDITION = " Unknown condition: {}\nUse keyword set to modify value\n"
BAD_TIME = "Invalid time specification (pos=0): {}\n"
BAD_COUNT = "sreport: error: Invalid value for TopCount ({})\n"
BAD_UNIT = "unknown time format {}"
GPU = "gres/gpu"
"""What machines that are bought may have, of any type."""
NO_TRES = "sreport: fatal: No valid TRES given\n"
CONDITIONS = ("all_clusters", "clusters", "end", "format", "start")
"""Of every report."""


@dataclass(frozen=True, slots=True)
class Words:
    """Conditions by their full name, the window, TRES, the unit; what was complained of."""

    given: Mapping[str, str]
    window: tuple[int, int]
    tres: tuple[str, ...]
    unit: Unit
    said: str
    code: int


def words_of(options: Options, ctx: Context, *, takes: Sequence[str]) -> Words:
    """As they were typed; most that is wrong is told and passed over. Raises Finished.

    `takes` are the report's own conditions.
    """
    said: list[str] = []
    unit = unit_of(options.text("time") or MINUTES.name)
    if unit is None:
        said.append(BAD_UNIT.format(options.text("time")))
    given, unknown = _conditions(options.words[2:], (*CONDITIONS, *takes))
    if named := options.text("cluster") or options.text("clusters"):
        given["clusters"] = named
    said += unknown
    window = _window(given, ctx, said)
    if given.get("topcount") and read_digits(given["topcount"]) is None:
        unknown.append(BAD_COUNT.format(given["topcount"]))
        said.append(unknown[-1])
    tres = _tres(options, ctx)
    return Words(given, window, tres, unit or MINUTES, "".join(said), int(bool(unknown)))


async def wanted_jobs(desk: Desk, words: Words) -> AllOf | None:
    """The jobs that a report on sizes is of, where it names some in a way that sums do not know."""
    given = words.given
    if not {"jobs", "nodes", "gid"} & given.keys():
        return None
    groups = None
    if "gid" in given:
        named = [word for word in given["gid"].split(",") if word]
        found = [await desk.read(desk.gids, name) for name in named]
        groups = frozenset(str(number) for number in found if number is not None)
    refs = [found or () for _, found in read_refs((given.get("jobs", ""),))]
    return AllOf(
        window=Window(*words.window),
        jobs=tuple(ref for some in refs for ref in some) if "jobs" in given else None,
        nodes=hosts(given.get("nodes")),
        groups=groups,
    )


def _tres(options: Options, ctx: Context) -> tuple[str, ...]:
    """The TRES of the report; cpu unless others are asked for."""
    text = (options.text("tres") or "cpu").lower()
    gres = {f"gres/{name}" for node in ctx.site.nodes for name, _ in node.whole.gres}
    bought = {GPU} if any(part.elastic for part in ctx.site.partitions) else set()
    known = (*FIXED, *sorted(gres | bought))
    if text == "all":
        return known
    types = tuple(f"{one}:" for one in bought)
    asked = tuple(w for w in text.split(",") if w in known or (types and w.startswith(types)))
    if not asked:
        raise fail(NO_TRES)
    return asked


def _conditions(words: Sequence[str], known: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Conditions by their full name, and what is said of those that the report has not.

    Bare words name clusters.
    """
    found, said = {}, []
    for word in words:
        key, equals, value = word.partition("=")
        name = next((one for one in known if one.startswith(key.lower())), None)
        if name is not None:
            found[name] = value
        elif equals:
            said.append(BAD_CONDITION.format(word))
        else:
            found["clusters"] = ",".join(filter(None, (found.get("clusters"), word)))
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
