"""What squeue says with -v: how it read its options, in the lines of 24.05, which go to stdout."""

from collections.abc import Callable, Mapping

from broker.world import Snapshot
from gateway.api.programs.reading import Options
from gateway.api.programs.squeue_look import own_format
from gateway.api.wire import Call
from gateway.query import views
from gateway.query.context import Context
from gateway.query.moments import headline

RULE = "-" * 29 + "\n"
Value = Callable[[Options, Call], str]


def loudness(options: Options) -> int:
    """How often -v was typed."""
    return sum(one.opt.long == "verbose" for one in options.query.said)


def told(options: Options, call: Call, snap: Snapshot, *, ctx: Context) -> str:
    """The lines, and how much there is to choose from; empty where nothing was to be said."""
    if not loudness(options):
        return ""
    lines = (f"{name}= {value(options, call)}\n" for name, value in VALUES.items())
    date = "" if options.has("noheader") else f"{headline(ctx)}\n"
    known = f"last_update_time={snap.at} records={len(snap.jobs)}\n"
    return "".join([RULE, *lines, RULE, "\n\n", date, known])


def _flag(long: str) -> Value:
    return lambda options, _: "true" if options.has(long) else "false"


def _number(long: str) -> Value:
    return lambda options, _: str(int(options.has(long)))


def _text(long: str, *, at_start: str = "(null)") -> Value:
    """What was said; without it, and with --start, `at_start`."""

    def text(options: Options, _: Call) -> str:
        said = options.text(long)
        if said is not None:
            return said
        return at_start if options.has("start") and not options.has("steps") else "(null)"

    return text


def _all(options: Options, _: Call) -> str:
    """Partitions that are named are shown though they are hidden."""
    return "true" if options.has("all") or options.has("partitions") else "false"


def _format(options: Options, _: Call) -> str:
    letters, names = own_format(options)
    if letters is not None or names is not None or not options.has("start"):
        return letters or "(null)"
    return views.SQUEUE_START


def _users(options: Options, call: Call) -> str:
    return str(call.peer.uid) if options.has("me") else options.text("user") or "(null)"


VALUES: Mapping[str, Value] = {
    "all         ": _all,
    "array       ": _flag("array"),
    "federation  ": _flag("federation"),
    "format      ": _format,
    "iterate     ": lambda options, _: options.text("iterate") or "0",
    "job_flag    ": _number("jobs"),
    "jobs        ": _text("jobs"),
    "licenses    ": _text("licenses"),
    "local       ": _flag("local"),
    "names       ": _text("name"),
    "nodes       ": lambda options, _: options.text("nodelist") or "",
    "partitions  ": _text("partitions"),
    "priority    ": _flag("priority"),
    "reservation ": _text("reservation"),
    "sibling      ": _flag("sibling"),
    "sort        ": _text("sort", at_start=views.START_SORT),
    "start_flag  ": _number("start"),
    "states      ": _text("states", at_start="PD"),
    "step_flag   ": _number("steps"),
    "steps       ": _text("steps"),
    "users       ": _users,
    "verbose     ": lambda options, _: str(loudness(options)),
}
"""By the name as it is written, blanks and all."""
