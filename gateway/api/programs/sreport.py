"""sreport: the forms of its reports. Time that was used is not summed up here yet, and says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accounting.ledger import Kind
from gateway.api.desk import Desk
from gateway.api.programs.reading import Options, fail, finishing, read_options, reader
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.reports import Field, Style, UnknownFieldError, fields_of, nothing, table
from sbatch_shim.grammar.instants import InstantError, read_instant

BAD_KEYWORD = "invalid keyword: {}\n"
BAD_REPORT = "Not valid report {}\nValid {} reports are, {}\n"
BAD_CONDITION = " Unknown condition: {}\n"
BAD_FIELD = " Unknown field '{}'\n"
BAD_TIME = "sreport: error: Bad time format: {}\n"
NOT_YET = "sreport: error: {} is not supported by SkyPurza yet: it comes with accounting\n"
NO_PROMPT = "sreport: error: the prompt (sreport without a report) is not supported by SkyPurza\n"
RULE = "-" * 80 + "\n"
DAY = 86400


@dataclass(frozen=True, slots=True)
class Report:
    """A report's headline and columns; `sums` are those that a list of TRES comes before."""

    title: str
    columns: tuple[str, ...]
    sums: tuple[str, ...]


WIDTHS = {
    "Cluster": 9, "Account": 15, "Login": 9, "Proper Name": 15, "Used": 8, "Energy": 8,
    "TRES Name": 14, "Allocated": 10, "Down": 10, "PLND Down": 10, "Idle": 10, "Planned": 10,
    "Reported": 10, "QOS": 9, "WCKey": 15, "Name": 9, "Start": 19, "End": 19, "TRES Time": 10,
}  # fmt: skip
USED, STATES = ("Used", "Energy"), ("Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported")
LOGIN = ("Login", "Proper Name")
CLUSTER = {
    "accountutilizationbyuser": Report(
        "Cluster/Account/User Utilization", ("Cluster", "Account", *LOGIN), USED
    ),
    "accountutilizationbyqos": Report(
        "Cluster/Account/QOS Utilization", ("Cluster", "Account", "QOS"), USED
    ),
    "userutilizationbyaccount": Report(
        "Cluster/User/Account Utilization", ("Cluster", *LOGIN, "Account"), USED
    ),
    "userutilizationbywckey": Report(
        "Cluster/User/WCKey Utilization", ("Cluster", *LOGIN, "WCKey"), ("Used",)
    ),
    "utilization": Report("Cluster Utilization", ("Cluster",), STATES),
    "wckeyutilizationbyuser": Report(
        "Cluster/WCKey/User Utilization", ("Cluster", "WCKey", *LOGIN), ("Used",)
    ),
}
USER = {"topusage": Report("Top 10 Users", ("Cluster", *LOGIN, "Account"), USED)}
NAMES = {
    "cluster": '"AccountUtilizationByUser", "AccountUtilizationByQOS", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": '"SizesByAccount, SizesByAccountAndWcKey, and SizesByWckey"',
    "reservation": '"Utilization"',
    "user": '"TopUsage"',
}
GROUPS: Mapping[str, Mapping[str, Report]] = {
    "cluster": CLUSTER, "job": {}, "reservation": {}, "user": USER,
}  # fmt: skip
REFUSED = {
    "job": ("sizesbyaccount", "sizesbyaccountandwckey", "sizesbywckey"),
    "reservation": ("utilization",),
}
UNITS = {
    "seconds": "Seconds", "minutes": "Minutes", "hours": "Hours", "percent": "Percentage of Total",
    "secper": "Seconds/Percentage of Total", "minper": "Minutes/Percentage of Total",
    "hourper": "Hours/Percentage of Total",
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
    report = _report(options.words)
    given = _conditions(options.words[2:])
    start, end = _window(given, ctx)
    used = await desk.read(_is_used, desk, start, end)
    if used:
        raise fail(NOT_YET.format("a report of time that was used"))
    tres = bool(options.text("tres"))
    top = "" if options.has("noheader") else _top(report, options, ctx, window=(start, end))
    return Answer(out=top + _table(report, options, given, tres=tres))


def _is_used(desk: Desk, start: int, end: int) -> bool:
    """Whether the ledger has use within the window; blocks."""
    entries = desk.history.entries(since=start, until=end)
    return any(entry.kind is Kind.USAGE for entry in entries)


def _report(words: Sequence[str]) -> Report:
    group = next((name for name in GROUPS if name.startswith(words[0].lower())), None)
    if group is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    name = words[1].lower() if len(words) > 1 else ""
    found = [one for full, one in GROUPS[group].items() if name and full.startswith(name)]
    if found:
        return found[0]
    if any(name and full.startswith(name) for full in REFUSED.get(group, ())):
        raise fail(NOT_YET.format(f"{group} {words[1]}"))
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


def _top(report: Report, options: Options, ctx: Context, *, window: tuple[int, int]) -> str:
    start, end = window
    text = (options.text("time") or "minutes").lower()
    unit = next((name for word, name in UNITS.items() if word.startswith(text)), UNITS["minutes"])
    kind = "TRES" if options.text("tres") else "CPU"
    span = f"{show_moment(start, ctx)} - {show_moment(end - 1, ctx)} ({end - start} secs)"
    return f"{RULE}{report.title} {span}\nUsage reported in {kind} {unit}\n{RULE}"


def _table(report: Report, options: Options, given: Mapping[str, str], *, tres: bool) -> str:
    sums = tuple(name for name in report.sums if not (tres and name == "Energy"))
    names = (*report.columns, *(("TRES Name",) if tres else ()), *sums)
    known: list[Field[object]] = [
        Field(name.replace(" ", ""), name, width, nothing) for name, width in WIDTHS.items()
    ]
    usual = ",".join(name.replace(" ", "") for name in names)
    try:
        fields = fields_of(given.get("format") or usual, known)
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    header = not options.has("noheader")
    bar = options.has("parsable2") or options.has("parsable")
    ended = bar and not options.has("parsable2")
    return table(fields, (), Style("|" if bar else None, ended=ended, header=header))
