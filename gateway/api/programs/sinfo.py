"""sinfo: partitions and their nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.model.site import Partition
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.barred import must_see
from gateway.api.programs.hostload import measured
from gateway.api.programs.iterate import iterated, repeated
from gateway.api.programs.reading import (
    Finished,
    Listings,
    Options,
    asked_by,
    cluster_line,
    fail,
    read_options,
    reader,
)
from gateway.api.programs.scontrol_show import replace_names, user_names
from gateway.api.programs.sinfo_verbose import told
from gateway.api.wire import Answer, Call
from gateway.query import cooling
from gateway.query.context import Context
from gateway.query.documents import document
from gateway.query.layout import Layout
from gateway.query.moments import headline
from gateway.query.nodes import Flag, NodeView, node_views
from gateway.query.reservations import listed
from gateway.query.restnode import SINFO_KIND
from gateway.query.sinfo import Group, sinfo_letters, sinfo_names
from gateway.query.sinfogroups import DEFAULT_SORT, formats, grouped, keys_of, ordered
from sbatch_shim.grammar.hostlist import HostlistError, expand, sorted_names
from sbatch_shim.grammar.values import read_digits

FATAL = "sinfo: fatal: Could not get cluster information\n"
BAD_LETTER = "Invalid node format specification: {}\n"
"""Without the program's name (22.05)."""
BAD_COLUMN = "sinfo: error: Invalid job format specification: {}\n"
FORMATS = ("format", "Format")
LONG_AND_FORMAT = (
    "sinfo: fatal: Options -o(--format) and -l(--long) are mutually exclusive."
    " Please remove one and retry.\n"
)
ALL_AND_PARTITION = (
    "sinfo: error: Conflicting options, -a and -p, specified. Please choose one or the other.\n"
)
BOTH_OF_ENVIRONMENT = (
    "sinfo: error: Conflicting options, SINFO_ALL and SINFO_PARTITION, specified. "
    "Please choose one or the other.\n"
)
BAD_HOSTS = "sinfo: error: Invalid hostlist: {}\n"
BAD_SORT = "sinfo: error: Invalid sort specification: {}\n"
BAD_STATE = (
    'sinfo: error: Bad state string: "{}"\n'
    "sinfo: error: valid states: unknown,down,idle,allocated,mixed,future,drain,drained,draining,"
    "no_respond,reserved,planned,blocked,cloud,completing,powering_down,powered_down,power_down,"
    "powering_up,power_up,inval,fail,maint,reboot,reboot^,external,dynamic_future,dynamic_norm\n"
)
STRUCTURED = "%P%T%f%G%E%H%u%c%m%w%z%X%Y%Z"
"""Columns that keep lines of --json apart."""

StateTest = Callable[[NodeView], bool]


def _base(name: str) -> StateTest:
    return lambda view: view.base == name


def _flag(flag: Flag) -> StateTest:
    return lambda view: flag in view.flags


def _drain(*bases: str) -> StateTest:
    return lambda view: Flag.DRAIN in view.flags and view.base in bases


def _never(_: NodeView) -> bool:
    return False


STATES: dict[str, StateTest] = {
    "down": _base("DOWN"),
    "idle": _base("IDLE"),
    "allocated": _base("ALLOCATED"),
    "mixed": _base("MIXED"),
    "drain": _flag(Flag.DRAIN),
    "drained": _drain("IDLE", "DOWN"),
    "draining": _drain("ALLOCATED", "MIXED"),
    "drng": _drain("ALLOCATED", "MIXED"),
    "no_respond": _flag(Flag.NOT_RESPONDING),
    "cloud": _flag(Flag.CLOUD),
    "completing": _flag(Flag.COMPLETING),
    "powering_down": _flag(Flag.POWERING_DOWN),
    "powered_down": _flag(Flag.POWERED_DOWN),
    "power_down": _flag(Flag.POWERING_DOWN),
    "powering_up": _flag(Flag.POWERING_UP),
    "power_up": _flag(Flag.POWERING_UP),
    "reserved": _flag(Flag.RESERVED),
    "resv": _flag(Flag.RESERVED),
    "maint": _flag(Flag.MAINTENANCE),
}
NO_NODES = (
    "unknown future planned plnd blocked inval fail reboot reboot^ external "
    "dynamic_future dynamic_norm"
)
"""States that Slurm knows and no node of ours is ever in."""
STATES |= dict.fromkeys(NO_NODES.split(" "), _never)


class Sinfo:
    """The command; keeps the text of listings while the world stays the same."""

    def __init__(self) -> None:
        self.listings = Listings()

    async def __call__(self, desk: Desk, call: Call) -> Answer:
        seconds = iterated(call)
        if seconds:
            return await repeated(desk, call, self._once, seconds=seconds)
        return await self._once(desk, call)

    async def _once(self, desk: Desk, call: Call) -> Answer:
        snap, asked = desk.snapshot(), asked_by(call)
        known = self.listings.find(snap.look, asked)
        if known is not None:
            return known
        try:
            answer, dated = await _answer(desk, call, snap)
        except Finished as end:
            return end.answer
        if not dated:
            self.listings.keep(snap.look, asked, answer)
        return answer


async def _answer(desk: Desk, call: Call, snap: Snapshot) -> tuple[Answer, bool]:
    options = read_options(desk, call)
    _check(options, call.environ)
    top = cluster_line(options, call, snap, fatal=FATAL)
    if options.has("reservation"):
        snap = await desk.seen(call.peer.uid)
        booked = _reservations(options, snap, reader(desk, call, snap, options=options))
        return Answer(out=booked if options.has("noheader") else top + booked), False
    await must_see(desk, call, "partitions", told="slurm_load_partitions")
    await must_see(desk, call, "nodes", told="slurm_load_node")
    uids = {node.reason_uid for node in snap.nodes.values() if node.reason}
    ctx = reader(desk, call, snap, options=options)
    ctx = replace_names(ctx, await user_names(desk, uids))
    ctx = measured(ctx)
    by = await structured.asker(desk, call, options)
    parts = _partitions(options, snap, await desk.hidden(call.peer.uid))
    if by is not None:
        groups = _alike(options, snap, ctx, parts=parts)
        return Answer(out=document(SINFO_KIND, groups, ctx, asker=by)), True
    listing = _listing(options, snap, ctx, parts=parts)
    dated = listing.dated and not options.has("noheader")
    if dated:
        top += headline(ctx) + "\n"
    top = "" if options.has("noheader") else f"{top}{listing.layout.header}\n"
    top = told(options, listing.layout, _usual(options)) + top
    lines = listing.layout.lines(listing.groups, ctx)
    if options.has("list-reasons") and not _own_format(options):
        shut = cooling.protected(snap.boots.values(), ctx)
        lines = [*lines, *shut, *cooling.lines(desk.cooling(), ctx)]
    complaint = BAD_LETTER if options.text("Format") is None else BAD_COLUMN
    errors = "".join(complaint.format(name) for name in listing.layout.unknown)
    timed = dated or listing.layout.timed or ctx.time_format == "relative"
    return Answer(out=top + "".join(f"{line}\n" for line in lines), err=errors), timed


def _reservations(options: Options, snap: Snapshot, ctx: Context) -> str:
    if not snap.reservations:
        return "No reservations in the system\n"
    return listed(snap.reservations.values(), ctx, header=not options.has("noheader"))


def _check(options: Options, environ: Mapping[str, str]) -> None:
    """Raises Finished for what cannot be, or not together."""
    text = options.text("iterate")
    if text is not None and not read_digits(text):
        raise fail(f"sinfo: error: Error: invalid entry for --iterate={text}\n")
    typed = {one.opt.long for one in options.query.said}
    if {"SINFO_ALL", "SINFO_PARTITION"} <= environ.keys():
        raise fail(BOTH_OF_ENVIRONMENT)
    if options.has("long") and not typed.isdisjoint(FORMATS):
        raise fail(LONG_AND_FORMAT)
    if typed >= {"all", "partition"}:
        raise fail(ALL_AND_PARTITION)


def _alike(
    options: Options, snap: Snapshot, ctx: Context, *, parts: list[Partition]
) -> list[Group]:
    """Lines of --json: nodes apart in whatever differs, as every column is there."""
    keys = keys_of(sinfo_letters(STRUCTURED), exact=True)
    views = _chosen(options, node_views(snap))
    groups = grouped(parts, views, keys=keys, ctx=ctx, each=False)
    return ordered(groups, DEFAULT_SORT, ctx)


@dataclass(frozen=True, slots=True)
class _Listing:
    layout: Layout[Group]
    groups: list[Group]
    dated: bool


def _listing(options: Options, snap: Snapshot, ctx: Context, *, parts: list[Partition]) -> _Listing:
    each, reasons = options.has("Node"), options.has("list-reasons")
    views = _chosen(options, node_views(snap))
    if reasons:
        views = [view for view in views if view.record and view.record.reason]
    if each:
        views = _by_name(views)
    widest = [Group(part, tuple(v for v in views if part.name in v.partitions)) for part in parts]
    layout = _layout(options, formats(widest))
    keys = keys_of(layout, exact=options.has("exact"))
    groups = grouped(parts, views, keys=keys, ctx=ctx, each=each)
    if reasons and not each and not options.has("summarize"):
        groups = _once_each(groups)
    sort = options.text("sort") or ("N,#P" if each else DEFAULT_SORT)
    try:
        groups = _in_order(groups, sort, ctx, views=views)
    except KeyError as error:
        raise fail(BAD_SORT.format(error.args[0])) from None
    dated = options.has("verbose") or options.has("long")
    return _Listing(layout, groups, dated)


def _in_order(
    groups: list[Group], sort: str, ctx: Context, *, views: list[NodeView]
) -> list[Group]:
    if sort != "N,#P":
        return ordered(groups, sort, ctx)
    places = {view.name: place for place, view in enumerate(views)}
    found = ordered(groups, "#P", ctx)
    return sorted(found, key=lambda group: places[group.nodes[0].name] if group.nodes else -1)


def _by_name(views: list[NodeView]) -> list[NodeView]:
    known = {str(view.name): view for view in views}
    return [known[name] for name in sorted_names(known)]


def _once_each(groups: list[Group]) -> list[Group]:
    """Every node in one line, whatever partitions it is in."""
    seen: set[str] = set()
    found = []
    for group in groups:
        nodes = [node for node in group.nodes if node.name not in seen]
        seen |= {node.name for node in nodes}
        if nodes:
            found.append(Group(group.part, tuple(nodes)))
    return found


def _own_format(options: Options) -> bool:
    """Whether a format was typed; the environment's counts where no option has one of its own."""
    typed = any(one.opt.long in FORMATS for one in options.query.said)
    return typed or (options.has("format") and not any(map(options.has, OF_OPTIONS)))


OF_OPTIONS = ("summarize", "Node", "list-reasons")


def _usual(options: Options) -> str | None:
    """The name of sinfo's own format that is shown; None where another was asked for."""
    if _own_format(options):
        return None
    if options.has("summarize"):
        return "summarize"
    long = " long" if options.has("long") else ""
    name = next((name for name in OF_OPTIONS[1:] if options.has(name)), None)
    return f"{name}{long}" if name else long.strip() or "default"


def _layout(options: Options, usual: dict[str, str]) -> Layout[Group]:
    names, letters, name = options.text("Format"), options.text("format"), _usual(options)
    if name is not None:
        return sinfo_letters(usual[name])
    return sinfo_letters(letters or "") if names is None else sinfo_names(names)


def _partitions(options: Options, snap: Snapshot, hidden: frozenset[str]) -> list[Partition]:
    """Those of -p; -a takes away what the environment names."""
    typed = any(one.opt.long == "all" for one in options.query.said)
    wanted = None if typed else options.words_of("partition")
    shown = options.has("all") or wanted is not None
    return [
        part
        for part in snap.site.partitions
        if (wanted is None or part.name in wanted) and (shown or part.name not in hidden)
    ]


def _chosen(options: Options, views: list[NodeView]) -> list[NodeView]:
    names = options.text("nodes")
    if names is not None:
        try:
            wanted = set(expand(names))
        except HostlistError:
            raise fail(BAD_HOSTS.format(names)) from None
        views = [view for view in views if view.name in wanted]
    if options.has("dead"):
        views = [view for view in views if Flag.NOT_RESPONDING in view.flags]
    if options.has("responding"):
        views = [view for view in views if Flag.NOT_RESPONDING not in view.flags]
    states = options.text("states")
    if states is None or states.lower() == "all":
        return views
    tests = [_state_test(word) for word in states.split(",") if word]
    return [view for view in views if any(test(view) for test in tests)]


def _state_test(text: str) -> StateTest:
    """`mixed+planned` and `mixed&planned` want all of them, `!idle` anything else (25.11)."""
    tests = [_one_state(word, text) for word in text.replace("&", "+").split("+") if word]
    return lambda view: all(test(view) for test in tests)


def _one_state(word: str, text: str) -> StateTest:
    name = word.lstrip("!").lower()
    test = STATES.get(name) or next(
        (test for state, test in STATES.items() if name and state.startswith(name)), None
    )
    if test is None:
        raise fail(BAD_STATE.format(text))
    return (lambda view: not test(view)) if word.startswith("!") else test
