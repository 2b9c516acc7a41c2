"""`scontrol top`: who of a user's own waiting jobs comes first."""

from accounting.ids import JobId
from broker.decide.commands import NOT_PENDING, UNKNOWN_JOB
from broker.decide.fading import ranks_of
from broker.decide.rules import Decision
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import ACCESS_DENIED, Conflict, Denied, Unknown
from broker.model.job import Job
from broker.model.lifecycle import Life, life
from broker.schedule import priority
from broker.world import World

HELD = "Job is in held state, pending scheduler release"


def decide_top(world: World, asked: cmd.ToTop, now: int) -> Decision:
    """The priorities of jobs alike in user, partition, account and QOS are dealt out anew.

    Nobody else's place in the queue changes. Raises Unknown, Denied, Conflict.
    """
    facts: list[ev.Event] = []
    named = [_named(world, job_id, asked) for job_id in dict.fromkeys(asked.jobs)]
    for kind in dict.fromkeys(map(_kind, named)):
        first = [job for job in named if _kind(job) == kind]
        facts += _dealt(world, first, asked.by.uid, now=now)
    return Decision(facts)


def _named(world: World, job_id: JobId, asked: cmd.ToTop) -> Job:
    job = world.jobs.get(job_id)
    if job is None:
        raise Unknown(UNKNOWN_JOB)
    if job.owner.uid != asked.by.uid and not world.site.operates(asked.by.uid):
        raise Denied(ACCESS_DENIED)
    if life(job) is not Life.PENDING:
        raise Conflict(NOT_PENDING)
    if job.hold is not None:
        raise Conflict(HELD)
    return job


def _kind(job: Job) -> tuple[object, ...]:
    return job.owner.uid, job.partitions, job.account, job.qos


def _niced(
    ranks: priority.Ranks, wanted: list[Job], places: list[Job], *, by: int
) -> list[ev.Event]:
    """Computed priorities change places by what is taken off or put on them (Slurm's nice)."""
    facts: list[ev.Event] = []
    for job, place in zip(wanted, places, strict=True):
        nice = job.spec.nice + ranks.priority(job) - ranks.priority(place)
        if nice != job.spec.nice and not priority.is_set(job):
            facts.append(ev.Changed(job=job.id, at=ranks.now, actor=by, nice=nice))
    return facts


def _dealt(world: World, first: list[Job], by: int, *, now: int) -> list[ev.Event]:
    """The same priorities in another order, each below the one before it."""
    waiting = (world.jobs[job_id] for job_id in world.pending)
    alike = [job for job in waiting if job.hold is None and _kind(job) == _kind(first[0])]
    ranks = ranks_of(world, now)
    alike.sort(key=ranks.order)
    ids = {job.id for job in first}
    wanted = [*first, *(job for job in alike if job.id not in ids)]
    if world.site.ranking.counts:
        return _niced(ranks, wanted, alike, by=by)
    facts: list[ev.Event] = []
    below = alike[0].priority + 1
    for job, place in zip(wanted, alike, strict=True):
        below = max(1, min(place.priority, below - 1))
        if below != job.priority:
            facts.append(ev.Changed(job=job.id, at=now, actor=by, priority=below))
    return facts
