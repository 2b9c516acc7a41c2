"""What facts about steps make of their job's record."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from broker.model import events as ev
from broker.model.errors import IllegalTransition
from broker.model.job import Job, StepState

StepFact = (
    ev.StepPlaced | ev.StepDoomed | ev.StepStarted | ev.StepPart | ev.StepEnded | ev.StepLimited
)


def _with_step(job: Job, event: StepFact, **fields: object) -> Job:
    if job.step(event.step) is None:
        raise IllegalTransition(f"job {job.id} has no step {event.step}")
    steps = tuple(
        replace(step, **fields) if step.id == event.step else step  # type: ignore[arg-type]
        for step in job.steps
    )
    return replace(job, steps=steps)


def _added(job: Job, event: ev.StepAdded) -> Job:
    return replace(job, steps=(*job.steps, event.step))


def _started(job: Job, event: ev.StepStarted) -> Job:
    stood = job.stood(event.at)
    return _with_step(job, event, state=StepState.RUNNING, started=event.at, stood=stood)


def _placed(job: Job, event: ev.StepPlaced) -> Job:
    return _with_step(job, event, share=event.share, more=event.more)


def _part(job: Job, event: ev.StepPart) -> Job:
    found = job.step(event.step)
    others = () if found is None else found.parts
    others = tuple(part for part in others if part.node != event.part.node)
    return _with_step(job, event, parts=(*others, event.part))


def _doomed(job: Job, event: ev.StepDoomed) -> Job:
    return _with_step(job, event, kill_cause=event.cause)


def _ended(job: Job, event: ev.StepEnded) -> Job:
    changed = _with_step(
        job,
        event,
        state=event.state,
        ended=event.at,
        exit=event.exit,
        usage=event.usage,
        phase=event.phase,
        tasks=event.tasks,
    )
    if not event.step.isdigit():
        return changed
    worst = max((job.derived, event.exit), key=lambda code: (code.code, code.signal))
    return replace(changed, derived=worst)


def _limited(job: Job, event: ev.StepLimited) -> Job:
    found = job.step(event.step)
    spec = None if found is None else found.spec
    if spec is not None:
        spec = spec.model_copy(update={"time_limit": event.time_limit})
    return _with_step(job, event, spec=spec, limit_serial=event.limit_serial)


OF_STEPS: Mapping[type, Callable[[Job, Any], Job]] = {
    ev.StepAdded: _added,
    ev.StepPlaced: _placed,
    ev.StepDoomed: _doomed,
    ev.StepStarted: _started,
    ev.StepPart: _part,
    ev.StepEnded: _ended,
    ev.StepLimited: _limited,
}
"""The job after each of these."""
