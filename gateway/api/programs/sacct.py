"""sacct: jobs of the past and the present, with what they used and cost."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from broker.model.job import Job
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.reading import (
    Options,
    fail,
    finishing,
    lower,
    parsable_of,
    read_options,
    reader,
)
from gateway.api.programs.sacct_filters import (
    flags,
    hosts,
    limits,
    names_jobs,
    numbers_between,
    qos,
    refs_of,
    states,
)
from gateway.api.programs.sacct_search import Listing, Search
from gateway.api.programs.scontrol_show import replace_names, user_names
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.documents import Asker, pieces
from gateway.query.kept import KeptRows
from gateway.query.keptjson import KeptBlocks
from gateway.query.moments import headline, show_moment
from gateway.query.past import script_digest
from gateway.query.restpast import PAST_KIND
from gateway.query.rows import (
    BRIEF,
    DEFAULT,
    LONG,
    Field,
    RemovedFieldError,
    Style,
    UnknownFieldError,
    help_fields,
    help_grid,
    read_fields,
)
from gateway.query.sacct import AllOf, Window
from gateway.query.stored import ALL, ENVIRONMENT, SCRIPT, as_stored
from gateway.query.tresnames import FIXED, numbers
from gateway.translate.submitted import submitted
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.states import BASE_COUNT, JOB_STATES

LONG_AND_FORMAT = (
    "sacct: fatal: Options -o(--format) and -l(--long) are mutually exclusive."
    " Please remove one and retry.\n"
)
BAD_FIELD = 'sacct: error: Invalid field requested: "{}"\n'
BAD_UNIT = (
    "sacct: error: Invalid unit type '{}'. Possible options are 'KMGTP'\n"
    "sacct: fatal: Invalid unit type\n"
)
BAD_ID = "sacct: error: Invalid {} id: {}\n"
GONE_FIELD = "sacct: fatal: {} has been removed, please use {}\n"
LATE_START = "sacct: error: Start time ({}) requested is after end time ({}).\n"
NO_COMPLETION = "Slurm job completion is disabled\n"
RULE = "-" * 80 + "\n"
BLOBS = {"batch-script": "job scripts", "env-vars": "job environment"}
NO_JOBS = (
    "sacct: fatal: When requesting {} you must also request specific jobs with the '-j' option.\n"
)
ONE_BLOB = "sacct: fatal: Options --batch-script and --env-vars are mutually exclusive\n"
WHOLE = ("yes", "y", "no", "n")
BAD_WHOLE = 'sacct: error: Invalid --whole-hetjob value "{}". Valid values: [yes|no].\n'
EXTRA = "sacct: error: Unknown arguments:\n"
MIDNIGHT = "00:00"


class Sacct:
    """The command; `tres` are the names that accounting counts, in their order.

    `flags` say what it keeps of jobs (AccountingStoreFlags).
    """

    def __init__(self, tres: Sequence[str] = FIXED, *, flags: Collection[str] = ALL) -> None:
        self.tres_ids = numbers(tres)
        self.flags = flags
        self.kept = KeptRows()
        self.blocks = KeptBlocks()

    @finishing
    async def __call__(self, desk: Desk, call: Call) -> Answer:
        return await _answer(desk, call, self)


sacct = Sacct()
"""With the TRES that every cluster counts."""


async def _answer(desk: Desk, call: Call, program: Sacct) -> Answer:
    options = read_options(desk, call)
    early = _early(options)
    if early is not None:
        return early
    snap, viewer = desk.snapshot(), await desk.viewer(call.peer.uid)
    ctx = _reader(desk, call, snap=snap, options=options)
    by = await structured.asker(desk, call, options)
    fields = _fields(options)
    wanted = await _wanted(desk, call, options, snap=snap, window=_window(options, ctx))
    search = Search(desk=desk, snap=snap, wanted=wanted, viewer=viewer, ctx=ctx, options=options)
    if by is not None:
        ctx = replace(ctx, tres_ids=program.tres_ids)
        by = replace(by, kept=program.blocks)
        return await _structured(search, program.flags, ctx=ctx, by=by)
    script = options.has("batch-script")
    if script or options.has("env-vars"):
        kept = (SCRIPT if script else ENVIRONMENT) in program.flags
        jobs = await desk.read(search.jobs)
        return Answer(out=await _blobs(desk, call, jobs, script=script, kept=kept))
    listing = Listing(fields, _style(options), search, flags=program.flags)
    out = await desk.read(listing.text, program.kept)
    return Answer(out=out, err=_said(wanted, ctx) if options.has("verbose") else "")


def _said(wanted: AllOf, ctx: Context) -> str:
    """What -v tells: what is looked for, and when (22.05)."""
    start, end = wanted.window.start, wanted.window.end
    states = ",".join(sorted(wanted.states or ())) or "Eligible"
    since = "Epoch 0" if start is None else headline(replace(ctx, now=start))
    until = headline(replace(ctx, now=(ctx.now if end is None else end) + 1))
    return f"sacct: Jobs {states} in the time window from {since} to {until}\n"


def _early(options: Options) -> Answer | None:
    """What needs no jobs."""
    if options.words:
        return Answer(err=EXTRA + "".join(f"sacct: error:  {w}\n" for w in options.words), code=1)
    if options.has("completion") or options.has("file"):
        return Answer(err=NO_COMPLETION, code=1)
    whole = options.text("whole-hetjob")
    if whole is not None and whole.lower() not in WHOLE:
        return Answer(err=BAD_WHOLE.format(whole), code=1)
    kinds = [words for long, words in BLOBS.items() if options.has(long)]
    if kinds and not options.text("jobs"):
        return Answer(err=NO_JOBS.format(kinds[-1]), code=1)
    if len(kinds) > 1:
        return Answer(err=ONE_BLOB, code=1)
    if options.has("helpformat"):
        return Answer(out=help_fields())
    if options.has("helpstate"):
        return Answer(out=help_grid([word for word, _ in JOB_STATES[:BASE_COUNT]]))
    return None


def _reader(desk: Desk, call: Call, *, snap: Snapshot, options: Options) -> Context:
    ctx = reader(desk, call, snap, options=options)
    unit = options.text("units")
    if unit is None:
        return ctx
    if len(unit) != 1 or unit.upper() not in "KMGTP":
        raise fail(BAD_UNIT.format(unit))
    return replace(ctx, unit=unit.upper())


def _fields(options: Options) -> list[Field]:
    """The columns: of every -o, of -b and -l, else of the environment, or the usual ones."""
    said = options.repeated("format")
    if said and options.has("long"):
        raise fail(LONG_AND_FORMAT)
    usual = (("brief", BRIEF), ("long", LONG))
    said += [names for long, names in usual if options.has(long)]
    variable = options.text("format")
    try:
        return read_fields(",".join(said or [DEFAULT if variable is None else variable]))
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    except RemovedFieldError as error:
        raise fail(GONE_FIELD.format(*error.args)) from None


def _style(options: Options) -> Style:
    header = not options.has("noheader")
    parsable = parsable_of(options)
    if parsable:
        mark = options.text("delimiter")
        ended = parsable == "parsable"
        return Style("|" if mark is None else mark, ended=ended, header=header)
    return Style(header=header)


# ---------------------------------------------------------------- what is wanted


def _window(options: Options, ctx: Context) -> Window:
    """From -S and -E, with Slurm's defaults, which hang on -j and -s."""
    start, end = _moment(options, "starttime", ctx), _moment(options, "endtime", ctx)
    stated = bool(options.joined_words("state"))
    if start is None and not names_jobs(options):
        start = ctx.now if stated else _moment_of(MIDNIGHT, ctx)
    if end is None:
        end = start if stated and options.has("starttime") else ctx.now
    if start is not None and end is not None and start > end:
        raise fail(LATE_START.format(show_moment(start, ctx), show_moment(end, ctx)))
    return Window(start, end, given=options.has("starttime") or not names_jobs(options))


def _moment(options: Options, long: str, ctx: Context) -> int | None:
    text = options.text(long)
    return _moment_of(text, ctx) if text and text.strip() else None


def _moment_of(text: str, ctx: Context) -> int:
    try:
        return read_instant(text, ctx.now, offset=ctx.zone, past=True)
    except InstantError as error:
        raise fail(error.complaint()) from None


async def _wanted(
    desk: Desk, call: Call, options: Options, *, snap: Snapshot, window: Window
) -> AllOf:
    """Every filter. Raises Finished for a value that cannot be."""
    refs = refs_of(options)
    return AllOf(
        jobs=refs,
        window=window,
        states=states(options),
        users=await _users(desk, call, options, snap=snap),
        accounts=lower(options.joined_words("accounts")),
        partitions=lower(options.joined_words("partition")),
        names=lower(options.joined_words("name")),
        qos=qos(options, snap),
        groups=await _ids(desk, options, "gid"),
        constraints=options.words_of("constraints"),
        wckeys=options.joined_words("wckeys"),
        reasons=options.words_of("reason"),
        flags=flags(options),
        associations=options.joined_words("associations"),
        nodes=hosts(options.text("nodelist")),
        node_counts=numbers_between(options, "nnodes", "node"),
        cpu_counts=numbers_between(options, "ncpus", "cpu"),
        limits=limits(options),
    )


async def _users(
    desk: Desk, call: Call, options: Options, *, snap: Snapshot
) -> frozenset[str] | None:
    """uids as text; the caller's own unless all, some, or certain jobs were asked for."""
    named = await _ids(desk, options, "user")
    if named is not None:
        return named
    uid = call.peer.uid
    everyone = options.has("allusers") or names_jobs(options) or uid in snap.site.admins
    return None if everyone else frozenset({str(uid)})


async def _ids(desk: Desk, options: Options, long: str) -> frozenset[str] | None:
    """The numbers of named users or groups, as text. Raises Finished for one nobody knows."""
    names = options.joined_words(long)
    if names is None:
        return None
    kind, find = {"user": ("user", desk.uids), "gid": ("group", desk.gids)}[long]
    found = {name: await desk.read(find, name) for name in sorted(names)}
    for name, number in found.items():
        if number is None:
            raise fail(BAD_ID.format(kind, name))
    if not found:
        raise fail("")
    return frozenset(map(str, found.values()))


# ---------------------------------------------------------------- reading


async def _structured(search: Search, flags: Collection[str], *, ctx: Context, by: Asker) -> Answer:
    """`--json` and `--yaml`."""
    desk, found = search.desk, await search.desk.read(search.records)
    shown = [as_stored(job, flags) for job in found]
    names = await user_names(desk, {job.ended_by for job in shown})
    named = replace_names(ctx, names)
    return await structured.listing(desk, shown, lambda: pieces(PAST_KIND, shown, named, asker=by))


# ---------------------------------------------------------------- scripts and environments


async def _blobs(desk: Desk, call: Call, jobs: list[Job], *, script: bool, kept: bool) -> bytes:
    """`-B` and `--env-vars` of jobs that are the caller's, where such are kept."""
    admins = desk.site.admins
    parts: list[bytes] = []
    for job in jobs:
        if call.peer.uid != job.owner.uid and call.peer.uid not in admins:
            continue
        if script:
            parts.append(f"Batch Script for {job.id}\n{RULE}".encode())
            digest = script_digest(job) if kept else None
            parts.append(await desk.read(desk.history.blob, digest) if digest else b"NONE\n")
        else:
            head = f"Environment used for {job.id} (must be batch to display)\n{RULE}"
            parts.append(head.encode())
            digest = job.spec.environment if kept else None
            text = b"NONE"
            if digest:
                text = submitted(job.spec, await desk.read(desk.history.blob, digest))
            parts.append(text.replace(b"\0", b"\n") + b"\n")
    return b"".join(parts)
