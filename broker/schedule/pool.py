"""What is still free while a pass goes on: rooms of nodes, and names for new ones."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from broker.model.ids import NodeName
from broker.model.job import Job, Share
from broker.model.node import NodeState
from broker.model.offer import Need
from broker.model.site import Elastic
from broker.schedule.budgets import Outlay, data_cost, dearest, regions_of
from broker.schedule.eligible import Ask, eligible, is_preferred
from broker.schedule.fit import Room, choose
from broker.schedule.reserved import ends, may_have
from broker.schedule.settle import Ground
from broker.schedule.view import FOREVER, View, Wait


class Pool:
    """Changes as the pass gives room away; `hopeless` notes what it is looked for in vain."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.rooms = {one.name: one for one in view.rooms}
        self.names = set(view.taken_names)
        self.hopeless: dict[tuple[int, int], Wait] = {}
        """Asks that found no room, and why their like waits: within a pass rooms only shrink."""
        self.kept: dict[NodeName, int] = {}
        """Nodes kept for the first job that has to wait, and until when (EASY backfill)."""
        self.untils: list[int] = []
        self.apart: set[NodeName] = set()
        """Nodes of the gang under way: its components share none (Slurm 25.11)."""
        self.promised: set[NodeName] = set()
        """Bought machines for which somebody waits because they are free soon."""
        self._bought: dict[str, list[Room]] = {}
        """Bought machines with room by whom they are for; "" has all of them."""
        self._unused: dict[tuple[str, int], tuple[int, list[NodeName]]] = {}
        """Names that were free when so many were taken."""

    def unused(self, elastic: Elastic) -> list[NodeName]:
        """Names that may still be given, the lowest first."""
        key = elastic.prefix, elastic.max_nodes
        if key not in self._unused:
            numbers = range(1, elastic.max_nodes + 1)
            every = [NodeName(f"{elastic.prefix}{number}") for number in numbers]
            self._unused[key] = -1, every
        taken, free = self._unused[key]
        if taken != len(self.names):
            free = [name for name in free if name not in self.names]
            self._unused[key] = len(self.names), free
        most = self.view.site.max_bought
        return free if most is None else free[: max(0, most - self.bought())]

    def bought(self) -> int:
        """Machines of all partitions that were bought, or are about to be."""
        return len(self.names.difference(node.name for node in self.view.site.nodes))

    def cpus_for(self, user: str, need: Need) -> int:
        """Cpus of bought machines of that user ("": anybody's) that were free when first asked.

        None of them counts where no machine has room for one such need.
        """
        if not self._bought:
            self._bought[""] = []
            for one in self.rooms.values():
                if not one.node.declared:
                    self._bought[""].append(one)
                    self._bought.setdefault(one.node.cause.user, []).append(one)
        found = self._bought.get(user, ())
        fits = any(one.free.cpu >= need.cpus and one.free.mem_mib >= need.mem_mib for one in found)
        return sum(one.free.cpu for one in found) if fits else 0

    def is_idle(self, one: Room, prefix: str) -> bool:
        """Whether it was bought under a name of this prefix and nobody holds or awaits it."""
        number = one.name.removeprefix(prefix)
        bought = not one.node.declared and number != one.name and number.isdigit()
        up = one.node.state is NodeState.UP
        return bought and up and not one.holders and one.name not in self.promised

    def eligible(self, job: Job, ask: Ask, *, declared: bool = False) -> Iterable[Room]:
        """Rooms that the job may have; with `declared` none of machines that were bought."""
        return self._left(self._suited(job, ask, declared=declared), job, self.view.now)

    def _suited(self, job: Job, ask: Ask, *, declared: bool = False) -> Iterator[Room]:
        """The same, whatever reservations keep from it."""
        for one in self.rooms.values():
            if one.name in self.apart or one.name in self.promised:
                continue
            if (one.node.declared or not declared) and eligible(one, job, ask.partition):
                yield one

    def _left(self, rooms: Iterable[Room], job: Job, at: int) -> Iterable[Room]:
        """Those that reservations leave to the job as long as it may run from then on."""
        known = self.view.reservations
        if not known:
            return rooms
        return (one for one in rooms if may_have(one.name, job, known, now=at))

    def reserved_away(self, job: Job, ask: Ask) -> bool:
        """Whether too few nodes are left because others are kept for reservations."""
        view = self.view
        if not view.reservations:
            return False
        suited = [one for one in self.rooms.values() if eligible(one, job, ask.partition)]
        suited = [one for one in suited if one.name in ask.demand.named] or suited
        left = [one for one in suited if may_have(one.name, job, view.reservations, now=view.now)]
        return len(left) < min(ask.demand.min_nodes, len(suited))

    def keeps(self, one: Room) -> int:
        """Until when whoever takes the room has to be gone."""
        return self.kept.get(one.name, FOREVER)

    def outlay(self, shares: Sequence[Share], job: Job) -> Outlay:
        """What the nodes cost at worst: who is left alone there pays for all of them."""
        nodes = [self.rooms[share.node].node for share in shares]
        once = data_cost(job, regions_of(nodes[0]), self.view.site.rates)
        return Outlay(sum(map(dearest, nodes)), once=once)

    def take(self, shares: Sequence[Share], job: Job, partition: str) -> None:
        for share in shares:
            one = self.rooms[share.node]
            one.take(share, partition)
            one.users |= {job.owner.user}
            if one.free.cpu <= 0 and not one.node.declared:
                del self.rooms[share.node]

    def tidy(self) -> None:
        """Forgets bought machines of which no cpu is free."""
        full = [one for one in self.rooms.values() if one.free.cpu <= 0 and not one.node.declared]
        for one in full:
            del self.rooms[one.name]

    def keep(self, ask: Ask, job: Job) -> None:
        """Keeps the nodes where it will have room first: jobs reach limits, reservations end."""
        view, rooms = self.view, {one.name: one.copy() for one in self._suited(job, ask)}
        releases: list[tuple[int, Share | None]] = [
            *(release for name in rooms for release in view.ends(name)),
            *((end, None) for end in ends(view.reservations.values()) if end > view.now),
        ]
        for end, share in sorted(releases, key=itemgetter(0)):
            if share is not None:
                rooms[share.node].give_back(share)
            shares = choose(ask.demand, list(self._left(rooms.values(), job, end)))
            if shares is not None:
                self.untils.append(end)
                for taken in shares:
                    self.kept[taken.node] = min(end, self.kept.get(taken.node, FOREVER))
                return

    def keep_machines(self, elastic: Elastic, count: int) -> None:
        """Keeps so many bought machines, those that can be let go or used first, until all can."""
        given = {one.name: one.holders for one in self.view.rooms}
        free: list[tuple[int, NodeName]] = []
        for name in self.view.taken_names:
            held = self.view.ends(name)
            number = name.removeprefix(elastic.prefix)
            if number != name and number.isdigit() and given.get(name, 0) <= len(held):
                free.append((max((end for end, _ in held), default=self.view.now), name))
        first = sorted(free)[:count]
        if len(first) == count:
            until = first[-1][0]
            self.untils.append(until)
            for _, name in first:
                self.kept[name] = min(until, self.kept.get(name, FOREVER))

    def ground(self, job: Job, elastic: Elastic) -> Ground:
        """What a lot of jobs such as this one meets."""
        rooms = [one for one in self.rooms.values() if not one.node.declared]
        wish = job.spec.resources.prefer
        if wish is not None:
            rooms.sort(key=lambda one: not is_preferred(one.node, wish))
        return Ground(
            now=self.view.now,
            rooms=rooms,
            full=self.view.full,
            ends=self.view.ends,
            kept=self.keeps,
            names=len(self.unused(elastic)),
            kill_wait=self.view.site.kill_wait,
            promised=self.promised,
        )


@dataclass(slots=True)
class State:
    """What a pool stood at before a gang was tried."""

    rooms: dict[NodeName, Room]
    names: set[NodeName]
    hopeless: dict[tuple[int, int], Wait]

    @classmethod
    def of(cls, pool: Pool) -> "State":
        rooms = {name: one.copy() for name, one in pool.rooms.items()}
        return cls(rooms, set(pool.names), dict(pool.hopeless))

    def restore(self, pool: Pool) -> None:
        """Takes back what was given; nodes that are kept for the gang stay so."""
        pool.rooms, pool.names, pool._unused = self.rooms, self.names, {}


def chosen(ask: Ask, job: Job, rooms: list[Room]) -> tuple[Share, ...] | None:
    """Nodes with the features that the job prefers if they have room, else any."""
    wish = job.spec.resources.prefer
    liked = [one for one in rooms if is_preferred(one.node, wish)] if wish else []
    return (choose(ask.demand, liked) if liked else None) or choose(ask.demand, rooms)
