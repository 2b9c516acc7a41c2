"""What scontrol shows: jobs, nodes, partitions, the configuration, host lists."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from broker.model.errors import SpzError, Unknown
from broker.model.job import Job
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.barred import must_see
from gateway.api.programs.early import TOO_MANY
from gateway.api.programs.hostload import host_name, measured
from gateway.api.programs.reading import Options, fail, finishing, read_options, reader
from gateway.api.programs.scontrol_words import is_short_for
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.documents import Asker, document, pieces, values
from gateway.query.moments import show_moment
from gateway.query.nodes import node_views
from gateway.query.past import script_digest
from gateway.query.privacy import Viewer
from gateway.query.refs import read_ref
from gateway.query.restjob import JOB_KIND
from gateway.query.restnode import NODE_KIND, PARTITION_KIND
from gateway.query.select import JobRef
from gateway.query.shape import number
from gateway.query.showjob import show_job
from gateway.query.shownode import show_node, show_partition
from gateway.query.siteconfig import config_text
from sbatch_shim.grammar.hostlist import HostlistError, expand, fold, join
from sbatch_shim.grammar.values import show_long

MOST_WORDS = 2
"""What is to be shown, and which one."""
MOST = {"assoc_mgr": 99, "cache": 99, "daemons": 1}
"""Entities with more words behind them, or none."""
TOO_FEW = "too few arguments for keyword:{}\n"
BAD_KEYWORD = "invalid keyword: {}\n"
BAD_ENTITY = "invalid entity:{} for keyword:{}\n"
BAD_JOB = "scontrol_print_job error: Invalid job id specified\n"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified\n"
NO_SLURMD = (
    "scontrol: error: slurm_slurmd_info: Connection refused\n"
    "slurm_load_slurmd_status:Connection refused\n"
)
NO_SCRIPT = "job script retrieval failed: {}\n"
NO_FILE = (
    "scontrol: error: write config is not supported by SkyPurza: the configuration is a file of "
    "its own; scontrol show config says it in Slurm's words\n"
)
EMPTY_LIST = "scontrol: error: host list is empty\n"
NO_LIST = "invalid encode argument\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One `scontrol show`: who asks, the words behind the entity, how to write."""

    desk: Desk
    call: Call
    snap: Snapshot
    """All that there is; what they may see of it is in `seen`."""
    seen: Snapshot
    viewer: Viewer
    ctx: Context
    options: Options
    words: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    by: Asker | None = None
    """Set where the answer is to be JSON or YAML."""

    @property
    def oneliner(self) -> bool:
        return self.options.has("oneliner")

    @property
    def details(self) -> bool:
        return self.options.has("details")


View = Callable[[Asked], Awaitable[Answer]]
Keywords = Mapping[str, tuple[int, View]]
"""Least number of letters of a keyword, and what it does."""


class Show:
    """Every scontrol command that changes nothing; `settings` are lines of `show config`.

    `lists` are further commands, `entities` further things to show.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        lists: Keywords | None = None,
        entities: Keywords | None = None,
    ) -> None:
        self.settings = settings or {}
        shown = (3, _showing({**ENTITIES, **(entities or {})}))
        self.keywords = {"show": shown, **KEYWORDS, **(lists or {})}

    @finishing
    async def __call__(self, desk: Desk, call: Call) -> Answer:
        options = read_options(desk, call)
        snap = desk.snapshot()
        ctx = reader(desk, call, snap, options=options)
        by = await structured.asker(desk, call, options)
        if not options.words:
            return Answer(prompt=call.argv)
        words = options.words[1:]
        seen, viewer = await desk.seen(call.peer.uid), await desk.viewer(call.peer.uid)
        asked = Asked(desk, call, snap, seen, viewer, ctx, options, words, self.settings, by)
        return await _keyword(options.words, self.keywords)(asked)


def _keyword(words: tuple[str, ...], known: Keywords) -> View:
    name = _named(words[0], known)
    if name is None:
        raise fail(BAD_KEYWORD.format(words[0]))
    return known[name][1]


def _named(word: str, table: Keywords) -> str | None:
    """What a word names in full or by enough of its letters, in any case."""
    word = word.lower()
    if word in table:
        return word
    return next(
        (name for name, (least, _) in table.items() if is_short_for(word, name, least)), None
    )


def _showing(entities: Keywords) -> View:
    async def show(asked: Asked) -> Answer:
        if not asked.words:
            raise fail(TOO_FEW.format("show"))
        entity, equals, value = asked.words[0].partition("=")
        name = _named(entity, entities)
        if name is None:
            raise fail(BAD_ENTITY.format(asked.words[0], "show"))
        if len(asked.words) > MOST.get(name, MOST_WORDS):
            raise fail(TOO_MANY.format("show"))
        rest = ((value,) if equals else ()) + asked.words[1:]
        return await entities[name][1](replace(asked, words=rest))

    return show


# ---------------------------------------------------------------- jobs


async def _jobs(asked: Asked) -> Answer:
    if not asked.words:
        return await _all_jobs(asked)
    word = asked.words[0]
    refs = read_ref(word)
    if refs is None or refs[0].step is not None:
        raise fail(BAD_JOB)
    found = [job for ref in refs for job in jobs_of(ref, asked.seen)]
    if found and asked.by is not None:
        return await _jobs_as(asked, asked.by, _once(found))
    if found:
        return Answer(out="".join(_job_text(job, asked) for job in _once(found)))
    if refs[0].task is not None and jobs_of(JobRef(refs[0].job), asked.seen):
        return Answer(out=f"Job {word} not found\n", code=1)
    raise fail(UNKNOWN_JOB)


async def _jobs_as(asked: Asked, by: Asker, jobs: list[Job]) -> Answer:
    at = number(asked.snap.at)
    more = {"last_backfill": at, "last_update": at}
    return await structured.listing(
        asked.desk, jobs, lambda: pieces(JOB_KIND, jobs, asked.ctx, asker=by, more=more)
    )


def _once(jobs: list[Job]) -> list[Job]:
    return list({job.id: job for job in jobs}.values())


async def _all_jobs(asked: Asked) -> Answer:
    """Their text is a second's work where there are ten thousand."""
    jobs = [job for _, job in sorted(asked.seen.jobs.items())]
    if asked.by is not None:
        return await _jobs_as(asked, asked.by, jobs)
    text = await asked.desk.read(lambda: "".join(_job_text(job, asked) for job in jobs))
    return Answer(out=text or "No jobs in the system\n")


def _job_text(job: Job, asked: Asked) -> str:
    return show_job(job, asked.ctx, details=asked.details, oneliner=asked.oneliner)


def jobs_of(ref: JobRef, snap: Snapshot) -> list[Job]:
    """The record of that id; an array's own first, then its elements, the latest first.

    Of a heterogeneous job's leader all components.
    """
    own = snap.jobs.get(ref.job)
    if own is not None and own.het is not None and own.het.offset == 0:
        return [snap.jobs[job_id] for job_id in own.het.ids if job_id in snap.jobs]
    elements = [job for job in snap.jobs.values() if job.array and job.array.base == ref.job]
    if ref.task is not None:
        return [job for job in elements if _has_task(job, ref.task)]
    others = sorted((job for job in elements if job is not own), key=lambda job: -job.id)
    return ([own] if own else []) + others


def _has_task(job: Job, task: int) -> bool:
    array = job.array
    return array is not None and (array.task == task or task in array.waiting)


# ---------------------------------------------------------------- nodes and partitions


async def _nodes(asked: Asked) -> Answer:
    await must_see(asked.desk, asked.call, "nodes", told="slurm_load_node error")
    views = {str(view.name): view for view in node_views(asked.snap)}
    pushes = asked.desk.pushes
    swept = {name for name, node in asked.snap.nodes.items() if pushes.fallen_back(node)}
    ctx = replace(measured(await _with_names(asked)), swept=swept)
    names = list(views)
    if asked.words:
        try:
            names = expand(asked.words[0])
        except HostlistError:
            names = [asked.words[0]]
    out, code = "", 0
    if asked.by is not None:
        shown = [views[name] for name in names if name in views]
        more = {"last_update": number(asked.snap.at)}
        return Answer(out=document(NODE_KIND, shown, ctx, asker=asked.by, more=more))
    for name in names:
        if name in views:
            one = views[name]
            out += show_node(one, ctx, details=asked.details, oneliner=asked.oneliner)
        else:
            out += f"Node {name} not found\n"
            code = 1
    return Answer(out=out, code=code)


async def _with_names(asked: Asked) -> Context:
    """The context that knows who wrote the reasons of nodes."""
    uids = {node.reason_uid for node in asked.snap.nodes.values() if node.reason}
    return replace_names(asked.ctx, await user_names(asked.desk, uids))


async def user_names(desk: Desk, uids: set[int | None]) -> dict[int, str]:
    """The names of uids; a uid that the host does not know stays a number."""
    names = {}
    for uid in uids:
        if uid is not None:
            try:
                names[uid] = (await desk.owner(uid)).user
            except SpzError:
                names[uid] = str(uid)
    return names


def replace_names(ctx: Context, names: Mapping[int, str]) -> Context:
    """The same context, knowing these users."""
    return ctx.with_names(lambda uid: names.get(uid, str(uid)))


async def _partitions(asked: Asked) -> Answer:
    await must_see(asked.desk, asked.call, "partitions", told="slurm_load_partitions error")
    views = {str(view.name): view for view in node_views(asked.snap)}
    every = asked.options.has("all")
    hidden = frozenset() if every else await asked.desk.hidden(asked.call.peer.uid)
    parts = tuple(part for part in asked.snap.site.partitions if part.name not in hidden)
    if asked.words:
        parts = tuple(part for part in parts if part.name == asked.words[0])
        if not parts:
            return Answer(out=f"Partition {asked.words[0]} not found\n", code=1)
    if asked.by is not None:
        more = {"last_update": number(asked.snap.at)}
        return Answer(out=document(PARTITION_KIND, parts, asked.ctx, asker=asked.by, more=more))
    return Answer(out="".join(show_partition(p, views, oneliner=asked.oneliner) for p in parts))


# ---------------------------------------------------------------- the site


async def _config(asked: Asked) -> Answer:
    text = config_text(asked.snap, asked.ctx, host=host_name(), settings=asked.settings)
    return Answer(out=text)


async def _ping(asked: Asked) -> Answer:
    if asked.words:
        raise fail(TOO_MANY.format("ping"))
    if asked.by is not None:
        ping = {"hostname": host_name(), "pinged": "UP", "latency": 0, "mode": "primary"}
        content = {"pings": [{**ping, "responding": True, "primary": True}]}
        return Answer(out=values(content, asked.ctx, asker=asked.by))
    return Answer(out=f"Slurmctld(primary) at {host_name()} is UP\n")


async def _version(asked: Asked) -> Answer:
    told = f"slurm {asked.snap.site.version}\n"
    if asked.words:
        raise fail("too many arguments for version keyword\n", out=told)
    return Answer(out=told)


async def _completing(asked: Asked) -> Answer:
    """Jobs that leave their nodes, and the nodes (22.05)."""
    if asked.words:
        raise fail(TOO_MANY.format("completing"))
    leaving = (job for job in asked.seen.jobs.values() if job.completing)
    lines = []
    for job in sorted(leaving, key=lambda job: job.id):
        end = show_moment(job.ended, asked.ctx) if job.ended is not None else "Unknown"
        nodes = fold(share.node for share in job.shares)
        lines.append(
            f"JobId={job.id} EndTime={end} CompletingTime={_since(job, asked.ctx)} "
            f"Nodes(COMPLETING)={nodes}\n"
        )
    return Answer(out="".join(lines))


def _since(job: Job, ctx: Context) -> str:
    return show_long(max(0, ctx.now - (job.ended or ctx.now)))


def _says(out: str = "", err: str = "", code: int = 0) -> View:
    async def view(_: Asked) -> Answer:
        return Answer(out=out, err=err, code=code)

    return view


# ---------------------------------------------------------------- host lists


def _host_list(write: Callable[[list[str]], str], *, own: bool = False) -> View:
    """`own`: without a word it is about the job that asks; others want one (22.05)."""

    async def view(asked: Asked) -> Answer:
        usual = asked.call.environ.get("SLURM_NODELIST", "") if own else ""
        text = asked.words[0] if asked.words else usual
        if not text and own:
            return Answer(err=EMPTY_LIST)
        if not text:
            raise fail(NO_LIST)
        try:
            names = expand(text)
        except HostlistError:
            return Answer(err=f"Invalid hostlist: {text}\n")
        return Answer(out=write(names))

    return view


# ---------------------------------------------------------------- scripts


async def _write(asked: Asked) -> Answer:
    """`write batch_script JOB [FILE|-]`: the script as it was submitted."""
    words = _of_script(asked.words)
    refs = read_ref(words[1])
    jobs = jobs_of(refs[0], asked.snap) if refs else []
    if not jobs:
        return Answer(err=NO_SCRIPT.format("Invalid job id specified"))
    job, uid = jobs[0], asked.call.peer.uid
    if uid != job.owner.uid and not asked.snap.site.operates(uid):
        return Answer(err=NO_SCRIPT.format("Invalid user id"))
    digest = script_digest(job)
    if digest is None:
        return Answer(err=NO_SCRIPT.format("Invalid job id specified"))
    try:
        content = await asked.desk.read(asked.desk.history.blob, digest)
    except Unknown:
        return Answer(err=NO_SCRIPT.format("Invalid job id specified"))
    name = words[2] if len(words) > 2 else f"slurm-{job.id}.sh"
    if name == "-":
        return Answer(out=content)
    told = f"batch script for job {job.id} written to {name}\n"
    return Answer(out=told, write=(name, content))


def _of_script(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words, where they ask for a script. Raises Finished for all else."""
    if words and is_short_for(words[0], "config", 1):
        raise fail(NO_FILE)
    if words and not is_short_for(words[0], "batch_script", 1):
        raise fail(f"invalid write argument:{words[0]}\n")
    if len(words) < 2:
        raise fail(TOO_FEW.format("write"))
    return words


KEYWORDS: Keywords = {
    "ping": (3, _ping),
    "version": (4, _version),
    "write": (5, _write),
    "completing": (3, _completing),
}
"""Least number of letters, and what it does."""

ENTITIES: Mapping[str, tuple[int, View]] = {
    "jobs": (1, _jobs),
    "jobid": (4, _jobs),
    "nodes": (1, _nodes),
    "nodename": (5, _nodes),
    "partitions": (1, _partitions),
    "partitionname": (10, _partitions),
    "config": (1, _config),
    "hostnames": (5, _host_list(lambda names: "".join(f"{name}\n" for name in names), own=True)),
    "hostlist": (5, _host_list(lambda names: join(names) + "\n")),
    "hostlistsorted": (9, _host_list(lambda names: fold(names) + "\n")),
    "daemons": (1, _says("slurmctld slurmd\n")),
    "topology": (1, _says()),
    "aliases": (1, _says()),
    "federation": (2, _says()),
    "slurmd": (2, _says(err=NO_SLURMD, code=1)),
}
