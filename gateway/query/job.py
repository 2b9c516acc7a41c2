"""A job's identity, state and times: getters of the column table. None means not set."""

from dataclasses import replace

from accounting.ids import JobId
from broker.model.job import ExitCode, Job, JobFlag, JobState
from broker.model.spec import Dependency, Limit
from gateway.query.context import Context
from sbatch_shim.grammar.arrays import show_array
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import UNLIMITED

YEAR = 365 * 86400
PRIORITY_SCALE = 2**32

# ---------------------------------------------------------------- identity


def job_id(job: Job, _: Context) -> int:
    return job.id


def shown_id(job: Job, ctx: Context) -> str:
    """`12`, `12_3` for an element, `12_[4-9%2]` for those that wait, `12+1` for a component."""
    return id_text(job, ctx.array_width)


def id_text(job: Job, width: int) -> str:
    """The same; of those that wait at most so many characters are named."""
    array = job.array
    if array is None:
        return str(job.id) if job.het is None else f"{job.het.base}+{job.het.offset}"
    if array.task is not None:
        return f"{array.base}_{array.task}"
    return f"{array.base}_[{show_array(array.waiting, array.limit, width)}]"


def array_base(job: Job, _: Context) -> JobId:
    return job.array.base if job.array else job.id


def array_parent(job: Job, _: Context) -> JobId | None:
    return job.array.base if job.array else None


def array_tasks(job: Job, ctx: Context) -> str | None:
    """Index or list of indexes; None when it is no array."""
    if job.array is None:
        return None
    if job.array.task is not None:
        return str(job.array.task)
    return show_array(job.array.waiting, job.array.limit, ctx.array_width)


def array_limit(job: Job, _: Context) -> int | None:
    return job.array.limit if job.array else None


def het_base(job: Job, _: Context) -> JobId | None:
    return job.het.base if job.het else None


def het_offset(job: Job, _: Context) -> int | None:
    return job.het.offset if job.het else None


def het_ids(job: Job, _: Context) -> str | None:
    """`12-14`: the ids of all components."""
    return f"{job.het.ids[0]}-{job.het.ids[-1]}" if job.het else None


def sluid(job: Job, _: Context) -> str:
    return job.sluid


def name(job: Job, _: Context) -> str:
    return job.spec.name


def user(job: Job, _: Context) -> str:
    return job.owner.user


def uid(job: Job, _: Context) -> int:
    return job.owner.uid


def group(job: Job, _: Context) -> str:
    return job.owner.group


def gid(job: Job, _: Context) -> int:
    return job.owner.gid


def account(job: Job, _: Context) -> str:
    return job.account


def qos(job: Job, _: Context) -> str:
    return job.qos


def partition(job: Job, _: Context) -> str:
    return job.partition


def cluster(_: Job, ctx: Context) -> str:
    return ctx.site.cluster


def user_and_uid(job: Job, _: Context) -> str:
    return f"{job.owner.user}({job.owner.uid})"


def group_and_gid(job: Job, _: Context) -> str:
    return f"{job.owner.group}({job.owner.gid})"


# ---------------------------------------------------------------- state

NO_FLAG = JobFlag.NONE
"""Compared by identity: asking a flag costs a microsecond, and ten thousand jobs are asked."""
CODES = {state.label: state.code for state in JobState} | {
    "CONFIGURING": "CF",
    "COMPLETING": "CG",
    "STOPPED": "ST",
}
REASON_IN_NODES = (
    JobState.PENDING,
    JobState.TIMEOUT,
    JobState.OUT_OF_MEMORY,
    JobState.DEADLINE,
    JobState.FAILED,
)
"""States in which squeue shows the reason where otherwise the nodes stand.

No set: that would ask each job's state for its hash, which an enum computes in Python.
"""


def state(job: Job, _: Context) -> str:
    return job.state.label if job.flags is NO_FLAG else job.shown_state


def state_code(job: Job, _: Context | None = None) -> str:
    return job.state.code if job.flags is NO_FLAG else CODES[job.shown_state]


def waits(job: Job) -> bool:
    """Pending, and nothing of an earlier attempt is left."""
    return job.state is JobState.PENDING and (job.flags is NO_FLAG or not job.completing)


def reason(job: Job, ctx: Context) -> str:
    """In a word, or in the sentence that stands for some of them."""
    return job.reason if job.reason not in BARRED else description(job, ctx) or job.reason


BARRED = {
    "AccountNotAllowed": ("account", "account", "allow_accounts", "deny_accounts"),
    "QOSNotAllowed": ("QOS", "qos", "allow_qos", "deny_qos"),
}
"""Of reasons that squeue tells in a sentence (22.05): the noun, whose name, and which lists."""
NOT_PERMITTED = "Job's {} not permitted to use this partition ({} {} {} {} {})"


def description(job: Job, ctx: Context) -> str:
    """The sentence about the reason; empty if there is none."""
    if job.reason not in BARRED:
        return job.detail
    noun, whose, allowing, denying = BARRED[job.reason]
    own = str(getattr(job, whose))
    for part in filter(None, map(ctx.site.partition, job.partitions)):
        allowed, denied = getattr(part, allowing), getattr(part, denying)
        if allowed is not None and own not in allowed:
            return NOT_PERMITTED.format(noun, part.name, "allows", ",".join(allowed), "not", own)
        if own in denied:
            return NOT_PERMITTED.format(
                noun, part.name, "denies", ",".join(denied), "including", own
            )
    return ""


def exit_code(job: Job, _: Context) -> ExitCode:
    return job.exit


def derived_exit(job: Job, _: Context) -> ExitCode:
    return job.derived


def restarts(job: Job, _: Context) -> int:
    return job.restarts


def requeue(job: Job, ctx: Context) -> bool:
    return ctx.site.job_requeue if job.spec.requeue is None else job.spec.requeue


def is_batch(job: Job, _: Context) -> bool:
    return job.spec.batch is not None


def kill_on_invalid_dep(job: Job, _: Context) -> str | None:
    wish = job.spec.kill_on_invalid_dep
    return None if wish is None else "Yes" if wish else "No"


def dependency(job: Job, ctx: Context) -> str | None:
    """Conditions still open, each with its state."""
    texts = [_condition(one, job, ctx) for one in job.after]
    return ("?" if job.spec.after_any else ",").join(texts) or None


def _condition(one: Dependency, job: Job, ctx: Context) -> str:
    never = job.reason == "DependencyNeverSatisfied" and _is_lost(one, job, ctx)
    text = "failed" if never else "unfulfilled"
    if one.job is None:
        return f"{one.kind}({text})"
    other = ctx.jobs.get(JobId(one.job))
    whole = one.whole_array or (one.task is None and other is not None and other.array is not None)
    task = "_*" if whole else "" if one.task is None else f"_{one.task}"
    delay = f"+{one.delay // 60}" if one.delay else ""
    return f"{one.kind}:{one.job}{task}{delay}({text})"


def _is_lost(one: Dependency, job: Job, ctx: Context) -> bool:
    """Whether it is this condition that can never hold; the only one surely is."""
    other = ctx.jobs.get(JobId(one.job or 0))
    return len(job.after) == 1 or (other is not None and other.over)


# ---------------------------------------------------------------- priority


def priority(job: Job, ctx: Context) -> int:
    """As it is now, or was when it started or was given up, where it is computed."""
    if ctx.ranks is None:
        return job.priority
    since = None if job.state is JobState.PENDING else job.started or job.ended
    ranks = ctx.ranks if since is None else replace(ctx.ranks, now=since)
    return ranks.priority(job)


def priority_share(job: Job, ctx: Context) -> str:
    """The priority as a part of the highest there can be."""
    return f"{priority(job, ctx) / PRIORITY_SCALE:16.14f}"


def nice(job: Job, _: Context) -> int:
    return job.spec.nice


# ---------------------------------------------------------------- time


def submitted(job: Job, _: Context) -> int:
    return job.submitted


def eligible(job: Job, ctx: Context) -> int | None:
    """When nothing but room stood in the way; before that its begin time, if any (22.05)."""
    if job.state is JobState.PENDING and (job.hold or job.after):
        return _latest_start(job)
    return _future_start(job, ctx) or job.eligible


def accrued(job: Job, ctx: Context) -> int | None:
    """Since when it grows older in its priority; None while a limit lets only others do so."""
    at = None if job.idles else job.ages_since or eligible(job, ctx)
    return at if at is not None and at <= ctx.now else None


def _latest_start(job: Job) -> int | None:
    """The begin time, or the end of a requeue's delay, whether or not it is past."""
    times = [at for at in (job.spec.begin, job.not_before) if at is not None]
    return max((at for at in times if at > job.submitted), default=None)


def _future_start(job: Job, ctx: Context) -> int | None:
    """A start that is known before it comes: a begin time, or the end of a requeue's delay.

    Holding the job later, or letting it go again, does not change it (25.11).
    """
    if job.state is not JobState.PENDING:
        return None
    at = _latest_start(job)
    waits_for_it = job.reason.startswith(("BeginTime", "None")) or job.hold
    return at if at is not None and (at > ctx.now or (waits_for_it and not job.after)) else None


def start(job: Job, ctx: Context) -> int | None:
    """Start, real or foreseen; what ended without one began when it ended."""
    foreseen = job.started or _future_start(job, ctx) or (job.ended if job.state.final else None)
    return foreseen or _forecast_start(job, ctx)


def _forecast_start(job: Job, ctx: Context) -> int | None:
    told = ctx.forecasts.get(job.id) if ctx.forecasts else None
    return told.start if told else None


def planned_nodes(job: Job, ctx: Context) -> str | None:
    """The nodes on which it may start."""
    told = ctx.forecasts.get(job.id) if ctx.forecasts else None
    return fold(told.nodes) if told else None


def end(job: Job, ctx: Context) -> int | None:
    """End, real or by the time limit; a job without a limit is taken to run for a year."""
    if job.ended is not None and not job.state.holds_nodes:
        return job.ended if job.state.final else None
    begun = job.started or _future_start(job, ctx) or _forecast_start(job, ctx)
    if begun is None:
        return None
    return begun + (job.time_limit if isinstance(job.time_limit, int) else YEAR)


def listed_end(job: Job, ctx: Context) -> int | str | None:
    """squeue's: the word NONE for a job without a limit, until it has ended (22.05)."""
    at = end(job, ctx)
    return "NONE" if job.time_limit == UNLIMITED and at is not None and at > ctx.now else at


def limited_end(job: Job, ctx: Context) -> int | None:
    """scontrol's EndTime: not known while a job without a limit runs."""
    return None if job.time_limit == UNLIMITED and not job.state.final else end(job, ctx)


def scheduled(job: Job, _: Context) -> int | None:
    """When the scheduler last looked at it."""
    return job.started or job.eligible or job.submitted


def elapsed(job: Job, ctx: Context) -> int:
    if job.started is None or job.state is JobState.PENDING:
        return 0
    until = job.ended if job.ended is not None else job.suspended_at or ctx.now
    return max(until - job.started - job.suspended_for, 0)


def time_limit(job: Job, _: Context) -> Limit:
    return job.time_limit


def time_left(job: Job, ctx: Context) -> Limit:
    limit = job.time_limit
    return limit - elapsed(job, ctx) if isinstance(limit, int) else limit


def waited(job: Job, ctx: Context) -> int:
    """Seconds from submission to start, or to now."""
    until = job.started if job.started is not None else job.ended
    return max((ctx.now if until is None else until) - job.submitted, 0)


def time_min(job: Job, _: Context) -> int | None:
    return job.spec.time_min


def deadline(job: Job, _: Context) -> int | None:
    return job.spec.deadline
