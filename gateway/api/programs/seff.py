"""seff: what a job used of what it was given, as Slurm's contributed script prints it."""

from broker.model.job import Job, JobState
from broker.ports import HistoryQuery
from gateway.api.desk import Desk
from gateway.api.programs.reading import fail, finishing, read_options, reader
from gateway.api.wire import Answer, Call
from gateway.query import past
from gateway.query.context import Context
from gateway.query.refs import read_ref
from gateway.query.select import JobRef
from sbatch_shim.grammar.values import show_long

USAGE = "Usage: seff [Options] <Jobid>\n"
NOT_FOUND = "Job not found.\n"
NOT_YET = "Efficiency not available for jobs in the PENDING state.\n"
MISLEADING = "WARNING: Efficiency statistics may be misleading for RUNNING jobs.\n"
UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")
STEP = 1024
SECOND = 1_000_000


@finishing
async def seff(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call, usage=USAGE)
    refs = read_ref(options.words[0]) if options.words else None
    if not refs:
        raise fail(USAGE if not options.words else NOT_FOUND)
    job, by = await _job(desk, refs[0]), await desk.viewer(call.peer.uid)
    if job is None or not by.job(job):
        raise fail(NOT_FOUND)
    return Answer(out=report(job, reader(desk, call, desk.snapshot(), options=options)))


async def _job(desk: Desk, ref: JobRef) -> Job | None:
    held = [job for job in desk.snapshot().jobs.values() if _is(job, ref)]
    if held:
        return held[0]
    found = await desk.read(lambda: list(desk.history.jobs(HistoryQuery(jobs=(ref.job,)))))
    return next((job for job in found if _is(job, ref)), None)


def _is(job: Job, ref: JobRef) -> bool:
    base = job.array.base if job.array else job.id
    if ref.task is None:
        return job.id == ref.job
    return base == ref.job and job.array is not None and job.array.task == ref.task


def report(job: Job, ctx: Context) -> str:
    """The whole text."""
    lines = [f"Job ID: {job.id}"]
    if job.array is not None and job.array.task is not None:
        lines.append(f"Array Job ID: {job.array.base}_{job.array.task}")
    lines += [f"Cluster: {ctx.site.cluster}", f"User/Group: {job.owner.user}/{job.owner.group}"]
    if job.state is JobState.PENDING:
        return "\n".join([*lines, f"State: {job.state.label}", NOT_YET])
    code = past.exit_code(job, ctx).code
    lines.append(f"State: {job.state.label} (exit code {code})")
    return "\n".join([*lines, *_shape(job), *_use(job, ctx), ""]) + (
        MISLEADING if job.state is JobState.RUNNING else ""
    )


def _shape(job: Job) -> list[str]:
    cores, nodes = job.alloc.cpu, max(job.alloc.node, 1)
    if cores <= 1:
        return [f"Cores: {cores}"]
    return [f"Nodes: {nodes}", f"Cores per node: {cores // nodes}"]


def _use(job: Job, ctx: Context) -> list[str]:
    cpu = past.total_cpu(job, ctx) // SECOND
    given = past.cpu_seconds(job, ctx)
    memory = max((step.usage.max_rss_kib for step in job.steps), default=0)
    held = job.alloc.mem_mib * STEP
    part = kilobytes(held // max(job.alloc.cpu, 1))
    return [
        f"CPU Utilized: {show_long(cpu)}",
        f"CPU Efficiency: {_percent(cpu, given)} of {show_long(given)} core-walltime",
        f"Job Wall-clock time: {show_long(past.elapsed(job, ctx))}",
        f"Memory Utilized: {kilobytes(memory)}",
        f"Memory Efficiency: {_percent(memory, held)} of {kilobytes(held)} ({part}/core)",
    ]


def _percent(used: int, given: int) -> str:
    return f"{100 * used / given if given else 0:.2f}%"


def kilobytes(count: float) -> str:
    """Two decimals in the largest unit that leaves one before the point; at least MB."""
    value, place = count / STEP, 1
    while value >= STEP and place < len(UNITS) - 1:
        value, place = value / STEP, place + 1
    return f"{value:.2f} {UNITS[place]}"
