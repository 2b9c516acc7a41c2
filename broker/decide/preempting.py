"""Preemption: whom a waiting job pushes out, and how (PreemptType preempt/qos, partition_prio)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from accounting.ids import JobId
from broker.decide.ranking import outranks, pushes, terms
from broker.decide.taken import may_requeue
from broker.model import events as ev
from broker.model.ids import NodeName
from broker.model.job import Job, JobState, PendingSignal
from broker.model.left import PREEMPTED
from broker.model.lifecycle import SIGCONT
from broker.model.site import Elastic
from broker.schedule.eligible import Ask, Asks, eligible
from broker.schedule.fit import Room, choose
from broker.world import World

BLOCKED = frozenset({"Resources", "Priority"})
REQUEUE = "requeue"
SIGTERM = 15
Rooms = Callable[[], Sequence[Room]]
"""Every node that takes work, with what is free on it, made anew."""


class Preempting:
    """Who was told to go because somebody more important waits; forgotten at a restart."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: dict[JobId, int] = {}

    def out(
        self, waiting: Iterable[Job], *, asks: Asks, rooms: Rooms, now: int
    ) -> list[ev.JobEvent]:
        """What pushes out as few jobs as the first needs that waits and may push others out."""
        if not self._world.site.preempts:
            return []
        for job, ask in self._asking(waiting, asks):
            found = _victims(self._seen(job, ask, now), ask, rooms=rooms())
            if found is not None:
                return [fact for one in found for fact in self._pushed(one, now)]
        return []

    def due(self, now: int) -> list[ev.JobEvent]:
        """Jobs whose grace time is over."""
        facts: list[ev.JobEvent] = []
        for job_id, at in list(self._told.items()):
            job = self._world.jobs.get(job_id)
            if job is None or job.state is not JobState.RUNNING or job.completing:
                del self._told[job_id]
            elif now >= at + self._grace(job):
                del self._told[job_id]
                facts.append(_end(self._world, job, now))
        return facts

    def _asking(self, waiting: Iterable[Job], asks: Asks) -> Iterator[tuple[Job, Ask]]:
        for job in waiting:
            if job.reason in BLOCKED and pushes(self._world.site, job):
                yield from ((job, ask) for ask in asks.of(job) if _helps(self._world, ask))

    def _seen(self, job: Job, ask: Ask, now: int) -> "_Seen":
        world = self._world
        ending = (one for one in world.active if world.jobs[one].completing)
        going = frozenset((*ending, *(one for one in self._told if one in world.active)))
        return _Seen(world, job, going, _candidates(world, job, ask, going=going, now=now))

    def _grace(self, job: Job) -> int:
        return terms(self._world.site, job).grace

    def _pushed(self, job: Job, now: int) -> list[ev.JobEvent]:
        """SIGCONT and SIGTERM first where its QOS grants a time; else it goes at once."""
        if not self._grace(job):
            return [_end(self._world, job, now)]
        self._told[job.id] = now
        return [
            ev.SignalAsked(job=job.id, at=now, signal=_signal(self._world, job, number))
            for number in (SIGCONT, SIGTERM)
        ]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The world as a job sees it that may push others out."""

    world: World
    job: Job
    going: frozenset[JobId]
    """Those that end anyway, also because they were told to."""
    candidates: Sequence[Job]
    """Whom it may push out, in this order."""


def _victims(seen: _Seen, ask: Ask, *, rooms: Sequence[Room]) -> list[Job] | None:
    """Jobs whose room is enough with what is free; None if even all of theirs is not."""
    usable = {one.name: one.copy() for one in rooms if eligible(one, seen.job, ask.partition)}
    for ending in seen.going:
        _give_back(usable, seen.world.jobs[ending])
    if choose(ask.demand, list(usable.values())) is not None:
        return []
    free = {name: room.copy() for name, room in usable.items()}
    chosen: list[Job] = []
    for victim in seen.candidates:
        if any(share.node in usable for share in victim.shares):
            _give_back(usable, victim)
            chosen.append(victim)
            shares = choose(ask.demand, list(usable.values()))
            if shares is not None:
                places = {share.node for share in shares}
                there = [one for one in chosen if places & {s.node for s in one.shares}]
                return _needed(there, free, ask)
    elastic = ask.partition.elastic
    return None if elastic is None else _of_machines(seen, ask, elastic)


def _needed(chosen: list[Job], free: dict[NodeName, Room], ask: Ask) -> list[Job]:
    """Of those that are enough the ones without which it is not; the highest may stay first."""
    for one in reversed(chosen):
        fewer = [other for other in chosen if other is not one]
        rooms = {name: room.copy() for name, room in free.items()}
        for other in fewer:
            _give_back(rooms, other)
        if choose(ask.demand, list(rooms.values())) is not None:
            chosen = fewer
    return chosen


def _helps(world: World, ask: Ask) -> bool:
    """Whether room comes of others' going: not where another machine may still be bought."""
    elastic = ask.partition.elastic
    full = elastic is None or len(_bought(world, elastic)) >= elastic.max_nodes
    return ask.gate is None and full


def _bought(world: World, elastic: Elastic) -> list[NodeName]:
    return [
        n.name for n in world.nodes.values() if not n.declared and n.name.startswith(elastic.prefix)
    ]


def _of_machines(seen: _Seen, ask: Ask, elastic: Elastic) -> list[Job] | None:
    """Jobs whose going empties as many machines as the job needs: it buys its own for them."""
    world, going = seen.world, set(seen.going)
    names = _bought(world, elastic)
    chosen: list[Job] = []
    for victim in [None, *seen.candidates]:
        if victim is not None:
            chosen.append(victim)
            going.add(victim.id)
        empty = [name for name in names if set(world.holders.get(name, ())) <= going]
        if len(empty) >= ask.demand.min_nodes:
            places = set(empty)
            return [one for one in chosen if places & {s.node for s in one.shares}]
    return None


def _give_back(rooms: dict[NodeName, Room], job: Job) -> None:
    for share in job.shares:
        if share.node in rooms:
            rooms[share.node].give_back(share, job.partition)


def _candidates(
    world: World, job: Job, ask: Ask, *, going: Collection[JobId], now: int
) -> list[Job]:
    """Running jobs that the job may push out: those of least rank first, then the youngest."""
    site = world.site
    found = [
        (terms(site, one), one)
        for one in (world.jobs[job_id] for job_id in world.active)
        if one.state is JobState.RUNNING
        and one.id not in going
        and outranks(site, job, ask.partition, other=one)
    ]
    old = [(own, one) for own, one in found if now - (one.started or now) >= own.exempt]
    order = sorted(old, key=lambda two: (two[0].rank, -(two[1].started or 0), -two[1].id))
    return [one for _, one in order]


def _end(world: World, job: Job, now: int) -> ev.JobEvent:
    """Back to the queue where it is to and may, else ended as PREEMPTED."""
    if terms(world.site, job).mode == REQUEUE and may_requeue(world, job):
        return ev.Requeued(
            job=job.id,
            at=now,
            why="preempted",
            hold=job.hold,
            not_before=now + world.site.requeue_delay,
            priority=job.priority,
            kill_cause=PREEMPTED,
        )
    return ev.Ended(
        job=job.id, at=now, state=JobState.PREEMPTED, reason="None", kill_cause=PREEMPTED
    )


def _signal(world: World, job: Job, number: int) -> PendingSignal:
    return PendingSignal(number, "full", serial=world.last_event + 1 + job.id + number)
