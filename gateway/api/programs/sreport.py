"""sreport: use of the past and of what runs, from the ledger's sums (25.11)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accounting import report
from accounting.report import Line, Sized
from gateway.api.desk import Desk
from gateway.api.programs.reading import Options, fail, finishing, read_options, reader
from gateway.api.programs.sreport_use import Use, proper_names, used_by, whole_of
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.reports import Field, Style, UnknownFieldError, fields_of, table
from gateway.query.reportunits import UNITS, Unit, unit_of
from gateway.query.tresnames import FIXED
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.values import read_digits

BAD_KEYWORD = "invalid keyword: {}\n"
BAD_REPORT = "Not valid report {}\nValid {} reports are, {}\n"
BAD_CONDITION = " Unknown condition: {}\n"
BAD_FIELD = " Unknown field '{}'\n"
BAD_TIME = "sreport: error: Bad time format: {}\n"
BAD_UNIT = "sreport: error: Invalid time format: {}\n"
NO_PROMPT = "sreport: error: the prompt (sreport without a report) is not supported by SkyPurza\n"
ONE_TRES = (
    " Job report only supports a single --tres type.\n"
    " Generate a separate report for each TRES type.\n"
)
RULE = "-" * 80 + "\n"
DAY = 86400
TOP = 10


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a report, of one TRES; amounts in TRES-seconds."""

    line: Line
    tres: str
    amounts: Mapping[str, int]
    """By column: `Used`, `Allocated`, ..., or the number of a group of sizes."""
    whole: int
    """What percentages are parts of."""


Rows = Callable[["Asked"], list[Row]]


@dataclass(frozen=True, slots=True)
class Report:
    """A report's headline and columns; `sums` are those that a list of TRES comes before."""

    title: str
    columns: tuple[str, ...]
    sums: tuple[str, ...]
    rows: Rows
    by: tuple[str, ...] = ("account", "user")
    """What has to be told apart."""
    spelled: bool = True
    """Whether the headline says how many seconds that is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One report: what was used, the conditions, the unit."""

    ctx: Context
    use: Use
    given: Mapping[str, str]
    tres: tuple[str, ...]
    unit: Unit
    names: Mapping[str, str]
    """Users' names in full."""

    def wants(self, key: str, value: str) -> bool:
        chosen = self.given.get(key)
        return chosen is None or value.lower() in {one.lower() for one in chosen.split(",")}

    def rows(self, lines: Sequence[Line]) -> list[Row]:
        """A row for each line and TRES of which something was used."""
        return [
            Row(line, name, {"Used": line.amounts.get(name, 0)}, self.use.whole.get(name, 0))
            for line in lines
            if self.wants("accounts", line.account) or not line.account
            if self.wants("users", line.user) or not line.user
            for name in self.tres
            if line.amounts.get(name, 0)
        ]


def _accounts(asked: Asked) -> list[Row]:
    used = asked.use.by("account", "user", "tres")
    lines = report.by_account(asked.ctx.site.book, used)
    if "tree" in asked.given:
        lines = [replace(line, account=" " * line.depth + line.account) for line in lines]
    return asked.rows(lines)


def _grades(asked: Asked) -> list[Row]:
    used = asked.use.by("account", "qos", "tres")
    return asked.rows(report.by_account(asked.ctx.site.book, used, graded=True))


def _users(asked: Asked) -> list[Row]:
    return asked.rows(report.by_user(asked.use.by("account", "user", "tres")))


def _top_users(asked: Asked) -> list[Row]:
    text = asked.given.get("topcount", "")
    lines = report.by_user(asked.use.by("account", "user", "tres"))
    lines = [line for line in lines if asked.wants("users", line.user)]
    merged = bool({"group", "groups"} & asked.given.keys())
    read = read_digits(text)
    most = TOP if read is None else read
    return asked.rows(report.top(lines, asked.tres[0], most=most, merged=merged))


def _cluster(asked: Asked) -> list[Row]:
    """What is not allocated is idle: time down is not summed up."""
    rows = []
    for (name,), used in sorted(asked.use.by("tres").items()):
        if name in asked.tres and used:
            whole = max(asked.use.whole.get(name, 0), used)
            amounts = {"Allocated": used, "Idle": whole - used, "Reported": whole}
            rows.append(Row(Line(""), name, amounts, whole))
    return rows


def _sizes(asked: Asked) -> list[Row]:
    counted = "printjobcount" in asked.given
    name = "jobs" if counted else asked.tres[0]
    used = {
        (account, size): amount
        for (account, size, tres), amount in asked.use.by("account", "size", "tres").items()
        if tres == name and asked.wants("accounts", account)
    }
    bounds = _bounds(asked.given)
    found = report.sizes(asked.ctx.site.book, used, bounds, flat="flatview" in asked.given)
    whole = sum(sum(one.amounts) for one in found) if counted else asked.use.whole.get(name, 0)
    return [_sized(one, name, whole) for one in found]


def _sized(one: Sized, tres: str, whole: int) -> Row:
    amounts = {str(place): amount for place, amount in enumerate(one.amounts)}
    return Row(Line(one.account), tres, amounts | {"Share": sum(one.amounts)}, whole)


def _bounds(given: Mapping[str, str]) -> tuple[int, ...]:
    sizes = map(read_digits, given.get("grouping", "").split(","))
    return tuple(sorted({size for size in sizes if size})) or report.SIZES


def _none(_: Asked) -> list[Row]:
    """Of what there is none here: reservations' use and wckeys."""
    return []


WIDTHS = {
    "Cluster": 9, "Account": 15, "Login": 9, "Proper Name": 15, "Used": 8, "Energy": 8,
    "TRES Name": 14, "Allocated": 10, "Down": 10, "PLND Down": 10, "Idle": 10, "Planned": 10,
    "Reported": 10, "QOS": 9, "WCKey": 15, "Name": 9, "Start": 19, "End": 19, "TRES Time": 10,
    "Wckey": 9,
}  # fmt: skip
SPELLED = {"Account": "Accounts", "Proper Name": "Proper", "TRES Name": "TresName"}
"""Columns whose name in a format is not their headline."""
USED, STATES = ("Used", "Energy"), ("Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported")
LOGIN = ("Login", "Proper Name")
CLUSTER = {
    "accountutilizationbyuser": Report(
        "Cluster/Account/User Utilization", ("Cluster", "Account", *LOGIN), USED, _accounts
    ),
    "accountutilizationbyqos": Report(
        "Cluster/Account/QOS Utilization",
        ("Cluster", "Account", "QOS"),
        USED,
        _grades,
        ("account", "qos"),
    ),
    "userutilizationbyaccount": Report(
        "Cluster/User/Account Utilization", ("Cluster", *LOGIN, "Account"), USED, _users
    ),
    "userutilizationbywckey": Report(
        "Cluster/User/WCKey Utilization", ("Cluster", *LOGIN, "WCKey"), ("Used",), _none
    ),
    "utilization": Report("Cluster Utilization", ("Cluster",), STATES, _cluster, spelled=False),
    "wckeyutilizationbyuser": Report(
        "Cluster/WCKey/User Utilization", ("Cluster", "WCKey", *LOGIN), ("Used",), _none
    ),
}
USER = {"topusage": Report("Top 10 Users", ("Cluster", *LOGIN, "Account"), USED, _top_users)}
SIZES = Report("Job Sizes", ("Cluster", "Account"), (), _sizes, ("account", "size"))
JOB = {
    "sizesbyaccount": Report("Job Sizes", ("Cluster", "Account"), (), _sizes, ("account", "size")),
    "sizesbyaccountandwckey": Report(
        "Job Sizes", ("Cluster", "Account"), (), _sizes, ("account", "size")
    ),
    "sizesbywckey": Report("Job Sizes by Wckey", ("Cluster", "Wckey"), (), _none),
}
RESERVATION = {
    "utilization": Report(
        "Reservation Utilization", ("Cluster", "Name", "Start", "End"), ("Allocated", "Idle"),
        _none, spelled=False,
    ),
}  # fmt: skip
NAMES = {
    "cluster": '"AccountUtilizationByUser", "AccountUtilizationByQOS", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": '"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"',
    "reservation": '"Utilization"',
    "user": '"TopUsage"',
}
GROUPS: Mapping[str, Mapping[str, Report]] = {
    "cluster": CLUSTER, "job": JOB, "reservation": RESERVATION, "user": USER,
}  # fmt: skip
CONDITIONS = (
    "accounts", "all_clusters", "clusters", "end", "format", "groups", "names", "qos", "start",
    "topcount", "tree", "users", "wckeys", "partitions", "nodes", "jobs", "gid", "grouping",
    "flatview", "acctasparent", "printjobcount",
)  # fmt: skip


@finishing
async def sreport(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call)
    if not options.words:
        raise fail(NO_PROMPT)
    ctx = reader(desk, call, desk.snapshot(), options=options)
    group, report_ = _report(options.words)
    given = _conditions(options.words[2:])
    start, end = _window(given, ctx)
    tres = _tres(options, ctx)
    if group == "job" and len(tres) > 1:
        raise fail(ONE_TRES)
    unit = unit_of(options.text("time") or "minutes")
    if unit is None:
        raise fail(BAD_UNIT.format(options.text("time")))
    counted = ("jobs",) if "printjobcount" in given else tres
    use = await desk.read(used_by, desk, ctx, window=(start, end), asked=(report_.by, counted))
    parts = {word for word in given.get("partitions", "").split(",") if word}
    use = replace(use.within(parts), whole=whole_of(ctx.site, use, end - start))
    users = {user for (user,) in use.by("user")} if "user" in use.columns else set()
    asked = Asked(ctx, use, given, tres, unit, await desk.read(proper_names, users))
    top = "" if options.has("noheader") else _top(report_, asked, options, window=(start, end))
    return Answer(out=top + _table(report_, asked, options, sized=group == "job"))


def _tres(options: Options, ctx: Context) -> tuple[str, ...]:
    """The TRES of the report; cpu unless others are asked for."""
    text = (options.text("tres") or "cpu").lower()
    if text != "all":
        return tuple(word for word in text.split(",") if word)
    gres = sorted({f"gres/{name}" for node in ctx.site.nodes for name, _ in node.whole.gres})
    return (*FIXED, *gres)


def _report(words: Sequence[str]) -> tuple[str, Report]:
    group = next((name for name in GROUPS if name.startswith(words[0].lower())), None)
    if group is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    name = words[1].lower() if len(words) > 1 else ""
    found = [one for full, one in GROUPS[group].items() if name and full.startswith(name)]
    if found:
        return group, found[0]
    raise fail(BAD_REPORT.format(words[1] if len(words) > 1 else "", group, NAMES[group]))


def _conditions(words: Sequence[str]) -> dict[str, str]:
    """Conditions by their full name. Raises Finished for one that is none."""
    found = {}
    for word in words:
        key, _, value = word.partition("=")
        name = next((one for one in CONDITIONS if one.startswith(key.lower())), None)
        if key.lower() == "where":
            continue
        if name is None:
            raise fail(BAD_CONDITION.format(word))
        found[name] = value
    return found


def _window(given: Mapping[str, str], ctx: Context) -> tuple[int, int]:
    """From start to end; yesterday where neither was given."""
    midnight = _moment("00:00", ctx)
    start = _moment(given["start"], ctx) if "start" in given else midnight - DAY
    end = _moment(given["end"], ctx) if "end" in given else midnight
    return start, max(end, start + 1)


def _moment(text: str, ctx: Context) -> int:
    try:
        return read_instant(text, ctx.now, offset=ctx.zone, past=True)
    except InstantError:
        raise fail(BAD_TIME.format(text)) from None


def _top(asked_for: Report, asked: Asked, options: Options, *, window: tuple[int, int]) -> str:
    start, end = window
    kind = "TRES" if options.text("tres") else "CPU"
    span = f"{show_moment(start, asked.ctx)} - {show_moment(end - 1, asked.ctx)}"
    span += f" ({end - start} secs)" if asked_for.spelled else ""
    title = asked_for.title.replace("10", asked.given.get("topcount") or "10")
    unit = f"Usage reported in {kind} {UNITS[asked.unit.name]}"
    if asked_for.rows is _sizes or asked_for.title.startswith("Job"):
        unit = f"Time reported in {UNITS[asked.unit.name]}"
        if "printjobcount" in asked.given:
            unit = "Units are in number of jobs ran"
    return f"{RULE}{title} {span}\n{unit}\n{RULE}"


def _table(asked_for: Report, asked: Asked, options: Options, *, sized: bool) -> str:
    known = [*_columns(asked, asked_for), *(_size_columns(asked) if sized else ())]
    names = _usual(asked_for, options, asked)
    usual = ",".join(SPELLED.get(name, name.replace(" ", "")) for name in names)
    try:
        fields = fields_of(asked.given.get("format") or usual, known)
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    bar = options.has("parsable2") or options.has("parsable")
    ended = bar and not options.has("parsable2")
    style = Style("|" if bar else None, ended=ended, header=not options.has("noheader"))
    return table(fields, asked_for.rows(asked), style)


def _usual(asked_for: Report, options: Options, asked: Asked) -> tuple[str, ...]:
    tres = bool(options.text("tres"))
    if asked_for.title.startswith("Job"):
        return (*asked_for.columns, *(field.name for field in _size_columns(asked)))
    sums = tuple(name for name in asked_for.sums if not (tres and name == "Energy"))
    named = tres or asked_for.title.startswith("Reservation")
    return (*asked_for.columns, *(("TRES Name",) if named else ()), *sums)


def _columns(asked: Asked, asked_for: Report) -> list[Field[Row]]:
    texts: dict[str, Callable[[Row], str]] = {
        "Cluster": lambda _: asked.ctx.site.cluster,
        "Account": lambda row: row.line.account,
        "Login": lambda row: row.line.user,
        "Proper Name": lambda row: asked.names.get(row.line.user, ""),
        "QOS": lambda row: row.line.qos,
        "TRES Name": lambda row: row.tres,
        "Energy": lambda _: asked.unit.show(0, 0),
    }
    sums = {*asked_for.sums, "Used"} - {"Energy"}

    def value(name: str) -> Callable[[Row], str]:
        return texts.get(name) or _sum_of(asked, name, name in sums)

    return [
        Field(SPELLED.get(name, name.replace(" ", "")), name, width, value(name))
        for name, width in WIDTHS.items()
    ]


def _sum_of(asked: Asked, name: str, known: bool) -> Callable[[Row], str]:
    if not known:
        return lambda _: ""
    return lambda row: asked.unit.show(row.amounts.get(name, 0), row.whole)


def _size_columns(asked: Asked) -> list[Field[Row]]:
    bounds = _bounds(asked.given)
    begins = (0, *bounds)
    heads = [f"{a}-{b - 1} CPUs" for a, b in zip(begins, bounds, strict=False)]
    heads.append(f">= {bounds[-1]} CPUs")
    counted = "printjobcount" in asked.given

    def value(place: int) -> Callable[[Row], str]:
        def get(row: Row) -> str:
            amount = row.amounts.get(str(place), 0)
            return str(amount) if counted else asked.unit.show(amount, row.whole)

        return get

    def share(row: Row) -> str:
        return f"{100 * row.amounts.get('Share', 0) / row.whole:.2f}%" if row.whole else "0.00%"

    fields = [
        Field(head.replace(" ", ""), head, 13, value(place)) for place, head in enumerate(heads)
    ]
    return [*fields, Field("PercentOfCluster", "% of cluster", 12, share)]
