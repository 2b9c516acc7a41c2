"""Texts of a job and the files it writes: getters of the column table. None means not set."""

from broker.model.ids import BATCH
from broker.model.job import Job, JobState, Step
from gateway.query.column import StepGetter
from gateway.query.context import Context
from gateway.query.job import sluid
from gateway.query.resources import batch_host
from sbatch_shim.grammar.filenames import FileJob, absolute, default_pattern, fill

# ---------------------------------------------------------------- texts


def comment(job: Job, _: Context) -> str | None:
    return job.spec.comment if job.comment is None else job.comment


def admin_comment(job: Job, _: Context) -> str | None:
    return job.admin_comment


def system_comment(job: Job, _: Context) -> str | None:
    """While a job waits, also what was refused where: Slurm's reason is one word."""
    waits = job.state is JobState.PENDING and job.detail
    return job.system_comment or (job.detail if waits else None)


def work_dir(job: Job, _: Context) -> str:
    return job.spec.cwd


def command(job: Job, _: Context) -> str | None:
    return job.spec.command


def submit_line(job: Job, _: Context) -> str | None:
    return job.spec.submit_line or None


def submit_host(job: Job, _: Context) -> str | None:
    return job.spec.submit_host or None


ALLOCATING = "localhost"
"""Where the controller sees requests come from, which is the local socket."""


def executing_host(job: Job, ctx: Context) -> str | None:
    """squeue's: where the script runs; for salloc and srun, where they were started (25.11)."""
    return ALLOCATING if job.spec.allocator else batch_host(job, ctx)


def submitter(job: Job, _: Context) -> str:
    """AllocNode:Sid."""
    return f"{job.spec.submit_host or 'localhost'}:0"


def licenses(job: Job, _: Context) -> str | None:
    return job.spec.licenses


def reservation(job: Job, _: Context) -> str | None:
    return job.spec.reservation


def wckey(job: Job, _: Context) -> str | None:
    return job.spec.wckey


def mail_user(job: Job, _: Context) -> str | None:
    types = [word for word in job.spec.mail_types if word.upper() != "NONE"]
    return (job.spec.mail_user or job.owner.user) if types else None


def mail_types(job: Job, _: Context) -> str:
    return ",".join(job.spec.mail_types)


FREQUENCIES = {"low": "Low", "medium": "Medium", "high": "High", "highm1": "HighM1"}


def cpu_frequency(job: Job, _: Context) -> str | None:
    """`--cpu-freq=medium`: the highest, and what holds it there (25.11)."""
    word = FREQUENCIES.get((job.spec.option("cpu-freq") or "").lower())
    return f"{word} Governor=UserSpace" if word else None


def switches(job: Job, _: Context) -> str | None:
    """`--switches=1` waits five minutes unless told otherwise (max_switch_wait)."""
    given = job.spec.option("switches")
    if not given:
        return None
    count, _at, wait = given.partition("@")
    return f"{count}@{wait or '00:05:00'}"


# ---------------------------------------------------------------- output files


def _stdin(job: Job) -> str | None:
    return (job.spec.output.stdin or "/dev/null") if job.spec.batch else None


def _stdout(job: Job) -> str | None:
    if job.spec.batch is None:
        return None
    return job.spec.output.stdout or _default(job)


def _default(job: Job) -> str:
    return default_pattern(job.array is not None or job.spec.option("array") is not None)


def _stderr(job: Job) -> str | None:
    return job.spec.output.stderr if job.spec.batch else None


def stdin_pattern(job: Job, _: Context) -> str | None:
    return _whole(_stdin(job), job)


def stdout_pattern(job: Job, _: Context) -> str | None:
    """As a path, but without one where no name was given (25.11)."""
    return _whole(_stdout(job), job) if job.spec.output.stdout else _stdout(job)


def stderr_pattern(job: Job, _: Context) -> str | None:
    return _whole(_stderr(job), job)


def _whole(pattern: str | None, job: Job) -> str | None:
    return None if pattern is None else absolute(pattern, job.spec.cwd)


def step_file(name: str) -> StepGetter:
    """One of a step's own files (`stdout`): with its patterns, or filled in (25.11)."""

    def get(job: Job, step: Step, ctx: Context) -> str | None:
        spec = step.spec
        pattern = getattr(spec.output, name) if spec and spec.output else None
        if pattern is None or spec is None:
            return None
        told = fill(pattern, _facts(job, ctx, step.id)) if ctx.expand_patterns else pattern
        return absolute(told, spec.cwd or job.spec.cwd)

    return get


def expanded(pattern: str | None, job: Job, ctx: Context) -> str | None:
    """The file's whole path with every pattern filled in; None for none."""
    return None if pattern is None else absolute(fill(pattern, _facts(job, ctx)), job.spec.cwd)


def _facts(job: Job, ctx: Context, step: str = BATCH) -> FileJob:
    array = job.array
    return FileJob(
        job.id,
        array.base if array else None,
        array.task if array else None,
        job.owner.user,
        job.spec.name,
        batch_host(job, ctx) or "",
        job.restarts,
        sluid(job, ctx),
        step,
    )


def stdin_path(job: Job, ctx: Context) -> str | None:
    return expanded(_stdin(job), job, ctx)


def stdout_path(job: Job, ctx: Context) -> str | None:
    return expanded(_stdout(job), job, ctx)


def stderr_path(job: Job, ctx: Context) -> str | None:
    """Empty for a batch job without `-e`, whose errors go where its output goes (25.11)."""
    if job.spec.batch is None:
        return None
    return expanded(_stderr(job), job, ctx) or ""


def stdin(job: Job, ctx: Context) -> str | None:
    """With its patterns (24.05 and later), or filled in when that is asked for."""
    return stdin_path(job, ctx) if ctx.expand_patterns else stdin_pattern(job, ctx)


def stdout(job: Job, ctx: Context) -> str | None:
    return stdout_path(job, ctx) if ctx.expand_patterns else stdout_pattern(job, ctx)


def stderr(job: Job, ctx: Context) -> str | None:
    return stderr_path(job, ctx) or None if ctx.expand_patterns else stderr_pattern(job, ctx)
