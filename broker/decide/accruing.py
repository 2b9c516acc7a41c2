"""Which waiting jobs grow older: a limit may let only so many of somebody's do (22.05)."""

from collections.abc import Iterator

from accounting.assoc import InvalidAccount, InvalidQos
from broker.model import events as ev
from broker.model.job import Job
from broker.model.site import Site
from broker.model.tally import Party, Used, party_of
from broker.schedule.gates import gate
from broker.schedule.limit_rows import ROWS, When
from broker.schedule.limits import Bound, asking, bounds, first_broken, is_set, stands_in
from broker.schedule.sums import known_of
from broker.world import World

LIMITS = frozenset(row.limit for row in ROWS if row.when is When.ACCRUE)
ALWAYS = "ACCRUE_ALWAYS"
"""With this flag of the priority every job grows older, whatever limits say."""


class Accruing:
    """Looks at waiting jobs as time passes, where there is such a limit, or was one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._site: Site | None = None
        self._limited = False

    def due(self, now: int) -> list[ev.JobEvent]:
        """Jobs whose turn it is to grow older from now, and those whose turn it is not."""
        world = self._world
        if self._site is not world.site:
            before, self._site = self._limited or self._site is None, world.site
            self._limited = is_set(world.site.book, LIMITS) and ALWAYS not in _flags(world)
            if before and not self._limited:
                return [_turn(job, now) for job in _waiting(world) if job.idles]
        return list(_turns(world, now)) if self._limited else []


def _flags(world: World) -> frozenset[str]:
    return world.site.ranking.flags


def _waiting(world: World) -> list[Job]:
    return [world.jobs[job_id] for job_id in world.pending]


def _turn(job: Job, now: int) -> ev.Ages:
    return ev.Ages(job=job.id, at=now, since=now)


def _turns(world: World, now: int) -> Iterator[ev.JobEvent]:
    """Who has a turn keeps it; then those who wait for one, the oldest first."""
    known = known_of(world.site, {}, {}, now=now)
    ruling: dict[Party, tuple[Bound, ...]] = {}
    for job in sorted(_waiting(world), key=_order):
        if gate(job, now) is not None:
            continue
        party = party_of(job)
        if party not in ruling:
            ruling[party] = _bounds(world.site, job)
        ask = asking(world.site, job, party.partition)
        barred = bool(ruling[party]) and first_broken(ruling[party], known, ask=ask) is not None
        if not barred:
            known.add(party, Used(accruing=1))
        if barred is not job.idles:
            yield ev.Ages(job=job.id, at=now, since=None if barred else now)


def _order(job: Job) -> tuple[bool, int, int]:
    since = job.eligible if job.ages_since is None else job.ages_since
    return job.idles, since or 0, job.id


def _bounds(site: Site, job: Job) -> tuple[Bound, ...]:
    where = party_of(job).partition
    try:
        stands = stands_in(site, job.owner.user, partition=where, account=job.account, qos=job.qos)
    except (InvalidAccount, InvalidQos):
        return ()
    return tuple(bound for bound in bounds(stands) if bound.row.when is When.ACCRUE)
