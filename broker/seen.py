"""What readers see: the world as it was committed, put together when somebody looks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic, TypeVar

from accounting.ids import JobId
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.site import Site
from broker.world import Snapshot, World

K = TypeVar("K")
V = TypeVar("V")

MOST_CHANGES = 256
"""So many, and one for each fourth record, are kept before a table is made anew unasked."""


@dataclass(frozen=True, slots=True)
class Trail(Generic[K, V]):
    """A table that stays as it is, and what has changed in it since, in that order."""

    base: Mapping[K, V]
    changes: list[tuple[K, V | None]] = field(default_factory=list)
    """Only grows: whoever knows how long it was sees what was then."""

    def add(self, keys: Iterable[K], table: Mapping[K, V]) -> None:
        self.changes.extend((key, table.get(key)) for key in keys)

    def at(self, count: int) -> Mapping[K, V]:
        """The table after so many changes, in the order of the last change of each record."""
        if not count:
            return self.base
        table = dict(self.base)
        for key, value in islice(self.changes, count):
            table.pop(key, None)
            if value is not None:
                table[key] = value
        return table

    @property
    def long(self) -> bool:
        return len(self.changes) > MOST_CHANGES + len(self.base) // 4


@dataclass(slots=True)
class _Look:
    """The world after one step."""

    head: Snapshot
    """Without its tables."""
    jobs: Trail[JobId, Job]
    nodes: Trail[NodeName, Node]
    counts: tuple[int, int]
    """How many changes of each table had happened."""
    whole: Snapshot | None = None
    """Made by the first who looks; who looks at the same time makes the same."""


class Seen:
    """One thread publishes, any looks. Copying a long queue at every step is what this saves."""

    def __init__(self, world: World, started_at: int) -> None:
        self._world = world
        self._started_at = started_at
        head = self._head(started_at, {})
        self._look = _begun(replace(head, jobs=world.jobs.copy(), nodes=world.nodes.copy()))
        self._forget_moved()

    @property
    def at(self) -> int:
        """Whole seconds UTC of the latest step."""
        return self._look.head.at

    @property
    def site(self) -> Site:
        """As in the latest snapshot."""
        return self._look.head.site

    def snapshot(self) -> Snapshot:
        """The latest that was committed; the same object for everybody."""
        look = self._look
        if look.whole is None:
            jobs, nodes = look.counts
            look.whole = replace(look.head, jobs=look.jobs.at(jobs), nodes=look.nodes.at(nodes))
        return look.whole

    def publish(self, now: int, shares: Mapping[tuple[str, str], float]) -> None:
        """Shows the world as it is now, which has to be on disk."""
        last, world = self._look, self._world
        if last.whole is not None or last.jobs.long or last.nodes.long:
            last = _begun(self.snapshot())
        last.jobs.add(world.moved_jobs, world.jobs)
        last.nodes.add(world.moved_nodes, world.nodes)
        self._forget_moved()
        counts = len(last.jobs.changes), len(last.nodes.changes)
        self._look = _Look(self._head(now, shares), last.jobs, last.nodes, counts)

    def _forget_moved(self) -> None:
        self._world.moved_jobs, self._world.moved_nodes = {}, {}

    def _head(self, now: int, shares: Mapping[tuple[str, str], float]) -> Snapshot:
        world = self._world
        return Snapshot(
            version=world.last_event,
            at=now,
            jobs={},
            nodes={},
            next_job_id=world.next_job_id,
            site=world.site,
            started_at=self._started_at,
            reservations=world.reservations,
            volumes=world.volumes,
            boots=world.boots,
            charges=world.charges,
            shares=shares,
            sites=world.sites,
        )


def _begun(whole: Snapshot) -> _Look:
    """Nothing has changed since."""
    return _Look(whole, Trail(whole.jobs), Trail(whole.nodes), (0, 0), whole)
