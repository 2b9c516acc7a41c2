"""What accounting says of a job and its steps: getters of sacct's columns. None means blank."""

from signal import SIGTERM
from typing import Any

from accounting.tres import Tres
from broker.model.ids import BATCH, Digest
from broker.model.job import REQUEUED_HELD, ExitCode, Job, JobFlag, JobState, Step, StepState
from broker.model.spec import Memory
from broker.schedule.budgets import rate_now
from broker.schedule.ranks import kind_of
from gateway.query import job as of
from gateway.query import resources as res
from gateway.query.context import Context
from gateway.query.prices import old_price
from gateway.query.steps import step_elapsed, step_tres

NOT_KEPT = {
    "BeginTime",
    "DependencyNeverSatisfied",
    "JobHeldAdmin",
    "JobHeldUser",
    "PartitionDown",
    "Priority",
    "Resources",
    REQUEUED_HELD,
}
"""Reasons that accounting does not keep (25.11)."""
HANGUP = ExitCode(0, 1)
CLEAN_EXIT = {JobState.CANCELLED, JobState.TIMEOUT}
"""States whose row says 0:0, whatever the script returned; its batch step says more."""


def started(job: Job) -> bool:
    return job.started is not None and not of.waits(job)


def state(job: Job, _: Context) -> str:
    """The base state; who cancelled it; REQUEUED for an attempt that was followed by another."""
    if JobFlag.REQUEUED in job.flags:
        return "REQUEUED"
    if job.state is JobState.CANCELLED and job.ended_by is not None:
        return f"CANCELLED by {job.ended_by}"
    return job.state.label


def exit_code(job: Job, _: Context) -> ExitCode:
    """Signal 1 shows as 1:0 in a job's row alone: an oddity of 25.11 that is compared."""
    if job.state in CLEAN_EXIT or not job.state.final:
        return ExitCode()
    return ExitCode(1, 0) if job.exit == HANGUP else job.exit


def reason(job: Job, _: Context) -> str:
    kept = job.state is JobState.PENDING and job.reason not in NOT_KEPT
    return job.reason if kept else "None"


def elapsed(job: Job, ctx: Context) -> int:
    if not started(job) or job.started is None:
        return 0
    return max((ctx.now if job.ended is None else job.ended) - job.started, 0)


def start(job: Job, _: Context) -> int | str | None:
    """When it began; the word None for what ended without beginning."""
    if started(job):
        return job.started
    return "None" if job.state.final else None


def end(job: Job, _: Context) -> int | None:
    waits = job.state is JobState.PENDING and JobFlag.REQUEUED not in job.flags
    return None if waits else job.ended


def eligible(job: Job, _: Context) -> int | None:
    return job.eligible


def cpus(job: Job, _: Context) -> int:
    return job.alloc.cpu if started(job) else 0


def nodes_held(job: Job, _: Context) -> int:
    return len(job.last_node_names) if started(job) else 0


def wanted_cpus(job: Job, _: Context) -> int:
    return job.want.cpu


def cpu_seconds(job: Job, ctx: Context) -> int:
    return elapsed(job, ctx) * cpus(job, ctx)


def memory(job: Job, ctx: Context) -> Memory:
    """The total of all nodes, as in ReqTRES."""
    return res.wanted_memory(job, ctx)


def planned(job: Job, ctx: Context) -> int:
    """Seconds from when it was eligible to its start, or to now."""
    if job.eligible is None:
        return 0
    until = job.started if started(job) else job.ended
    return max((ctx.now if until is None else until) - job.eligible, 0)


def planned_cpus(job: Job, ctx: Context) -> int:
    return planned(job, ctx) * (cpus(job, ctx) or job.want.cpu)


def flags(job: Job, _: Context) -> str:
    return "SchedMain,StartReceived" if started(job) else "StartReceived"


def energy(job: Job, _: Context) -> str | None:
    """0 but for a job whose only step is the batch step (25.11)."""
    return None if job.steps and all(step.id == BATCH for step in job.steps) else "0"


def cost_rate(job: Job, ctx: Context) -> int:
    """Micro-dollars an hour of what it holds now."""
    return rate_now(job, ctx.nodes)


def old_rate(job: Job, ctx: Context) -> str | None:
    """That the prices in it are old."""
    held = (ctx.nodes[share.node] for share in job.shares if share.node in ctx.nodes)
    return old_price(held, ctx.site, ctx.now)


def cost(job: Job, ctx: Context) -> int:
    """Micro-dollars."""
    return ctx.costs.get(job.id, 0)


def failed_node(job: Job, _: Context) -> str | None:
    lost = job.state is JobState.NODE_FAIL and job.last_node_names
    return job.last_node_names[0] if lost else None


# ---------------------------------------------------------------- sums over steps


def user_cpu(job: Job, _: Context) -> int:
    return sum(step.usage.user_us for step in job.steps)


def system_cpu(job: Job, _: Context) -> int:
    return sum(step.usage.system_us for step in job.steps)


def total_cpu(job: Job, ctx: Context) -> int:
    return user_cpu(job, ctx) + system_cpu(job, ctx)


# ---------------------------------------------------------------- steps


def step_raw_id(job: Job, step: Step, _: Context) -> str:
    return f"{job.id}.{step.id}"


def step_state(job: Job, step: Step, _: Context) -> str:
    """A step that its job left behind was cancelled."""
    return (StepState.CANCELLED if _left(job, step) else step.state).value


def _left(job: Job, step: Step) -> bool:
    return JobFlag.REQUEUED in job.flags and not step.state.final


def step_exit(job: Job, step: Step, _: Context) -> ExitCode:
    """A step that its job left behind was told to end."""
    return ExitCode(0, int(SIGTERM)) if _left(job, step) else step.exit


def step_start(job: Job, step: Step, _: Context) -> int | None:
    return job.started if step.started is None else step.started


def step_end(job: Job, step: Step, _: Context) -> int | None:
    return step.ended if step.ended is not None else job.ended if step.state.final else None


def step_time(job: Job, step: Step, ctx: Context) -> int:
    if step.started is not None and not step.state.final and job.ended is not None:
        return max(job.ended - step.started, 0)
    return step_elapsed(job, step, ctx)


def step_cpu_seconds(job: Job, step: Step, ctx: Context) -> int:
    return step_time(job, step, ctx) * step_tres(job, step, ctx)[0].cpu


def step_nodes_count(job: Job, step: Step, _: Context) -> int:
    if step.id == BATCH or step.share is not None:
        return max(len(step.shares), 1)
    return max(len(job.last_node_names), 1)


def step_user_cpu(_job: Job, step: Step, _: Context) -> int:
    return step.usage.user_us


def step_system_cpu(_job: Job, step: Step, _: Context) -> int:
    return step.usage.system_us


def step_total_cpu(_job: Job, step: Step, _: Context) -> int:
    return step.usage.user_us + step.usage.system_us


SAMPLING = 5
"""Seconds between two looks at a step's processes."""


def brief(step: Step) -> bool:
    """Whether it was over before Slurm would have looked at it: nothing is told of it (25.11)."""
    return step.ended is not None and step.ended - (step.started or step.ended) < SAMPLING


def step_rss(_job: Job, step: Step, _: Context) -> int | None:
    """KiB; None while nothing was measured."""
    return None if brief(step) else step.usage.max_rss_kib or None


def step_mean_cpu(job: Job, step: Step, ctx: Context) -> int | None:
    """Whole seconds of cpu time; None while nothing was measured."""
    known = step_rss(job, step, ctx) is not None
    return step_total_cpu(job, step, ctx) // 1_000_000 if known else None


def step_rss_node(job: Job, step: Step, ctx: Context) -> str | None:
    known = step_rss(job, step, ctx) is not None and job.last_node_names
    fullest = max(step.parts, key=lambda part: part.usage.max_rss_kib, default=None)
    if not known:
        return None
    return fullest.node if fullest is not None else job.last_node_names[0]


def step_rss_task(job: Job, step: Step, ctx: Context) -> int | None:
    return 0 if step_rss(job, step, ctx) is not None else None


def step_layout(job: Job, step: Step, ctx: Context) -> str:
    """Tasks fill a node before the next where there are more of them than nodes."""
    if step.id == BATCH:
        return "Unknown"
    nodes, tasks = step_nodes_count(job, step, ctx), step.spec.tasks if step.spec else 1
    if step.spec is not None and step.spec.distribution:
        return kind_of(step.spec).capitalize()
    return "Block" if tasks > nodes else "Cyclic"


def step_submit_line(_job: Job, step: Step, _: Context) -> str | None:
    return (step.spec.submit_line or None) if step.spec else None


def step_frequency(_job: Job, step: Step, _: Context) -> str:
    return "0" if step.id == BATCH else "Unknown"


def of_job(get: Any) -> Any:
    """The job's value in the rows of its steps too."""
    return lambda job, _step, ctx: get(job, ctx)


def fixed(value: object) -> Any:
    """The same value in every row of a step."""
    return lambda _job, _step, _ctx: value


def wanted_tres(job: Job, ctx: Context) -> tuple[Tres, int | None] | None:
    return res.wanted_tres(job, ctx)


def script_digest(job: Job) -> Digest | None:
    """The blob of the job's batch script; None where it has none."""
    phases = job.spec.batch.phases if job.spec.batch else ()
    return next((phase.script for phase in phases if phase.script), None)
