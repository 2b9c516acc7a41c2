"""sacct: jobs of the past and the present, with what they used and cost."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from accounting.ids import JobId
from broker.model.job import Job, JobFlag, JobState, Run, Step
from broker.ports import HistoryQuery
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
    numbers_between,
    qos,
    refs_of,
    states,
)
from gateway.api.programs.scontrol_show import replace_names, user_names
from gateway.api.wire import Answer, Call
from gateway.query.accounts import COST
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
    AccountRow,
    Field,
    RemovedFieldError,
    Style,
    UnknownFieldError,
    body,
    check_size,
    head,
    help_fields,
    help_grid,
    read_fields,
)
from gateway.query.sacct import PASSING, AllOf, Window, cut_to, in_order, matcher, steps_of
from gateway.query.select import JobRef, spread_arrays
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
    window = _window(options, ctx)
    wanted = await _wanted(desk, call, options, snap=snap, window=window)
    jobs = []
    if not _elsewhere(options, snap):
        found = await desk.read(_found, desk, snap, wanted, ctx=ctx)
        jobs = [as_stored(job, program.flags) for job in found if viewer.job(job)]
    if options.has("truncate"):
        jobs = [cut_to(job, window, ctx.now) for job in jobs]
    if by is not None:
        ctx = replace(ctx, tres_ids=program.tres_ids)
        by = replace(by, kept=program.blocks)
        return await _structured(desk, options, jobs, ctx=ctx, by=by)
    script = options.has("batch-script")
    if script or options.has("env-vars"):
        kept = (SCRIPT if script else ENVIRONMENT) in program.flags
        return Answer(out=await _blobs(desk, call, jobs, script=script, kept=kept))
    if any(field.account.name == COST for field in fields):
        costs = await desk.costs([job.id for job in jobs])
        ctx = replace(ctx, costs=costs)
    if options.has("duplicates"):
        jobs = await desk.read(_with_runs, desk, _each(options, jobs))
    listing = _Listing(fields, _style(options), options, ctx)
    out = await desk.read(listing.text, jobs, _by_job(wanted.jobs or ()), program.kept)
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


def _elsewhere(options: Options, snap: Snapshot) -> bool:
    """Whether only other clusters were asked for; sacct finds nothing there and says nothing."""
    clusters = options.text("clusters")
    return clusters is not None and not {snap.site.cluster, "all"} & set(clusters.split(","))


# ---------------------------------------------------------------- what is wanted


def _window(options: Options, ctx: Context) -> Window:
    """From -S and -E, with Slurm's defaults, which hang on -j and -s."""
    start, end = _moment(options, "starttime", ctx), _moment(options, "endtime", ctx)
    stated = bool(options.joined_words("state"))
    if start is None and not options.has("jobs"):
        start = ctx.now if stated else _moment_of(MIDNIGHT, ctx)
    if end is None:
        end = start if stated and options.has("starttime") else ctx.now
    if start is not None and end is not None and start > end:
        raise fail(LATE_START.format(show_moment(start, ctx), show_moment(end, ctx)))
    return Window(start, end, given=options.has("starttime") or not options.has("jobs"))


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
        partitions=_in_any_case(options, "partition"),
        names=_in_any_case(options, "name"),
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


def _in_any_case(options: Options, long: str) -> frozenset[str] | None:
    """The words in small letters; as typed, too: SQLite makes only those of ASCII small."""
    words = options.joined_words(long)
    return None if words is None else words | {word.lower() for word in words}


async def _users(
    desk: Desk, call: Call, options: Options, *, snap: Snapshot
) -> frozenset[str] | None:
    """uids as text; the caller's own unless all, some, or certain jobs were asked for."""
    named = await _ids(desk, options, "user")
    if named is not None:
        return named
    uid = call.peer.uid
    everyone = options.has("allusers") or options.has("jobs") or uid in snap.site.admins
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


def _found(desk: Desk, snap: Snapshot, wanted: AllOf, *, ctx: Context) -> list[Job]:
    """Jobs of memory, and of the store those that memory has forgotten, in order; blocks."""
    stored = (job for job in _stored(desk, snap, wanted) if job.id not in snap.jobs)
    return in_order(filter(matcher(wanted, ctx), chain(stored, snap.jobs.values())))


def _stored(desk: Desk, snap: Snapshot, wanted: AllOf) -> Iterator[Job]:
    refs, window = wanted.jobs, wanted.window
    query = HistoryQuery(
        jobs=tuple({ref.job for ref in refs}) if refs is not None else (),
        since=window.start if window.given else None,
        until=window.end if window.given else None,
        uids=tuple(map(int, wanted.users or ())),
        accounts=tuple(wanted.accounts or ()),
        states=_stated(wanted.states or frozenset()),
        names=tuple(wanted.names or ()),
        partitions=tuple(wanted.partitions or ()),
        held=snap.jobs,
    )
    return desk.history.jobs(query)


def _stated(states: frozenset[str]) -> tuple[str, ...]:
    """What records must say; nothing where a state counts that jobs have left since."""
    return () if states & PASSING.keys() else tuple(states)


async def _structured(
    desk: Desk, options: Options, jobs: list[Job], *, ctx: Context, by: Asker
) -> Answer:
    """`--json` and `--yaml`."""
    shown = await desk.read(_with_runs, desk, jobs) if options.has("duplicates") else jobs
    names = await user_names(desk, {job.ended_by for job in shown})
    named = replace_names(ctx, names)
    return await structured.listing(desk, shown, lambda: pieces(PAST_KIND, shown, named, asker=by))


def _each(options: Options, jobs: list[Job]) -> list[Job]:
    """With --array the tasks that wait one by one."""
    return list(spread_arrays(jobs)) if options.has("array") else jobs


@dataclass(frozen=True, slots=True)
class _Listing:
    """The rows of jobs and steps as they are to be written."""

    fields: list[Field]
    style: Style
    options: Options
    ctx: Context

    def text(self, jobs: list[Job], named: "Named", kept: KeptRows) -> str:
        """All of the output. Raises Refused where that is too much."""
        jobs = _each(self.options, jobs)
        alone = self.options.has("allocations")
        rows = len(jobs) if alone else sum(1 + len(job.steps) for job in jobs)
        check_size(self.fields, rows, self.style)

        def make(job: Job) -> str:
            rows = [(job, None)] if alone else _rows_of(job, steps_of(job), named)
            return body(self.fields, rows, self.ctx, style=self.style)

        top = head(self.fields, self.style)
        if named or self.options.has("duplicates"):
            return top + "".join(map(make, jobs))
        return top + kept.text((self.fields, self.style, alone), jobs, self.ctx, make=make)


def _with_runs(desk: Desk, jobs: Iterable[Job]) -> list[Job]:
    """Each job behind its earlier attempts; blocks."""
    return [
        record
        for job in jobs
        for record in (*map(former, desk.history.runs(job.id) if job.restarts else ()), job)
    ]


def former(run: Run) -> Job:
    """An attempt that a requeue followed: its state is REQUEUED unless it had ended before."""
    job = run.job
    if job.state.final:
        return job
    return replace(job, flags=JobFlag.COMPLETING | JobFlag.REQUEUED, state=JobState.RUNNING)


Named = Mapping[JobId, Sequence[JobRef]]


def _by_job(refs: Sequence[JobRef]) -> Named:
    """What was named of each job; nothing if no steps were named, which alone matter here."""
    named: dict[JobId, list[JobRef]] = {}
    if any(ref.step is not None for ref in refs):
        for ref in refs:
            named.setdefault(ref.job, []).append(ref)
    return named


def _rows_of(job: Job, steps: Sequence[Step], named: Named) -> list[AccountRow]:
    """The job's row and those of its steps; a step alone where only steps of it were named."""
    mine = _mine(job, named) if named else []
    if mine and all(ref.step is not None for ref in mine):
        wanted = {ref.step for ref in mine}
        return [(job, step) for step in steps if step.id in wanted]
    return [(job, None), *((job, step) for step in steps)]


def _mine(job: Job, named: Named) -> list[JobRef]:
    ids = {job.id, job.array.base if job.array else job.id}
    tasks = {None, job.array.task if job.array else None}
    return [ref for one in ids for ref in named.get(one, ()) if ref.task in tasks]


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
