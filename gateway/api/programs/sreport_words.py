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

LEAST = {"accounts": 2, "all_clusters": 2}
"""Letters of conditions that are enough where one is not (22.05)."""
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


def words_of(options: Options, ctx: Context, *, takes: Sequence[str], told: str) -> Words:
    """As they were typed; most that is wrong is told and passed over. Raises Finished.

    `takes` are the report's own conditions, `told` is said of unknown ones.
    """
    said: list[str] = []
    named = options.text("time")
    unit = MINUTES if named is None else unit_of(named)
    if unit is None:
        said.append(BAD_UNIT.format(named))
    given, unknown = _conditions(options.words[2:], sorted((*CONDITIONS, *takes)), told=told)
    if named := options.text("cluster") or options.text("clusters"):
        given["clusters"] = named
    said += unknown
    window = _window(given, ctx, said)
    if given.get("topcount") and read_digits(given["topcount"].removeprefix("-")) is None:
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
    named = options.text("tres")
    text = ("cpu" if named is None else named).lower()
    gres = {f"gres/{name}" for node in ctx.site.nodes for name, _ in node.whole.gres}
    bought = {GPU} if any(part.elastic for part in ctx.site.partitions) else set()
    known = (*FIXED, *sorted(gres | bought))
    if text == "all":
        return known
    types = tuple(f"{one}:" for one in bought)
    words = (_in_full(word, known) for word in text.split(",") if word)
    asked = tuple(w for w in words if w in known or (types and w.startswith(types)))
    if not asked:
        raise fail(NO_TRES)
    return asked


def _in_full(word: str, known: Sequence[str]) -> str:
    """A kind of TRES without names may be cut short."""
    return next((one for one in known if "/" not in one and one.startswith(word)), word)


def _conditions(
    words: Sequence[str], known: Sequence[str], *, told: str
) -> tuple[dict[str, str], list[str]]:
    """Conditions by their full name, and what is said of those that the report has not.

    Bare words name clusters.
    """
    found, said = {}, []
    for word in words:
        key, equals, value = word.partition("=")
        short = [one for one in known if one.startswith(key.lower())]
        name = next((one for one in short if len(key) >= LEAST.get(one, 0)), None)
        if name is not None:
            found[name] = value
        elif equals:
            said.append(told.format(word))
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
    """The instant of a condition; what is none is complained of, and as good as not given.

    So is the first of all, without a word (22.05).
    """
    if not given.get(key):
        return None
    try:
        return read_instant(given[key], ctx.now, offset=ctx.zone, past=True) or None
    except InstantError as error:
        said.append(error.complaint())
        return None
