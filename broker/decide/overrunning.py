"""Running jobs end where they, or whoever they belong to, have used up what a limit grants."""

from broker.model import events as ev
from broker.model.job import Job, JobState
from broker.model.site import units
from broker.model.tally import counts_of, party_of
from broker.schedule.limit_rows import ROWS, Asking
from broker.schedule.limits import is_set, stands_in, used_up
from broker.schedule.sums import Known, known_of
from broker.world import World

EVERY = 30
"""Seconds between two looks; Slurm's controller looks as often."""
ENDING = frozenset(row.limit for row in ROWS if row.running is not None)


class Overrunning:
    """Looks at running jobs now and then, where there is a limit that could end one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next = 0

    def due(self, now: int) -> list[ev.JobEvent]:
        """Jobs that a limit ends, as their time limit would."""
        world = self._world
        if now < self._next or not is_set(world.site.book, ENDING):
            return []
        self._next = now + EVERY
        known = known_of(world.site, world.tally, world.charges, now=now)
        running = (world.jobs[job] for job in sorted(world.active))
        ends = ((job, _limit(world, job, known)) for job in running if _runs(job))
        return [_ended(job, limit, now) for job, limit in ends if limit]


def _runs(job: Job) -> bool:
    return job.state is JobState.RUNNING and not job.completing and job.started is not None


def _limit(world: World, job: Job, known: Known) -> str | None:
    """The reason of the limit that the job has come to."""
    stands = stands_in(
        world.site, job.owner.user, partition=job.partition, account=job.account, qos=job.qos
    )
    ask = Asking(
        party=party_of(job)._replace(partition=job.partition),
        want=counts_of(job.alloc, units(world.site, job.alloc, job.partition)),
        time_limit=max(0, known.now - (job.started or known.now)),
    )
    found = used_up(known, stands, ask=ask)
    return None if found is None else found.reason


def _ended(job: Job, limit: str, now: int) -> ev.Ended:
    return ev.Ended(
        job=job.id,
        at=now,
        why=limit,
        state=JobState.TIMEOUT,
        reason="TimeLimit",
        kill_cause="time_limit",
    )
