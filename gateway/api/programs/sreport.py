"""sreport: use of the past and of what runs, from the ledger's sums (25.11)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from accounting.rollup import DOWN, JOBS, PLANNED
from gateway.api.desk import Desk
from gateway.api.programs.early import TOO_MANY, help_of
from gateway.api.programs.reading import (
    Finished,
    Options,
    fail,
    finishing,
    read_options,
    reader,
    style_of,
)
from gateway.api.programs.scontrol_words import is_short_for
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
from gateway.query.reports import Field, UnknownFieldError, fields_of, find, table
from gateway.query.reportunits import UNITS

WIDTHS = {
    "Cluster": 9, "Account": 15, "Login": 9, "Proper Name": 15, "Used": 8, "Energy": 8,
    "TRES Name": 14, "Allocated": 8, "Down": 8, "PLND Down": 8, "Idle": 8, "Over Comm": 8,
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
LEAST_OF = {"Account": 2, "Allocated": 2}
"""Letters of columns that are enough where one is not (22.05)."""
AMOUNTS = (*USED, *STATES, "Over Comm")
"""Columns that are as wide as the seconds they tell of, whatever a format says."""
ALIASES = {"Reserved": "Planned", "CpuCount": "TRES Count"}
"""What a format may call columns of the cluster's utilization too (22.05)."""
EXTRA = ("Over Comm", "TRES Count")
"""Of the cluster's utilization, where a format asks for them."""
BAD_KEYWORD = "invalid keyword: {}\n"
BAD_REPORT = "Not valid report {}\nValid {} reports are, {}\n"
BAD_FIELD = " Unknown field '{}'\n"
TOO_FEW = "too few arguments for keyword:{}\n"
DENIED = "sreport: error: Your user doesn't have privilege to perform this action\n"
SILENT = frozenset(
    {"exit", "nonparsable", "noheader", "parsable", "parsable2", "quiet", "quit", "time", "verbose"}
)
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
WHICH_CLUSTERS = ("all_clusters", "cluster", "clusters", "local")
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
    _maybe_silent(options.words, ctx)
    kind = _report(options.words)
    uid = call.peer.uid
    if kind.denied is not None and not (ctx.site.is_run_by(uid) or ctx.site.operates(uid)):
        return Answer(err=DENIED + kind.denied, code=int(bool(kind.denied)))
    words = words_of(options, ctx, takes=kind.takes, told=kind.unknown)
    _must_tell_nodes(kind, words, options)
    viewer = await desk.viewer(uid)
    asked = await _asked(desk, ctx, kind, words=words, viewer=viewer)
    if kind.sized and not groups_of(asked):
        raise fail(words.said + NO_GROUPS)
    top = "" if options.has("noheader") else _top(kind, asked, options, window=words.window)
    shown, unknown = _table(kind, asked, options)
    said = "".join(BAD_FIELD.format(name) for name in unknown)
    return Answer(out=top + shown, err=words.said + said, code=1 if unknown else words.code)


def _maybe_silent(words: Sequence[str], ctx: Context) -> None:
    """Raises Finished for words of the prompt."""
    low = words[0].lower()
    if is_short_for(low, "help", 2):
        raise Finished(help_of("sreport", words))
    if low not in SILENT and low != "version":
        return
    if len(words) > 1 and low != "time":
        raise fail(TOO_MANY.format(words[0]))
    raise Finished(Answer(out=f"slurm {ctx.site.version}\n" if low == "version" else ""))


def _report(words: Sequence[str]) -> Report:
    group = next(
        (name for name in GROUPS if is_short_for(words[0], name, LEAST.get(("", name), 1))), None
    )
    if group is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    if len(words) == 1:
        raise fail(TOO_FEW.format(words[0]))
    reports = GROUPS[group].items()
    found = [
        one for full, one in reports if is_short_for(words[1], full, LEAST.get((group, full), 1))
    ]
    if found:
        return found[0]
    raise fail(BAD_REPORT.format(words[1], group, NAMES[group]))


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
        if named:
            unit = f"TRES type is {_typed(str(named), asked.tres[0])}\n{unit}"
    return f"{RULE}{title} {span}\n{unit}\n{RULE}"


def _typed(named: str, tres: str) -> str:
    """As it was asked for."""
    return next((word for word in named.split(",") if tres.startswith(word.lower() or " ")), tres)


def _table(kind: Report, asked: Asked, options: Options) -> tuple[str, list[str]]:
    """The table, and names of fields that there are not: the others are shown (22.05)."""
    rows = kind.rows(asked) if asked.here else []
    known = _columns(asked, kind, rows)
    usual = ",".join(_spelled(kind, name) for name in _usual(kind, options))
    words = (asked.given.get("format") or usual).lower().split(",")
    unknown = [word.partition("%")[0] for word in words if word and not _is_there(word, known)]
    there = [word for word in words if word and _is_there(word, known)]
    fields = [_sized(field, known, kind) for field in fields_of(",".join(there), known)]
    fields += _size_columns(asked) if kind.sized else ()
    return table(fields, rows, style_of(options)), unknown


def _is_there(word: str, known: Sequence[Field[Row]]) -> bool:
    try:
        find(word.partition("%")[0], known)
    except UnknownFieldError:
        return False
    return True


def _sized(field: Field[Row], known: Sequence[Field[Row]], kind: Report) -> Field[Row]:
    """A width of 0 is none that is asked for; those of amounts are the amounts' (22.05)."""
    usual = next(one.width for one in known if one.name == field.name)
    keeps = not field.width or (field.header in AMOUNTS and not kind.named)
    return replace(field, width=usual) if keeps else field


def _spelled(kind: Report, name: str) -> str:
    usual = name.replace(" ", "")
    return usual if kind.sized else SPELLED.get(name, usual)


def _usual(kind: Report, options: Options) -> tuple[str, ...]:
    tres = bool(options.text("tres"))
    if kind.sized:
        return kind.columns
    sums = tuple(name for name in kind.sums if not (tres and name == "Energy"))
    return (*kind.columns, *(("TRES Name",) if tres or kind.named else ()), *sums)


def _columns(asked: Asked, kind: Report, rows: Sequence[Row]) -> list[Field[Row]]:
    texts: dict[str, Callable[[Row], str]] = {
        "Cluster": lambda _: asked.ctx.site.cluster,
        "Account": lambda row: row.line.account,
        "Login": lambda row: row.line.user,
        "Proper Name": lambda row: asked.names.get(row.line.user, ""),
        "QOS": lambda row: row.line.qos,
        "WCKey": lambda row: row.line.wckey,
        "Wckey": lambda row: row.line.wckey if "Wckey" in kind.columns else row.line.account,
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

    found = [
        Field(_spelled(kind, name), name, width, value(name), least=LEAST_OF.get(name, 1))
        for name, width in _widths(asked, kind, rows).items()
    ]
    also = [(other, one) for other, name in ALIASES.items() for one in found if one.header == name]
    return found + [replace(one, name=other) for other, one in also if kind.states]


def _widths(asked: Asked, kind: Report, rows: Sequence[Row]) -> dict[str, int]:
    widths = {**WIDTHS, **kind.widths}
    if kind.sized:
        widths["Wckey"] = widths["Cluster"]  # one column, which reports of jobs write otherwise
        del widths["WCKey"]
    elif kind.grows and not asked.unit.in_parts:
        for name in AMOUNTS:
            most = max((row.amounts.get(name, 0) for row in rows), default=0)
            widths[name] = max(widths[name], len(str(most)))
    if "tree" in asked.given:
        widths["Account"] = INDENTED
    if asked.unit.in_parts:
        widths |= {name: widths[name] + PARTS for name in AMOUNTS}
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
