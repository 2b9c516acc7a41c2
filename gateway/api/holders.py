"""Who waits for news of steps, and which allocations somebody holds: state of this process only."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from accounting.ids import JobId
from broker.model.job import Job

GRACE = 90.0
"""Seconds that a holder has to come again after this service was started."""


@dataclass(slots=True)
class Bells:
    """Waiters by the name of what they wait for: a node, or a step's key. Event loop only."""

    _waiters: dict[str, set[asyncio.Event]] = field(default_factory=dict)

    def ring(self, name: str) -> None:
        """Wakes all who wait for it; nobody need."""
        for event in self._waiters.get(name, ()):
            event.set()

    @contextmanager
    def listening(self, *names: str) -> Iterator[asyncio.Event]:
        """An event that is set by a ring for any of the names."""
        event = asyncio.Event()
        for name in names:
            self._waiters.setdefault(name, set()).add(event)
        try:
            yield event
        finally:
            for name in names:
                waiting = self._waiters[name]
                waiting.discard(event)
                if not waiting:
                    del self._waiters[name]


@dataclass(slots=True)
class Holders:
    """Allocations of salloc and srun whose command is connected."""

    _held: dict[JobId, int] = field(default_factory=dict)
    _missed: dict[JobId, float] = field(default_factory=dict)

    @contextmanager
    def holding(self, job: JobId) -> Iterator[None]:
        self._held[job] = self._held.get(job, 0) + 1
        try:
            yield
        finally:
            self._held[job] -= 1
            if not self._held[job]:
                del self._held[job]

    def abandoned(self, jobs: Iterable[Job], now: float, *, patience: float = GRACE) -> list[Job]:
        """Those that live, need a holder and have been without one for so many seconds (monotonic).

        Where the site has no InactiveLimit, only the holders of an earlier process of this
        service can be missing for long: of one that leaves a living service the door lets go.
        """
        alone = {
            job.id: job
            for job in jobs
            if job.spec.allocator and not (job.state.final or job.id in self._held)
        }
        self._missed = {job: self._missed.get(job, now) for job in alone}
        return [alone[job] for job, since in self._missed.items() if now - since >= patience]
