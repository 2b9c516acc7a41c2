"""Texts of a job and the files it writes: getters of the column table. None means not set."""

from broker.model.ids import BATCH
from broker.model.job import Job, JobState, Step
from gateway.query.column import StepGetter
from gateway.query.context import Context
from gateway.query.job import sluid
from gateway.query.resources import batch_host
from sbatch_shim.grammar.filenames import FileJob, absolute, default_pattern, fill
from sbatch_shim.grammar.values import read_profile, read_seconds, show_long

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


def delay_boot(job: Job, _: Context) -> int:
    """Seconds."""
    found = read_seconds(job.spec.option("delay-boot") or "0")
    return found if isinstance(found, int) else 0


def profile(job: Job, _: Context) -> str:
    return ",".join(profiles(job)) or "NotSet"


def profiles(job: Job) -> tuple[str, ...]:
    return read_profile(job.spec.option("profile") or "")


SPEEDS = ("Low", "Medium", "High", "HighM1")
GOVERNORS = ("Conservative", "OnDemand", "Performance", "PowerSave", "SchedUtil", "UserSpace")
SPELLED = {word.lower(): word for word in (*SPEEDS, *GOVERNORS)}


def _frequency(job: Job) -> tuple[str, str, str]:
    """Lowest and highest, and what holds it there, of `--cpu-freq`; empty where nothing is said."""
    speeds, _, governor = (job.spec.option("cpu-freq") or "").lower().partition(":")
    low, dash, high = speeds.partition("-")
    if low in SPELLED and SPELLED[low] in GOVERNORS:
        return "", "", SPELLED[low]
    low, high, governor = (SPELLED.get(word, word) for word in (low, high, governor))
    return (low if dash else ""), high or low, governor or ("UserSpace" if low else "")


def least_frequency(job: Job, _: Context) -> str | None:
    return _frequency(job)[0] or None


def most_frequency(job: Job, _: Context) -> str | None:
    return _frequency(job)[1] or None


def governor(job: Job, _: Context) -> str | None:
    return _frequency(job)[2] or None


def gres_binding(job: Job, _: Context) -> str | None:
    """`--gres-flags` on where GPUs may be from the cpus: Yes for near ones, No for any."""
    said = (job.spec.option("gres-flags") or "").lower()
    return next((word for flag, word in BINDINGS if flag in said), None)


BINDINGS = (("disable-binding", "No"), ("enforce-binding", "Yes"))


def switches(job: Job, _: Context) -> str | None:
    """`--switches=1` waits five minutes, or less if it says so (max_switch_wait)."""
    count, _at, wait = (job.spec.option("switches") or "").partition("@")
    if not count:
        return None
    found = read_seconds(wait)
    seconds = min(found, MAX_SWITCH_WAIT) if isinstance(found, int) else MAX_SWITCH_WAIT
    return f"{count}@{show_long(seconds)}"


MAX_SWITCH_WAIT = 300


def switch_count(job: Job, _: Context) -> str:
    return (job.spec.option("switches") or "0").partition("@")[0]


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
