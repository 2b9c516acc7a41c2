"""Numbered steps: asked for, given a part of the allocation, cancelled; allocations finished."""

from collections.abc import Iterable, Sequence

from broker.decide.ending import never_ran, outcome
from broker.decide.rules import Decision, may_change
from broker.decide.stopping import not_stoppable, stopped
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import ACCESS_DENIED, NODES_BUSY, Conflict, Denied, Unknown
from broker.model.ids import BATCH, StepId
from broker.model.job import ExitCode, Job, JobState, Owner, PendingSignal, Step, StepState
from broker.model.lifecycle import Life, life
from broker.schedule.parts import has_room, part, placeable, waits
from broker.world import World

UNKNOWN_JOB = "Invalid job id specified"
OVER = "Job/step already completing or completed"
PENDING = "Job is pending execution"
TOO_MANY = "Step limit reached for this job"
KILL = 9


def _job(
    world: World,
    asked: cmd.AddStep | cmd.UpdateStep | cmd.CancelStep | cmd.FinishAllocation,
) -> Job:
    """The record, if `by` may change it. Raises Unknown or Denied."""
    job = world.jobs.get(asked.job)
    if job is None:
        raise Unknown(UNKNOWN_JOB)
    if not may_change(asked.by, job, world.site):
        raise Denied(ACCESS_DENIED)
    return job


def _alive(job: Job) -> Job:
    """Raises Conflict for a job that holds nothing."""
    if life(job) not in (Life.RUNNING, Life.CONFIGURING):
        raise Conflict(OVER if job.over or job.completing else PENDING)
    return job


def decide_add_step(world: World, asked: cmd.AddStep, now: int) -> Decision:
    """A further run in an allocation; the reply is its step id.

    Raises BadOption where the whole allocation is too small for it, Conflict where it may not wait
    and would have to.
    """
    job = _alive(_job(world, asked))
    part(job, asked.step)
    count = sum(1 for step in job.steps if step.numbered)
    if count >= world.site.max_step_count:
        raise Conflict(TOO_MANY)
    number = StepId(str(count))
    step = Step(id=number, name=asked.step.name, spec=asked.step, asked=now)
    if asked.immediate and not has_room(job, step):
        raise Conflict(NODES_BUSY)
    fact = ev.StepAdded(job=job.id, at=now, actor=asked.by.uid, step=step)
    return Decision([fact], number)


def place_steps(jobs: Iterable[Job], now: int) -> list[ev.JobEvent]:
    """Waiting steps of running jobs that find their part of the allocation free."""
    return [
        ev.StepPlaced(job=job.id, at=now, step=step.id, share=shares[0], more=shares[1:])
        for job in jobs
        if life(job) is Life.RUNNING
        for step, shares in placeable(job)
    ]


def decide_cancel_step(world: World, asked: cmd.CancelStep, now: int) -> Decision:
    """Ends one step: what waits at once, what runs by SIGKILL, as Slurm does."""
    job = _job(world, asked)
    step = job.step(asked.step)
    if step is None:
        raise Unknown("Invalid job id specified")
    if step.state.final or job.completing:
        raise Conflict(OVER)
    return Decision([_cancelled(world, job, step, by=asked.by, now=now)])


def decide_step_limit(world: World, asked: cmd.UpdateStep, now: int) -> Decision:
    """Another limit for one step; users may only shorten it, as for jobs."""
    job = _job(world, asked)
    step = job.step(asked.step)
    if step is None or step.spec is None:
        raise Unknown(UNKNOWN_JOB)
    if step.state.final or job.completing:
        raise Conflict(OVER)
    before, after = step.spec.time_limit, asked.time_limit
    longer = before is not None and (after is None or after > before)
    if longer and not world.site.operates(asked.by.uid):
        raise Denied(ACCESS_DENIED)
    serial = world.last_event + 1 + job.id
    fact = ev.StepLimited(
        job=job.id,
        at=now,
        actor=asked.by.uid,
        step=step.id,
        time_limit=after,
        limit_serial=serial,
    )
    return Decision([fact])


def _cancelled(world: World, job: Job, step: Step, *, by: Owner, now: int) -> ev.JobEvent:
    if step.id == BATCH:
        signal = PendingSignal(KILL, "full", serial=world.last_event + 1 + job.id, step=BATCH)
        return ev.SignalAsked(job=job.id, at=now, actor=by.uid, signal=signal)
    if waits(step):
        return ev.StepEnded(
            job=job.id,
            at=now,
            actor=by.uid,
            step=step.id,
            state=StepState.CANCELLED,
            exit=ExitCode(),
        )
    return ev.StepDoomed(job=job.id, at=now, actor=by.uid, step=step.id, cause="cancelled")


def decide_finish(world: World, asked: cmd.FinishAllocation, now: int) -> Decision:
    """salloc's command or srun's tasks are over: so is the job, with that exit code."""
    job = _alive(_job(world, asked))
    if job.runs_batch:
        raise Conflict(f"job {job.id} has a batch script: it ends with that")
    result = outcome("exit", asked.exit)
    state, reason = result.state, result.reason
    if asked.abandoned:
        state, reason = JobState.TIMEOUT, "InactiveLimit"
    end = _finished(job, state, reason, exit=asked.exit, now=now)
    released = [ev.Released(job=job.id, at=now)] if never_ran(world, job) else []
    return Decision([end, *released])


def _finished(job: Job, state: JobState, reason: str, *, exit: ExitCode, now: int) -> ev.Ended:
    return ev.Ended(
        job=job.id, at=now, state=state, reason=reason, exit=exit, kill_cause="finished"
    )


def _holds_off(job: Job, step: Step) -> bool:
    return not (job.spec.idle_past_logins and step.spec is not None and step.spec.is_login)


def idle_end(world: World, job: Job, now: int) -> Sequence[ev.Event]:
    """A kept-open allocation in which nothing has run for as long as its user gave it."""
    seconds = job.spec.idle_seconds
    if seconds is None or life(job) is not Life.RUNNING:
        return []
    runs = [step for step in job.steps if step.numbered and _holds_off(job, step)]
    if any(not step.state.final for step in runs):
        return []
    asked = job.spec.idle_from or 0
    since = max([job.started or now, asked, *(step.ended or 0 for step in runs)])
    if now < since + seconds:
        return []
    if job.spec.idle_stops and not not_stoppable(world, job):
        return stopped(job, now)
    return [_finished(job, JobState.COMPLETED, "None", exit=ExitCode(), now=now)]
