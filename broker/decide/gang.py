"""Components of a heterogeneous job share one fate: what one comes to, the others come to.

Tasks of a managed group begin together as well, but each ends and starts again by itself.
"""

from dataclasses import replace

from accounting.ids import JobId
from broker.decide.ending import never_ran
from broker.model import events as ev
from broker.model.job import Job
from broker.model.lifecycle import Life, life
from broker.world import World

ENDABLE = (Life.PENDING, Life.CONFIGURING, Life.RUNNING, Life.REQUEUING)


def members(world: World, job: Job) -> list[Job]:
    """Every component that is in memory, the leader first; the job alone if it is no component."""
    if job.het is None:
        return [job]
    found = (world.jobs.get(job_id) for job_id in job.het.ids)
    return [one for one in found if one is not None]


def shared_fate(world: World, fact: ev.JobEvent, now: int) -> list[ev.JobEvent]:
    """What follows for the other components where one ends, or goes back to the queue."""
    job = world.jobs.get(JobId(fact.job))
    if isinstance(fact, ev.Unplaced):
        return [*unplaced_with(world, fact, now)]
    if job is None or job.het is None or job.spec.managed is not None:
        return []
    others = [one for one in members(world, job) if one.id != job.id]
    if isinstance(fact, ev.Ended):
        return [each for one in others for each in _ended(world, one, fact, now=now)]
    if isinstance(fact, ev.Requeued):
        return [each for one in others for each in _requeued(world, one, fact, now=now)]
    return []


def unplaced_with(world: World, fact: ev.Unplaced, now: int) -> list[ev.Unplaced]:
    """Where one has to wait for its nodes again, none holds any: they begin together."""
    job = world.jobs.get(JobId(fact.job))
    others = _begin_with(world, job) if job is not None else []
    return [replace(fact, job=one.id, at=now) for one in others]


def _begin_with(world: World, job: Job) -> list[Job]:
    """Other components that hold nodes, and begin with this one or not at all."""
    if _by_itself(job):
        return []
    others = (one for one in members(world, job) if one.id != job.id)
    return [one for one in others if life(one) is Life.CONFIGURING and not _by_itself(one)]


def _by_itself(job: Job) -> bool:
    """One of a managed group that starts again waits for no other."""
    return job.spec.managed is not None and job.restarts > 0


def _ended(world: World, job: Job, fact: ev.Ended, *, now: int) -> list[ev.JobEvent]:
    if life(job) not in ENDABLE:
        return []
    end = ev.Ended(
        job=job.id,
        at=now,
        actor=fact.actor,
        state=fact.state,
        reason=fact.reason,
        exit=fact.exit,
        by=fact.by,
        kill_cause="finished" if job.shares else "",
    )
    return [end, *_released(world, job, now)]


def _requeued(world: World, job: Job, fact: ev.Requeued, *, now: int) -> list[ev.JobEvent]:
    if life(job) in (Life.PENDING, Life.REQUEUING):
        return []
    back = ev.Requeued(
        job=job.id,
        at=now,
        actor=fact.actor,
        hold=fact.hold,
        not_before=fact.not_before,
        kill_cause="requeued" if job.shares else "",
        priority=fact.priority,
    )
    return [back, *_released(world, job, now)]


def _released(world: World, job: Job, now: int) -> list[ev.JobEvent]:
    return [ev.Released(job=job.id, at=now)] if never_ran(world, job) else []
