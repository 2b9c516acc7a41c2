"""What planning is shown of the world: rooms and when they end, offers, limits, purses."""

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from broker.decide.budgeting import Budgets
from broker.decide.fading import Ranked
from broker.decide.gang import members
from broker.decide.passing import element_waits
from broker.decide.rules import QuoteFor
from broker.decide.volumes import why_waits
from broker.model.ids import NodeName
from broker.model.inbox import Message
from broker.model.job import Job, Share
from broker.model.node import Node
from broker.model.offer import Machine
from broker.model.spec import UNLIMITED
from broker.schedule.budgets import NO_OUTLAY, Outlay
from broker.schedule.demand import need_for
from broker.schedule.eligible import Asks
from broker.schedule.fit import Room, room
from broker.schedule.limits import Keeper
from broker.schedule.view import FOREVER, View
from broker.world import World


class Market(Protocol):
    """Where offers come from; hears how purchases went."""

    def at(self, now: int) -> QuoteFor: ...
    def buying(self, now: int) -> QuoteFor: ...
    def taken_back(self, machine: Machine, now: int) -> None: ...
    def heard(self, message: Message, now: int) -> None: ...


class Viewing:
    """Makes the view of a pass; remembers what jobs ask for as long as the site is the same."""

    def __init__(self, world: World, market: Market, *, ranked: Ranked, budgets: Budgets) -> None:
        self._world = world
        self._market = market
        self._ranked = ranked
        self._budgets = budgets
        self._asks = Asks(world.site)

    @property
    def asks(self) -> Asks:
        """Begun anew with another site: flags of a QOS, too, say what a partition lets in."""
        if self._asks.site is not self._world.site:
            self._asks = Asks(self._world.site)
        return self._asks

    def _first(self, candidates: Sequence[Job]) -> Sequence[Job]:
        """Those that one pass looks at; who is kept waiting by their partitions do not count."""
        most = self._world.site.max_job_test
        if most is None or len(candidates) <= most:
            return candidates
        might = (job.id for job in candidates if not self.asks.closed(job))
        beyond = set(islice(might, most, None))
        return [job for job in candidates if job.id not in beyond]

    def of(self, candidates: Sequence[Job], now: int) -> View:
        """All that planning looks at for these, the most important first."""
        world = self._world
        every = self.rooms()
        rooms = [one for one in every if one.free.cpu or one.node.declared]
        rooms.sort(key=lambda one: (one.node.weight, not one.node.declared, one.node.name))
        return View(
            now=now,
            site=world.site,
            candidates=self._first(candidates),
            rooms=rooms,
            full=[one for one in every if not (one.free.cpu or one.node.declared)],
            ends=lambda name: self._ends(name, now),
            taken_names=frozenset(world.nodes) | world.held_names(),
            running_elements=world.running_elements,
            task_waits=lambda job, task: element_waits(world, job, task, now=now),
            quote=self._market.buying(now),
            asks=self.asks,
            volume_waits=lambda job: why_waits(world, job),
            reservations=world.reservations,
            gang=lambda job: [one for one in members(world, job) if one.id in world.pending],
            limits=self.keeper(now),
        )

    def rooms(self) -> list[Room]:
        """Every node that takes work, with what is free on it."""
        nodes = self._world.nodes.values()
        return [self._room(node) for node in nodes if node.state.takes_work and not node.drain]

    def _room(self, node: Node) -> Room:
        held = self._world.holders.get(node.name, {})
        made = room(node, ())
        for job_id, share in held.items():
            made.take(share, self._world.jobs[job_id].partition)
        made.users = frozenset(self._world.jobs[job_id].owner.user for job_id in held)
        return made

    def _ends(self, name: NodeName, now: int) -> list[tuple[int, Share]]:
        """When each job there reaches its limit, and what it gives back then."""
        ends = []
        for job_id, share in self._world.holders.get(name, {}).items():
            job = self._world.jobs[job_id]
            limit = FOREVER if job.time_limit == UNLIMITED else int(job.time_limit)
            ends.append((now + limit - job.ran(now), share))
        return ends

    def keeper(self, now: int) -> Keeper:
        """Limits and purses as they stand."""
        world = self._world
        keeper = Keeper(world.site, world.tally, world.charges, now=now)
        keeper.ranks = self._ranked.at(now)
        quote = self._market.at(now)
        keeper.purse = self._budgets.purse(
            lambda job, name: self._first_outlay(job, name, quote), now
        )
        return keeper

    def _first_outlay(self, job: Job, partition: str, quote: QuoteFor) -> Outlay:
        """At least, at worst: of what is offered for it the least, or the dearest nodes."""
        ask = next((one for one in self.asks.of(job) if one.partition.name == partition), None)
        if ask is None:
            return NO_OUTLAY
        if ask.partition.elastic is not None:
            rungs = quote(need_for(job, ask.demand), ask.partition.elastic).rungs
            each = min((rung.dearest for rung in rungs), default=0)
        else:
            each = self._world.site.dearest(ask.partition)
        return Outlay(each * ask.demand.min_nodes)
