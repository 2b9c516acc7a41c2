"""The transition table of jobs, and `apply`: the only code that gives a job a state."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from typing import Any

from accounting.tres import Tres, sum_of
from broker.model import events as ev
from broker.model.errors import IllegalTransition
from broker.model.evolve import evolved, finish
from broker.model.job import (
    OF_HELD,
    REQUEUED_HELD,
    SUCCESS,
    Job,
    JobFlag,
    JobState,
    Step,
    StepState,
)
from broker.model.patch import patched
from broker.model.recovery import AFTER
from broker.model.spec import Dependency, DependencyKind
from broker.model.steplife import OF_STEPS
from broker.model.stopping import Kept

NO_FLAG = JobFlag.NONE
"""Compared by identity: the usual case, and `in` of a flag is slow."""
SIGKILL, SIGCONT, SIGSTOP = 9, 18, 19
STOPS = (SIGCONT, SIGSTOP)


class Life(Enum):
    """Where a job stands: base state and flags in one word."""

    PENDING = auto()
    CONFIGURING = auto()
    RUNNING = auto()
    COMPLETING = auto()
    REQUEUING = auto()
    OVER = auto()


def life(job: Job) -> Life:
    """The row of the table that holds for this job."""
    if job.flags is NO_FLAG:
        return _plain_life(job.state)
    if JobFlag.REQUEUED in job.flags:
        return Life.REQUEUING
    if job.completing:
        return Life.COMPLETING
    if job.configuring:
        return Life.CONFIGURING
    return _plain_life(job.state)


def _plain_life(state: JobState) -> Life:
    if state.final:
        return Life.OVER
    return Life.PENDING if state is JobState.PENDING else Life.RUNNING


# None: the outcome that the event names.
TRANSITIONS: dict[tuple[Life, type], tuple[JobState | None, JobFlag]] = {
    (Life.PENDING, ev.Placed): (JobState.RUNNING, JobFlag.CONFIGURING),
    (Life.PENDING, ev.Ended): (None, JobFlag.NONE),
    (Life.CONFIGURING, ev.Started): (JobState.RUNNING, JobFlag.NONE),
    (Life.CONFIGURING, ev.Unplaced): (JobState.PENDING, JobFlag.NONE),
    (Life.CONFIGURING, ev.Ended): (None, JobFlag.COMPLETING),
    (Life.CONFIGURING, ev.Requeued): (JobState.PENDING, JobFlag.COMPLETING | JobFlag.REQUEUED),
    (Life.RUNNING, ev.Suspended): (JobState.SUSPENDED, JobFlag.NONE),
    (Life.RUNNING, ev.Resumed): (JobState.RUNNING, JobFlag.NONE),
    (Life.RUNNING, ev.Ended): (None, JobFlag.COMPLETING),
    (Life.RUNNING, ev.Requeued): (JobState.PENDING, JobFlag.COMPLETING | JobFlag.REQUEUED),
    (Life.COMPLETING, ev.Released): (None, JobFlag.NONE),
    (Life.COMPLETING, ev.Requeued): (JobState.PENDING, JobFlag.COMPLETING | JobFlag.REQUEUED),
    (Life.REQUEUING, ev.Released): (JobState.PENDING, JobFlag.NONE),
    (Life.REQUEUING, ev.Ended): (None, JobFlag.COMPLETING),
    (Life.OVER, ev.Requeued): (JobState.PENDING, JobFlag.NONE),
}


def apply(job: Job | None, event: ev.JobEvent, *, version: int) -> Job:
    """The job after the event, bearing the event's number.

    Raises IllegalTransition if the table has no row for it, or the record does not exist.
    """
    if isinstance(event, ev.Queued):
        if job is not None:
            raise IllegalTransition(f"job {event.job} exists already")
        return evolved(event.record, version=version)
    if job is None:
        raise IllegalTransition(f"{type(event).__name__} of unknown job {event.job}")
    changed = EFFECT[type(event)](job, event)
    last = evolved if changed is job else finish
    if type(event) not in MOVING:
        return last(changed, version=version)
    state, flags = _moved(job, event)
    return last(changed, state=state, flags=flags, version=version)


def _moved(job: Job, event: ev.JobEvent) -> tuple[JobState, JobFlag]:
    row = TRANSITIONS.get((life(job), type(event)))
    if row is None:
        raise IllegalTransition(
            f"job {job.id} is {job.shown_state}: no {type(event).__name__} from there"
        )
    state, flags = row
    outcome = event.state if isinstance(event, ev.Ended) else job.state
    return state or outcome, flags


MOVING = frozenset(kind for _, kind in TRANSITIONS)


def _split(job: Job, event: ev.Split) -> Job:
    return _without(job, (event.task,))


def _without(job: Job, tasks: tuple[int, ...]) -> Job:
    if job.array is None:
        raise IllegalTransition(f"job {job.id} is not an array")
    waiting = tuple(task for task in job.array.waiting if task not in tasks)
    return replace(job, array=replace(job.array, waiting=waiting))


def _became(job: Job, event: ev.BecameElement) -> Job:
    if job.array is None:
        raise IllegalTransition(f"job {job.id} is not an array")
    after = of_task(job.after, event.task)
    return replace(job, array=replace(job.array, task=event.task, waiting=()), after=after)


def of_task(after: tuple[Dependency, ...], task: int) -> tuple[Dependency, ...]:
    """Dependencies of an array as they hold for one task: `aftercorr` names its counterpart."""
    corr = DependencyKind.AFTERCORR
    return tuple(w.model_copy(update={"task": task}) if w.kind is corr else w for w in after)


def _waits(job: Job, event: ev.Waits) -> Job:
    return evolved(
        job,
        reason=event.reason,
        detail=event.detail,
        eligible=job.eligible if event.eligible is None else event.eligible,
        after=job.after if event.after is None else event.after,
    )


SPEC_FIELDS = ("name", "nice", "comment", "begin", "requeue")
"""Fields of Changed that live in the spec; the others are the job's own."""
JOB_FIELDS = (
    "priority",
    "time_limit",
    "limit_serial",
    "partitions",
    "account",
    "qos",
    "comment",
    "admin_comment",
    "after",
    "want",
)


def _changed(job: Job, event: ev.Changed) -> Job:
    in_spec = {n: getattr(event, n) for n in SPEC_FIELDS if getattr(event, n) is not None}
    in_job = {n: getattr(event, n) for n in JOB_FIELDS if getattr(event, n) is not None}
    spec = patched(job.spec, event.patch) if event.patch else job.spec
    spec = spec.model_copy(update=in_spec) if in_spec else spec
    # A begin time that is asked for outweighs the delay of a requeue.
    not_before = job.not_before if event.begin is None else None
    if event.array_limit is not None and job.array is not None:
        in_job["array"] = replace(job.array, limit=event.array_limit or None)
    return replace(job, spec=spec, not_before=not_before, **in_job)


def _resized(job: Job, event: ev.Placed | ev.Resized) -> Job:
    return replace(job, shares=event.shares, alloc=sum_of(share.tres for share in event.shares))


def _placed(job: Job, event: ev.Placed) -> Job:
    return replace(
        _resized(job, event),
        partitions=(event.partition,),
        after=(),
        attempt=job.attempt + 1,
        last_node_names=tuple(share.node for share in event.shares),
        started=event.at,
        ended=None,
        reason="None",
        detail="",
        choice=event.choice,
        steps=job.past_runs,
        kept=(),
        exit=SUCCESS,
        derived=SUCCESS,
        ended_by=None,
        kill_cause="",
        cleared=(),
        not_before=None,
        signals=(),
        notices=(),
        limit_serial=0,
        limit_percent=0,
        suspended_at=None,
        suspended_for=0,
    )


def _started(job: Job, event: ev.Started) -> Job:
    return replace(job, started=event.at)


def _resumed(job: Job, event: ev.Resumed) -> Job:
    stood = job.stood(event.at)
    return replace(job, suspended_at=None, suspended_for=stood, limit_serial=event.limit_serial)


def _suspended(job: Job, event: ev.Suspended) -> Job:
    return replace(job, suspended_at=event.at, limit_serial=event.limit_serial)


def _signal_asked(job: Job, event: ev.SignalAsked) -> Job:
    """SIGSTOP from a user shows as STOPPED until SIGCONT (25.11)."""
    asked = replace(job, signals=(*job.signals, event.signal))
    if job.state is not JobState.RUNNING or event.signal.number not in STOPS:
        return asked
    stops = event.signal.number == SIGSTOP
    flags = job.flags | JobFlag.STOPPED if stops else job.flags & ~JobFlag.STOPPED
    return replace(asked, flags=flags)


def _unplaced(job: Job, event: ev.Unplaced) -> Job:
    return replace(
        job,
        shares=(),
        last_node_names=(),
        alloc=Tres(),
        started=None,
        steps=job.past_runs,
        reason=_at_rest(job, event.reason),
        detail=event.detail,
    )


def _ended(job: Job, event: ev.Ended) -> Job:
    return evolved(
        job,
        ended=event.at,
        suspended_at=None,
        suspended_for=job.stood(event.at),
        reason=event.reason,
        exit=event.exit,
        ended_by=event.by,
        kill_cause=event.kill_cause,
        steps=tuple(_closed(step, event) for step in job.steps) if job.steps else (),
    )


def _closed(step: Step, event: ev.Ended) -> Step:
    """A step that never started ends with its job; a running one waits for the node's word."""
    if step.state is not StepState.PENDING:
        return step
    return replace(step, state=StepState.CANCELLED, ended=event.at)


def _exit_seen(job: Job, event: ev.ExitSeen) -> Job:
    return replace(job, exit=event.exit)


def _requeued(job: Job, event: ev.Requeued) -> Job:
    back = replace(
        job,
        ended=event.at,
        suspended_at=None,
        suspended_for=job.stood(event.at),
        hold=event.hold,
        priority=event.priority,
        not_before=event.not_before,
        reason=REQUEUED_HELD if event.hold else job.reason,
        kill_cause=event.kill_cause,
        restarts=job.restarts + 1,
        failures=job.failures + event.failed,
        lost_regions=_lost(job.lost_regions, event.region),
        signals=(),
    )
    return replace(back, **_clean(back)) if job.over else back


def _lost(before: tuple[str, ...], region: str | None) -> tuple[str, ...]:
    return (*(one for one in before if one != region), region) if region else before


def _at_rest(job: Job, reason: str = "None") -> str:
    """Why a job waits that has just come back to the queue: a hold outweighs all else."""
    if job.hold and job.reason in OF_HELD:
        return job.reason
    return job.hold.value if job.hold else reason


def _clean(job: Job) -> dict[str, Any]:
    """A job that waits again shows nothing of its last attempt."""
    return {
        "partitions": job.spec.partitions or job.partitions,
        "started": None,
        "ended": None,
        "exit": SUCCESS,
        "derived": SUCCESS,
        "steps": job.past_runs,
        "idles": False,
        "ages_since": None,
        "last_node_names": (),
        "alloc": Tres(),
        "reason": _at_rest(job),
        "ended_by": None,
    }


def _released(job: Job, event: ev.Released) -> Job:
    freed = replace(job, shares=(), kill_cause="", signals=(), cleared=())
    return replace(freed, **_clean(job)) if JobFlag.REQUEUED in job.flags else freed


def _node_cleared(job: Job, event: ev.NodeCleared) -> Job:
    return job if event.node in job.cleared else replace(job, cleared=(*job.cleared, event.node))


def _limit_told(job: Job, event: ev.LimitTold) -> Job:
    """What was changed again since is still to be told."""
    if event.step is None:
        return replace(job, limit_serial=0) if job.limit_serial == event.serial else job
    steps = (
        replace(step, limit_serial=0)
        if step.id == event.step and step.limit_serial == event.serial
        else step
        for step in job.steps
    )
    return replace(job, steps=tuple(steps))


def _hold_set(job: Job, event: ev.HoldSet) -> Job:
    held = replace(job, hold=event.hold, priority=event.priority)
    return replace(held, reason=_at_rest(held)) if job.state is JobState.PENDING else held


def _told(job: Job, event: ev.NoticeAsked) -> Job:
    warned = (event.budget, event.at) if event.budget else job.warned
    return replace(job, notices=(*job.notices, event.notice), warned=warned)


EFFECT: dict[type, Callable[[Job, Any], Job]] = {
    ev.Split: _split,
    ev.BecameElement: _became,
    ev.ElementsDropped: lambda job, event: _without(job, event.tasks),
    ev.Waits: _waits,
    ev.Ages: lambda job, event: replace(job, idles=event.since is None, ages_since=event.since),
    ev.HoldSet: _hold_set,
    ev.Changed: _changed,
    ev.Placed: _placed,
    ev.Resized: _resized,
    ev.Started: _started,
    ev.Unplaced: _unplaced,
    ev.Ended: _ended,
    ev.ExitSeen: _exit_seen,
    ev.Requeued: _requeued,
    **AFTER,
    ev.Released: _released,
    Kept: lambda job, event: replace(job, kept=job.shares or job.kept),
    **OF_STEPS,
    ev.NodeCleared: _node_cleared,
    ev.SignalAsked: _signal_asked,
    ev.Suspended: _suspended,
    ev.Resumed: _resumed,
    ev.LimitTold: _limit_told,
    ev.LimitNear: lambda job, event: replace(job, limit_percent=event.percent),
    ev.NoticeAsked: _told,
    ev.NoticeSent: lambda job, event: replace(
        job, notices=tuple(n for n in job.notices if n.serial != event.serial)
    ),
    ev.SignalSent: lambda job, event: replace(
        job, signals=tuple(s for s in job.signals if s.serial != event.serial)
    ),
}
