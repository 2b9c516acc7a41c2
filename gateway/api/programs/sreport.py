"""sreport: use of the past and of what runs, from the ledger's sums (25.11)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accounting import report
from accounting.report import Line, Sized
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
from gateway.api.programs.sreport_use import Use, proper_names, used_by, whole_of
from gateway.api.programs.sreport_words import words_of
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.reports import Field, UnknownFieldError, fields_of, table
from gateway.query.reportunits import UNITS, Unit
from sbatch_shim.grammar.values import read_digits

BAD_KEYWORD = "invalid keyword: {}\n"
BAD_REPORT = "Not valid report {}\nValid {} reports are, {}\n"
BAD_FIELD = " Unknown field '{}'\n"
TOO_FEW = "too few arguments for keyword:{}\n"
DENIED = "sreport: error: Your user doesn't have privilege to perform this action\n"
NO_ANSWER = "slurmdb_report_cluster_{}: Problem with get query.\n"
SILENT = frozenset({"nonparsable", "noheader", "parsable", "parsable2", "quiet", "time", "verbose"})
"""Words of the prompt that do nothing for a command that is all there is."""
NO_PROMPT = "sreport: error: the prompt (sreport without a report) is not supported by SkyPurza\n"
ONE_TRES = (
    " Job report only supports a single --tres type.\n"
    " Generate a separate report for each TRES type.\n"
)
RULE = "-" * 80 + "\n"
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
    denied: str = ""
    """Of wckeys: it is for administrators alone, and this is what others are told of it."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Of columns that are not as wide as elsewhere."""


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
    lines = report.by_user(asked.use.by("account", "user", "tres"))
    lines = [line for line in lines if asked.wants("users", line.user)]
    merged = bool({"group", "groups"} & asked.given.keys())
    return asked.rows(report.top(lines, asked.tres[0], most=_most(asked), merged=merged))


def _most(asked: Asked) -> int:
    """How many users are the top; what was no number has been told."""
    read = read_digits(asked.given.get("topcount", ""))
    return TOP if read is None else read


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
    "TRES Name": 14, "Allocated": 8, "Down": 8, "PLND Down": 8, "Idle": 8, "Planned": 8,
    "Reported": 8, "QOS": 9, "WCKey": 15, "Name": 9, "Start": 19, "End": 19, "TRES Time": 10,
}  # fmt: skip
PARTS = 9
"""How much wider an amount is with its percentage."""
SIZE, SIZE_PARTS = 13, 7
INDENTED = -20
"""The account's column where it shows a tree."""
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
        "Cluster/User/WCKey Utilization",
        ("Cluster", *LOGIN, "WCKey"),
        ("Used",),
        _none,
        denied=NO_ANSWER.format("user_by_wckey"),
    ),
    "utilization": Report("Cluster Utilization", ("Cluster",), STATES, _cluster, spelled=False),
    "wckeyutilizationbyuser": Report(
        "Cluster/WCKey/User Utilization",
        ("Cluster", "WCKey", *LOGIN),
        ("Used",),
        _none,
        denied=NO_ANSWER.format("wckey_by_user"),
    ),
}
USER = {"topusage": Report("Top 10 Users", ("Cluster", *LOGIN, "Account"), USED, _top_users)}
SIZES = Report(
    "Job Sizes", ("Cluster", "Account"), (), _sizes, ("account", "size"), widths={"Account": 9}
)
JOB = {
    "sizesbyaccount": SIZES,
    "sizesbyaccountandwckey": replace(SIZES, widths={"Account": INDENTED}),
    "sizesbywckey": Report(
        "Job Sizes by Wckey", ("Cluster", "Wckey"), (), _none, widths={"Wckey": 9}
    ),
}
RESERVATION = {
    "utilization": Report(
        "Reservation Utilization", ("Cluster", "Name", "Start", "End"), ("Allocated", "Idle"),
        _none, spelled=False, widths={"Allocated": 20, "Idle": 20},
    ),
}  # fmt: skip
NAMES = {
    "cluster": '"AccountUtilizationByUser", "AccountUtilizationByQOS", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": '"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"',
    "reservation": '"Utilization"',
    "user": '"Top"',
}
GROUPS: Mapping[str, Mapping[str, Report]] = {
    "cluster": CLUSTER, "job": JOB, "reservation": RESERVATION, "user": USER,
}  # fmt: skip


LEAST = {
    "cluster": 2, "utilization": 2, "userutilizationbyaccount": 18, "userutilizationbywckey": 18,
}  # fmt: skip
"""Letters that are enough where one is not (22.05)."""


@finishing
async def sreport(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call)
    if not options.words:
        raise fail(NO_PROMPT)
    ctx = reader(desk, call, desk.snapshot(), options=options)
    _maybe_silent(options.words[0], ctx)
    group, report_ = _report(options.words)
    if report_.denied and not ctx.site.is_run_by(call.peer.uid):
        raise fail(DENIED + report_.denied)
    words = words_of(options, ctx)
    given, tres, (start, end) = words.given, words.tres, words.window
    if group == "job" and len(tres) > 1:
        raise fail(ONE_TRES)
    counted = ("jobs",) if "printjobcount" in given else tres
    use = await desk.read(used_by, desk, ctx, window=(start, end), asked=(report_.by, counted))
    parts = {word for word in given.get("partitions", "").split(",") if word}
    use = replace(use.within(parts), whole=whole_of(ctx.site, use, end - start))
    users = {user for (user,) in use.by("user")} if "user" in use.columns else set()
    asked = Asked(ctx, use, given, tres, words.unit, await desk.read(proper_names, users))
    top = "" if options.has("noheader") else _top(report_, asked, options, window=(start, end))
    try:
        shown = _table(report_, asked, options, sized=group == "job")
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


def _report(words: Sequence[str]) -> tuple[str, Report]:
    group = next((name for name in GROUPS if _is_short(words[0], name)), None)
    if group is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    if len(words) == 1:
        raise fail(TOO_FEW.format(words[0]))
    found = [one for full, one in GROUPS[group].items() if _is_short(words[1], full)]
    if found:
        return group, found[0]
    raise fail(BAD_REPORT.format(words[1], group, NAMES[group]))


def _is_short(word: str, full: str) -> bool:
    return len(word) >= LEAST.get(full, 1) and full.startswith(word.lower())


def _top(asked_for: Report, asked: Asked, options: Options, *, window: tuple[int, int]) -> str:
    start, end = window
    named = options.text("tres") or asked_for.title.startswith("Reservation")
    kind = "" if asked.unit.name == "percent" else "TRES " if named else "CPU "
    span = f"{show_moment(start, asked.ctx)} - {show_moment(end - 1, asked.ctx)}"
    span += f" ({end - start} secs)" if asked_for.spelled else ""
    title = asked_for.title.replace("10", str(_most(asked)))
    unit = f"Usage reported in {kind}{UNITS[asked.unit.name]}"
    if asked_for.rows is _sizes or asked_for.title.startswith("Job"):
        unit = f"Time reported in {UNITS[asked.unit.name]}"
        if "printjobcount" in asked.given:
            unit = "Units are in number of jobs ran"
    if asked_for.title.startswith("Job") and asked.tres[0] != "cpu":
        unit = f"TRES type is {asked.tres[0]}\n{unit}"
    return f"{RULE}{title} {span}\n{unit}\n{RULE}"


def _table(asked_for: Report, asked: Asked, options: Options, *, sized: bool) -> str:
    known = [*_columns(asked, asked_for), *(_size_columns(asked) if sized else ())]
    names = _usual(asked_for, options, asked)
    usual = ",".join(SPELLED.get(name, name.replace(" ", "")) for name in names)
    fields = fields_of(asked.given.get("format") or usual, known)
    return table(fields, asked_for.rows(asked), style_of(options))


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

    widths = {**WIDTHS, **asked_for.widths}
    if "Wckey" in asked_for.columns:
        del widths["WCKey"]  # one column, which reports of jobs write otherwise
    if "tree" in asked.given:
        widths["Account"] = INDENTED
    if asked.unit.in_parts:
        widths |= {name: widths[name] + PARTS for name in (*USED, *STATES)}
    return [
        Field(SPELLED.get(name, name.replace(" ", "")), name, width, value(name))
        for name, width in widths.items()
    ]


def _sum_of(asked: Asked, name: str, known: bool) -> Callable[[Row], str]:
    if not known:
        return lambda _: ""
    return lambda row: asked.unit.show(row.amounts.get(name, 0), row.whole)


def _size_columns(asked: Asked) -> list[Field[Row]]:
    bounds = _bounds(asked.given)
    begins = (0, *bounds)
    what = "CPUs" if asked.tres[0] == "cpu" else "TRES"
    heads = [f"{a}-{b - 1} {what}" for a, b in zip(begins, bounds, strict=False)]
    heads.append(f">= {bounds[-1]} {what}")
    counted = "printjobcount" in asked.given
    width = SIZE + SIZE_PARTS if asked.unit.in_parts else SIZE

    def value(place: int) -> Callable[[Row], str]:
        def get(row: Row) -> str:
            amount = row.amounts.get(str(place), 0)
            return str(amount) if counted else asked.unit.show(amount, row.whole)

        return get

    def share(row: Row) -> str:
        return f"{100 * row.amounts.get('Share', 0) / row.whole:.2f}%" if row.whole else "0.00%"

    fields = [
        Field(head.replace(" ", ""), head, width, value(place)) for place, head in enumerate(heads)
    ]
    return [*fields, Field("PercentOfCluster", "% of cluster", 12, share)]
