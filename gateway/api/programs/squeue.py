"""squeue: jobs and steps that have not ended."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace

from broker.model.job import Job
from broker.model.site import Site
from broker.schedule.forecast import forecast
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.barred import DENIED
from gateway.api.programs.iterate import iterated, repeated
from gateway.api.programs.reading import (
    Finished,
    Listings,
    Options,
    asked_by,
    cluster_line,
    fail,
    limit_of,
    lower,
    read_options,
    reader,
    states_in,
)
from gateway.api.programs.squeue_look import check_formats, look, own_format
from gateway.api.programs.squeue_verbose import told
from gateway.api.wire import Answer, Call
from gateway.query import views
from gateway.query.context import Context
from gateway.query.documents import Asker, pieces
from gateway.query.kept import KeptLines
from gateway.query.keptjson import KeptBlocks
from gateway.query.layout import Layout
from gateway.query.moments import RELATIVE, headline
from gateway.query.refs import cut_list, read_refs
from gateway.query.restjob import JOB_KIND
from gateway.query.select import (
    JobRef,
    SortError,
    Wanted,
    check_sort,
    gather_arrays,
    named_elements,
    ordered,
    select,
    spread_arrays,
    spread_partitions,
)
from gateway.query.shape import number
from gateway.query.steps import (
    STEP_DEFAULT,
    JobStep,
    live_steps,
    step_letters,
    step_names,
    step_nodes,
)
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.values import read_digits

# fmt: off
USAGE = """\
Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [--only-job-state] [-p partitions]
              [--qos qos] [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
              [--expand-patterns] [--json=data_parser] [--yaml=data_parser]
              [--running-over=time] [--running-under=time] [-ahjlrsv]
"""
# fmt: on
FATAL = "squeue: fatal: Could not get cluster information\n"
BAD_COLUMN = "squeue: error: Invalid job format specification: {}\n"
BAD_JOB = "squeue: error: Invalid job id: {}\n"
BAD_STEP = "squeue: error: Invalid job_step id: {}\n"
BAD_STEP_COLUMN = "squeue: error: Invalid job step format specification: {}\n"
BAD_NODE = "squeue: error: Invalid node name {}\n"
BAD_SORT = "squeue: error: Invalid sort specification: {}\n"
BAD_STATE = (
    "squeue: error: Invalid job state specified: {}\n"
    f"squeue: error: Valid job states include: {','.join(views.job_states())}\n\n"
)
NO_PARTITIONS = f"slurm_load_partitions: {DENIED}\n"
"""What they hear who may not see partitions; their jobs are listed all the same (22.05)."""
BAD_USER = "squeue: error: Invalid user: {}\n\n"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified\n"


HELP: Mapping[str, Callable[[bool], str]] = {
    "helpFormat": lambda steps: views.step_help_names() if steps else views.squeue_help_names(),
    "helpformat": lambda steps: views.step_help_letters() if steps else views.squeue_help_letters(),
    "helpstate": lambda _: "\n".join([*views.job_states(), ""]),
}
"""What can be asked for, of jobs or of steps."""


class Squeue:
    """The command; keeps the text of listings while the world stays the same."""

    def __init__(self) -> None:
        self.listings = Listings()
        self.kept = KeptLines()
        self.blocks = KeptBlocks()

    async def __call__(self, desk: Desk, call: Call) -> Answer:
        seconds = iterated(call)
        if seconds:
            return await repeated(desk, call, self._once, seconds=seconds)
        return await self._once(desk, call)

    async def _once(self, desk: Desk, call: Call) -> Answer:
        snap, asked = await desk.seen(call.peer.uid), asked_by(call)
        known = self.listings.find(snap.look, asked, (desk.now(), asked))
        if known is not None:
            return known
        try:
            answer, timed = await self._answer(desk, call, snap)
        except Finished as end:
            return end.answer
        if answer.rest is not None:
            return answer
        key: Hashable = (desk.now(), asked) if timed else asked
        self.listings.keep(snap.look, key, answer)
        return answer

    async def _answer(self, desk: Desk, call: Call, snap: Snapshot) -> tuple[Answer, bool]:
        options = _with_words(read_options(desk, call, usage=USAGE))
        _check_iterate(options)
        check_formats(options)
        for long, text in HELP.items():
            if options.has(long):
                return Answer(out=text(options.has("steps"))), False
        ctx = reader(desk, call, snap, options=options)
        top = cluster_line(options, call, snap, fatal=FATAL)
        errors = await _complaints(desk, options, call, snap=snap)
        by = await structured.asker(desk, call, options, taken=_behind(options, call))
        hidden = frozenset() if options.has("all") else await desk.hidden(call.peer.uid)
        wanted = _wanted(options, call, snap, hidden=hidden)
        if "cost" in (options.text("Format") or "").lower():
            costs = await desk.costs(list(snap.jobs))
            ctx = replace(ctx, costs=costs)
        if options.has("start"):
            starts = await desk.read(forecast, snap.site, snap.jobs, snap.nodes, now=ctx.now)
            ctx = replace(ctx, forecasts=starts)
        if by is not None:
            by = replace(by, kept=self.blocks)
            return await _structured(desk, snap, ctx=ctx, wanted=wanted, by=by), False
        if options.has("steps"):
            listed = _steps(options, snap, ctx, users=wanted.users, texts=(top, errors))
        else:
            listed = self._jobs(options, snap, ctx, wanted=wanted, texts=(top, errors))
        said = told(options, call, snap, ctx=ctx)
        return (replace(listed[0], out=f"{said}{listed[0].out!s}"), True) if said else listed

    def _jobs(
        self,
        options: Options,
        snap: Snapshot,
        ctx: Context,
        *,
        wanted: Wanted,
        texts: tuple[str, str],
    ) -> tuple[Answer, bool]:
        shape = look(options)
        top, errors = texts
        errors += "".join(BAD_COLUMN.format(name) for name in shape.layout.unknown)
        if shape.dated and not options.has("verbose"):
            top += headline(ctx) + "\n"
        head = _head(options, top, shape.layout)
        try:
            check_sort(shape.sort)
        except SortError as error:
            raise fail(errors + BAD_SORT.format(error), out=head) from None
        if options.has("only-job-state") and wanted.jobs is not None:
            jobs = _each_ref(options, snap, ctx, wanted=wanted)
        else:
            found = select(snap.jobs.values(), wanted, ctx)
            jobs = ordered(_spread(options, found, wanted), shape.sort, ctx)
        lines = self.kept.lines(shape.layout, jobs, ctx)
        timed = shape.layout.timed or shape.dated or ctx.time_format == RELATIVE
        timed = timed or options.has("start") or wanted.over is not None or wanted.under is not None
        return Answer(out=head + _block(lines), err=errors), timed


def _behind(options: Options, call: Call) -> list[str]:
    """Words behind a bare -j or -s, which squeue takes out of the command it tells of (25.11)."""
    said = {one.opt.long for one in options.query.said if one.text is None}
    given = options.query.given
    texts = [given[long].text for long in ("jobs", "steps") if long in said]
    return [text for text in texts if text is not None and text in call.argv]


async def _structured(
    desk: Desk, snap: Snapshot, *, ctx: Context, wanted: Wanted, by: Asker
) -> Answer:
    """`--json` and `--yaml`; arrays are one record for what waits, as in memory."""
    jobs = sorted(select(snap.jobs.values(), wanted, ctx), key=lambda job: job.id)
    at = number(snap.at)
    more = {"last_backfill": at, "last_update": at}
    return await structured.listing(
        desk, jobs, lambda: pieces(JOB_KIND, jobs, ctx, asker=by, more=more)
    )


def _with_words(options: Options) -> Options:
    """Words behind a bare -j or -s are its value, as getopt does not see it (25.11)."""
    words = list(options.words)
    given = dict(options.query.given)
    for long in ("jobs", "steps"):
        if words and long in given and given[long].text is None:
            given[long] = given[long]._replace(text=words.pop(0))
    if words:
        text = f"squeue: error: Unrecognized option: {words[0]}\n"
        raise fail(text, out=USAGE)
    return Options(options.query._replace(given=given))


def _check_iterate(options: Options) -> None:
    text = options.text("iterate")
    if text is not None and not read_digits(text):
        raise fail(f"squeue: error: --iterate={text}\n\n")


# ---------------------------------------------------------------- what is wanted


async def _complaints(desk: Desk, options: Options, call: Call, *, snap: Snapshot) -> str:
    """What is said beside the listing."""
    told = "" if (await desk.viewer(call.peer.uid)).may("partitions") else NO_PARTITIONS
    return told + await _unknown_users(desk, options, call, snap=snap)


async def _unknown_users(desk: Desk, options: Options, call: Call, *, snap: Snapshot) -> str:
    """Complaints about users that nobody knows; the rest is listed all the same."""
    names = _users(options, call) or frozenset()
    owners = [job.owner for job in snap.jobs.values()] if names else []
    known = {str(call.peer.uid), *(o.user for o in owners), *(str(o.uid) for o in owners)}
    unknown = [name for name in sorted(names - known) if await desk.uid(name) is None]
    return "".join(map(BAD_USER.format, unknown))


def _users(options: Options, call: Call) -> frozenset[str] | None:
    """Of --user and --me what was typed last, or stands in the environment; None for everybody."""
    said = [one.opt.long for one in options.query.said if one.opt.long in ("user", "me")]
    if said[-1:] == ["me"]:
        return frozenset({str(call.peer.uid)})
    return options.words_of("user")


def _wanted(options: Options, call: Call, snap: Snapshot, *, hidden: frozenset[str]) -> Wanted:
    """The filters. Raises Finished for a value that cannot be."""
    states = _states(options)
    return Wanted(
        jobs=_job_refs(options, snap),
        users=_users(options, call),
        not_user=call.peer.uid if options.has("notme") else None,
        states=states,
        all_states=states is None and options.has("states"),
        partitions=options.words_of("partitions"),
        hidden=hidden,
        accounts=lower(options.words_of("accounts")),
        names=lower(options.words_of("name")),
        qos=lower(options.words_of("qos")),
        nodes=_nodes(options, snap.site),
        licenses=options.words_of("licenses"),
        reservations=options.words_of("reservation"),
        over=limit_of(options, "running-over", program=call.program),
        under=limit_of(options, "running-under", program=call.program),
    )


def _states(options: Options) -> frozenset[str] | None:
    """Long words; None for all, or where none were given."""
    text = options.text("states")
    if text is None and options.has("start"):
        return frozenset({"PENDING"})
    if text is None or text.lower() == "all":
        return None
    return states_in(text, bad=BAD_STATE)


def _job_refs(options: Options, snap: Snapshot) -> tuple[JobRef, ...] | None:
    text = options.text("jobs")
    if text is None:
        return None
    refs: list[JobRef] = []
    for word, found in read_refs((text,)):
        if found is None or not found[0].job:
            raise fail(BAD_JOB.format(word))
        refs += found
    if len(refs) == 1 and not _is_held(refs[0], snap):
        raise fail(UNKNOWN_JOB)
    return tuple(refs)


def _is_held(ref: JobRef, snap: Snapshot) -> bool:
    """Whether the job, or an element of the array, is still in memory."""
    if ref.job in snap.jobs:
        return True
    return any(job.array and job.array.base == ref.job for job in snap.jobs.values())


def _nodes(options: Options, site: Site) -> frozenset[str] | None:
    text = options.text("nodelist")
    if text is None:
        return None
    try:
        names = expand(text)
    except HostlistError:
        raise fail(BAD_NODE.format(text)) from None
    known = site_nodes(site)
    for name in names:
        if name not in known:
            raise fail(BAD_NODE.format(name))
    return frozenset(names)


def site_nodes(site: Site) -> set[str]:
    """Every name a node of the site has or may get."""
    names = {str(node.name) for node in site.nodes}
    for part in site.partitions:
        if part.elastic:
            names |= {f"{part.elastic.prefix}{n}" for n in range(1, part.elastic.max_nodes + 1)}
    return names


# ---------------------------------------------------------------- what is shown


def _each_ref(options: Options, snap: Snapshot, ctx: Context, *, wanted: Wanted) -> list[Job]:
    """The controller looks states up one by one: as named, also what is named twice (25.11)."""
    each = (replace(wanted, jobs=(ref,)) for ref in wanted.jobs or ())
    return [
        job for one in each for job in _spread(options, select(snap.jobs.values(), one, ctx), one)
    ]


def _spread(options: Options, jobs: Iterable[Job], wanted: Wanted) -> list[Job]:
    apart = options.has("array")
    # The controller tells states of whole records (25.11): a named task brings all that waits.
    whole = options.has("only-job-state") and not apart
    found = list(named_elements(jobs, () if whole else wanted.jobs or ()))
    found = list(spread_arrays(found) if apart else gather_arrays(found))
    if options.has("priority"):
        found = list(spread_partitions(found))
    if options.has("only-job-state"):
        found = [_without_limit(job) for job in found]
    return found


def _is_element(job: Job, refs: tuple[JobRef, ...]) -> bool:
    base = job.array.base if job.array else job.id
    task = job.array.task if job.array else None
    return any(ref.job in {base, job.id} and ref.task in {None, task} for ref in refs)


def _without_limit(job: Job) -> Job:
    """The controller tells ids and states alone, so the array's limit is not known (25.11)."""
    return replace(job, array=replace(job.array, limit=None)) if job.array else job


def _steps(
    options: Options,
    snap: Snapshot,
    ctx: Context,
    *,
    users: frozenset[str] | None,
    texts: tuple[str, str],
) -> tuple[Answer, bool]:
    """`squeue -s`: the steps that run now."""
    _check_steps(options)
    top, errors = texts
    letters, names = own_format(options)
    layout = step_names(names) if names else step_letters(letters or STEP_DEFAULT)
    errors += "".join(BAD_STEP_COLUMN.format(name) for name in layout.unknown)
    if options.has("long") and not options.has("verbose"):
        top += headline(ctx) + "\n"
    nodes = _nodes(options, snap.site)
    named = [text for name in ("steps", "jobs") if (text := options.text(name))]
    refs = tuple(ref for _, found in read_refs(named) for ref in found or ())
    pairs = [
        pair
        for pair in live_steps(snap.jobs.values())
        if _is_wanted(pair, options, users, refs=refs)
        and (nodes is None or not nodes.isdisjoint(step_nodes(*pair, ctx) or ()))
    ]
    head = _head(options, top, layout)
    return Answer(out=head + _block(layout.lines(pairs, ctx)), err=errors), True


def _check_steps(options: Options) -> None:
    """Raises Finished for a word of -s that is no `job.step`."""
    for word in cut_list(options.text("steps") or ""):
        job, _, step = word.partition(".")
        if not step or not read_digits(job.partition("_")[0]):
            raise fail(BAD_STEP.format(f"{job}.{step or '??'}"))


def _is_wanted(
    pair: JobStep, options: Options, users: frozenset[str] | None, *, refs: tuple[JobRef, ...]
) -> bool:
    job, step = pair
    if users is not None and users.isdisjoint({job.owner.user, str(job.owner.uid)}):
        return False
    partitions = options.words_of("partitions")
    if partitions is not None and job.partition not in partitions:
        return False
    if not refs:
        return True
    return any(_is_element(job, (ref,)) and ref.step in {None, step.id} for ref in refs)


def _head(options: Options, top: str, layout: Layout[Job] | Layout[JobStep]) -> str:
    return "" if options.has("noheader") else f"{top}{layout.header}\n"


def _block(lines: list[str]) -> str:
    return "\n".join([*lines, ""]) if lines else ""
