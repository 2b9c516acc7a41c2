"""sreport: use of the past and of what runs, from the ledger's sums (25.11)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from accounting.rollup import DOWN, JOBS, PLANNED
from gateway.api.desk import Desk
from gateway.api.programs.reading import (
    Finished,
    Options,
    fail,
    finishing,
    read_options,
    reader,
    style_of,
)
from gateway.api.programs.sreport_kinds import GROUPS, INDENTED, LEAST, NAMES, STATES, USED, Report
from gateway.api.programs.sreport_resv import Held, held
from gateway.api.programs.sreport_rows import ORDER, Asked, Row, groups_of, most_of
from gateway.api.programs.sreport_use import (
    Span,
    proper_names,
    used_by,
    used_by_jobs,
    whole_of,
)
from gateway.api.programs.sreport_words import Words, wanted_jobs, words_of
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.privacy import Viewer
from gateway.query.reports import Field, UnknownFieldError, fields_of, table
from gateway.query.reportunits import UNITS

WIDTHS = {
    "Cluster": 9, "Account": 15, "Login": 9, "Proper Name": 15, "Used": 8, "Energy": 8,
    "TRES Name": 14, "Allocated": 8, "Down": 8, "PLND Down": 8, "Idle": 8, "Over Comm": 9,
    "Planned": 8, "Reported": 8, "TRES Count": 10, "QOS": 9, "WCKey": 15, "Name": 9, "Start": 19,
    "End": 19, "TRES Time": 10,
}  # fmt: skip
PARTS = 9
"""How much wider an amount is with its percentage."""
SIZE, SIZE_PARTS = 13, 7
SPELLED = {
    "Account": "Accounts", "Proper Name": "Proper", "TRES Name": "TresName",
    "PLND Down": "PlannedDown", "Over Comm": "OverCommitted", "TRES Count": "TresCount",
}  # fmt: skip
"""Columns whose name in a format is not their headline."""
EXTRA = ("Over Comm", "TRES Count")
"""Of the cluster's utilization, where a format asks for them."""
BAD_KEYWORD = "invalid keyword: {}\n"
BAD_REPORT = "Not valid report {}\nValid {} reports are, {}\n"
BAD_FIELD = " Unknown field '{}'\n"
TOO_FEW = "too few arguments for keyword:{}\n"
DENIED = "sreport: error: Your user doesn't have privilege to perform this action\n"
SILENT = frozenset({"nonparsable", "noheader", "parsable", "parsable2", "quiet", "time", "verbose"})
"""Words of the prompt that do nothing for a command that is all there is."""
NO_PROMPT = "sreport: error: the prompt (sreport without a report) is not supported by SkyPurza\n"
ONE_TRES = (
    " Job report only supports a single --tres type.\n"
    " Generate a separate report for each TRES type.\n"
)
NO_NODES = (
    "sreport: fatal: TRES node usage is no longer reported in {}.  Please use TRES CPU instead.\n"
)
IN_PERCENT, IN_UTILIZATION = "percent format reports", "the Cluster Utilization report"
NO_GROUPS = " We need a grouping list to set up the print.\n"
ONE_CLUSTER = "Only one cluster option can be used (--all_clusters OR --cluster OR --local)\n"
WHICH_CLUSTERS = ("all_clusters", "cluster", "local")
RULE = "-" * 80 + "\n"


@finishing
async def sreport(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call)
    if sum(options.has(name) for name in WHICH_CLUSTERS) > 1:
        raise fail(ONE_CLUSTER)
    if not options.words:
        raise fail(NO_PROMPT)
    ctx = reader(desk, call, desk.snapshot(), options=options)
    _maybe_silent(options.words[0], ctx)
    kind = _report(options.words)
    uid = call.peer.uid
    if kind.denied and not (ctx.site.is_run_by(uid) or ctx.site.operates(uid)):
        raise fail(DENIED + kind.denied)
    words = words_of(options, ctx, takes=kind.takes)
    _must_tell_nodes(kind, words, options)
    viewer = await desk.viewer(uid)
    asked = await _asked(desk, ctx, kind, words=words, viewer=viewer)
    if kind.sized and not groups_of(asked):
        raise fail(words.said + NO_GROUPS)
    top = "" if options.has("noheader") else _top(kind, asked, options, window=words.window)
    try:
        shown = _table(kind, asked, options)
    except UnknownFieldError as error:
        said = words.said + BAD_FIELD.format(error)
        return Answer(out=f"{top}\n\n", err=said, code=1)
    return Answer(out=top + shown, err=words.said, code=words.code)


def _maybe_silent(word: str, ctx: Context) -> None:
    """Raises Finished for words of the prompt."""
    low = word.lower()
    if low == "version":
        raise Finished(Answer(out=f"slurm {ctx.site.version}\n"))
    if low in SILENT:
        raise Finished(Answer())


def _report(words: Sequence[str]) -> Report:
    group = next((name for name in GROUPS if _is_short(words[0], name)), None)
    if group is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    if len(words) == 1:
        raise fail(TOO_FEW.format(words[0]))
    found = [one for full, one in GROUPS[group].items() if _is_short(words[1], full)]
    if found:
        return found[0]
    raise fail(BAD_REPORT.format(words[1], group, NAMES[group]))


def _is_short(word: str, full: str) -> bool:
    return len(word) >= LEAST.get(full, 1) and full.startswith(word.lower())


def _must_tell_nodes(kind: Report, words: Words, options: Options) -> None:
    """Raises Finished for a TRES, or for several, of which a report does not tell (22.05)."""
    if kind.sized and len(words.tres) > 1:
        raise fail(ONE_TRES)
    if "node" not in (options.text("tres") or "").lower().split(","):
        return
    if words.unit.name == "percent":
        raise fail(NO_NODES.format(IN_PERCENT))
    if kind.states:
        raise fail(NO_NODES.format(IN_UTILIZATION))


async def _asked(desk: Desk, ctx: Context, kind: Report, *, words: Words, viewer: Viewer) -> Asked:
    """The report's use, read; of that what they may see, where it is told whose it is."""
    tres = tuple(name for name in words.tres if name != "node" or not kind.states)
    window = words.window
    held_then = await desk.read(_held, desk, ctx, kind, window=window)
    more = (PLANNED, *(DOWN + name for name in tres)) if kind.states else (JOBS,)
    counted = dict.fromkeys((*tres, ORDER, *more))
    jobs = await wanted_jobs(desk, words)
    private = {"account", "user"} & set(kind.by) and not viewer.may("usage")
    by = (*kind.by, "account", "user") if private else kind.by
    asked = (by, tuple(counted))
    if jobs is None:
        use = await desk.read(used_by, desk, ctx, window=window, asked=asked)
    else:
        use = await desk.read(used_by_jobs, desk, ctx, jobs, asked=asked)
    use = use.of_theirs(viewer) if private else use
    parts = {word for word in words.given.get("partitions", "").split(",") if word}
    use = use.within(parts)
    users = {user for (user,) in use.by("user")} if "user" in use.columns else set()
    names = await desk.read(proper_names, users)
    seconds = await desk.read(_seconds, desk, ctx, window)
    use = replace(use, whole=whole_of(ctx.site, use, seconds))
    sizes = whole_of(ctx.site, replace(use, found={}), 1)
    return Asked(ctx, use, words.given, tres, words.unit, names, held_then, sizes)


def _held(desk: Desk, ctx: Context, kind: Report, *, window: Span) -> list[Held]:
    """Reservations as the report tells of them. Blocks."""
    if not kind.held:
        return []
    start, end = window
    past = (start, end if kind.named else min(end, ctx.now))
    return held(desk, ctx, window=past, clipped=not kind.named)


def _seconds(desk: Desk, ctx: Context, window: Span) -> int:
    """How much of the window the cluster was there for: since the first use of it. Blocks."""
    start, end = window
    first = desk.history.first_use()
    return 0 if first is None else max(0, min(end, ctx.now) - max(start, first))


def _top(kind: Report, asked: Asked, options: Options, *, window: Span) -> str:
    start, end = window
    named = options.text("tres") or kind.named
    tres = "" if asked.unit.name == "percent" else "TRES " if named else "CPU "
    span = f"{show_moment(start, asked.ctx)} - {show_moment(end - 1, asked.ctx)}"
    span += f" ({end - start} secs)" if kind.spelled else ""
    title = kind.title.format(top=most_of(asked.given))
    unit = f"Usage reported in {tres}{UNITS[asked.unit.name]}"
    if kind.sized:
        counted = "printjobcount" in asked.given
        unit = (
            "Units are in number of jobs ran"
            if counted
            else f"Time reported in {UNITS[asked.unit.name]}"
        )
        if asked.tres[0] != "cpu":
            unit = f"TRES type is {asked.tres[0]}\n{unit}"
    return f"{RULE}{title} {span}\n{unit}\n{RULE}"


def _table(kind: Report, asked: Asked, options: Options) -> str:
    known = [*_columns(asked, kind), *(_size_columns(asked) if kind.sized else ())]
    names = _usual(kind, options, asked)
    usual = ",".join(SPELLED.get(name, name.replace(" ", "")) for name in names)
    fields = fields_of(asked.given.get("format") or usual, known)
    return table(fields, kind.rows(asked) if asked.here else (), style_of(options))


def _usual(kind: Report, options: Options, asked: Asked) -> tuple[str, ...]:
    tres = bool(options.text("tres"))
    if kind.sized:
        return (*kind.columns, *(field.name for field in _size_columns(asked)))
    sums = tuple(name for name in kind.sums if not (tres and name == "Energy"))
    return (*kind.columns, *(("TRES Name",) if tres or kind.named else ()), *sums)


def _columns(asked: Asked, kind: Report) -> list[Field[Row]]:
    texts: dict[str, Callable[[Row], str]] = {
        "Cluster": lambda _: asked.ctx.site.cluster,
        "Account": lambda row: row.line.account,
        "Login": lambda row: row.line.user,
        "Proper Name": lambda row: asked.names.get(row.line.user, ""),
        "QOS": lambda row: row.line.qos,
        "WCKey": lambda row: row.line.wckey,
        "Wckey": lambda row: row.line.wckey,
        "Name": lambda row: row.line.account,
        "Start": lambda row: show_moment(row.times[0], asked.ctx),
        "End": lambda row: show_moment(row.times[1], asked.ctx),
        "TRES Name": lambda row: row.tres,
        "TRES Count": lambda row: str(row.amounts.get("TRES Count", 0)),
        "Energy": lambda _: asked.unit.show(0, 0),
    }
    sums = {*kind.sums, *EXTRA, "Used"} - {"Energy"}

    def value(name: str) -> Callable[[Row], str]:
        return texts.get(name) or _sum_of(asked, name, name in sums)

    return [
        Field(SPELLED.get(name, name.replace(" ", "")), name, width, value(name))
        for name, width in _widths(asked, kind).items()
    ]


def _widths(asked: Asked, kind: Report) -> dict[str, int]:
    widths = {**WIDTHS, **kind.widths}
    if "Wckey" in kind.columns:
        del widths["WCKey"]  # one column, which reports of jobs write otherwise
    if "tree" in asked.given:
        widths["Account"] = INDENTED
    if asked.unit.in_parts:
        sums = (*USED, *STATES, "Over Comm")
        widths |= {name: widths[name] + PARTS for name in sums}
    return widths


def _sum_of(asked: Asked, name: str, known: bool) -> Callable[[Row], str]:
    if not known:
        return lambda _: ""
    return lambda row: asked.unit.show(row.amounts.get(name, 0), row.whole)


def _size_columns(asked: Asked) -> list[Field[Row]]:
    counted = "printjobcount" in asked.given
    width = SIZE + SIZE_PARTS if asked.unit.in_parts else SIZE

    def value(place: int) -> Callable[[Row], str]:
        def get(row: Row) -> str:
            amount = row.amounts.get(str(place), 0)
            return str(amount) if counted else asked.unit.show(amount, row.whole)

        return get

    def share(row: Row) -> str:
        return f"{100 * row.amounts.get('Share', 0) / row.whole:.2f}%" if row.whole else "0.00%"

    heads = [head for head, _ in groups_of(asked)]
    fields = [
        Field(head.replace(" ", ""), head, width, value(place)) for place, head in enumerate(heads)
    ]
    return [*fields, Field("PercentOfCluster", "% of cluster", 12, share)]
