"""Managed jobs: over when their run is, started again after failures, ended with their group."""

from collections.abc import Iterable
from dataclasses import replace

from accounting.ids import JobId
from broker.decide.ending import Outcome, cancelled, never_ran
from broker.model import events as ev
from broker.model.facts import SYSTEM
from broker.model.ids import StepId
from broker.model.job import ExitCode, Job, JobState, Step
from broker.model.lifecycle import Life, life
from broker.world import World

RUN = StepId("0")
LONGEST_PAUSE = 60
"""Seconds before a run that failed again and again starts once more."""
QUIET = "finished"
"""Cause of an end that the job's text says nothing of."""


def run_over(
    job: Job, step: Step, result: Outcome, *, tasks: Iterable[ExitCode], now: int
) -> list[ev.JobEvent]:
    """What the end of its run means for a managed job: it starts again, or ends as the run did.

    `tasks` are the ends on all nodes, where they differ.
    """
    asked = job.spec.managed
    if asked is None or step.id != RUN or job.completing:
        return []
    codes = {result.exit.code, *(one.code for one in tasks)} - {0}
    known = not codes.isdisjoint(asked.exit_codes)
    failed = result.state is JobState.FAILED
    if failed and (known or job.failures < asked.max_restarts):
        return [_again(job, max(codes, default=0), counts=not known, now=now)]
    return [
        ev.Ended(
            job=job.id,
            at=now,
            state=result.state,
            reason=result.reason,
            exit=result.exit,
            kill_cause=QUIET,
        )
    ]


def _again(job: Job, code: int, *, counts: bool, now: int) -> ev.Requeued:
    pause = min(LONGEST_PAUSE, 1 << min(job.restarts, 6))
    return ev.Requeued(
        job=job.id,
        at=now,
        why=f"exit {code}: starts again",
        not_before=now + pause,
        priority=job.priority,
        kill_cause=QUIET,
        failed=counts,
    )


def group_end(world: World, job: Job, now: int) -> list[ev.JobEvent]:
    """A job that outlives others ends with the last of them, or so long after they succeeded."""
    asked = job.spec.managed
    if asked is None or not asked.outlives or life(job) in {Life.OVER, Life.COMPLETING}:
        return []
    known = (world.jobs.get(JobId(number)) for number in asked.outlives)
    primary = [one for one in known if one is not None]
    if any(not one.over for one in primary):
        return []
    succeeded = all(one.state is JobState.COMPLETED for one in primary)
    last = max((one.ended or 0 for one in primary), default=0)
    if now < last + (asked.delay if succeeded else 0):
        return []
    why = "the primary tasks of its group are over"
    end = replace(cancelled(job, by=SYSTEM, now=now), by=None, why=why)
    return [end, ev.Released(job=job.id, at=now)] if never_ran(world, job) else [end]
