"""What is done now and then: what exists against what we know, old things, sums of the books."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.heart import Heart
from broker.model.commands import Cancel, FinishAllocation, Target
from broker.model.errors import Busy
from broker.model.job import JobState
from broker.ports import Provider
from broker.providers.ec2.holdings import UNSEEN_SECONDS
from broker.provision.reconcile import difference, nodes_of
from gateway.api.holders import GRACE, Holders
from gateway.store.feed import Feeders
from gateway.store.rollup import MOST
from gateway.store.sql import SqlStore

DAY = 86_400
PRUNE_SECONDS = 3600.0


@dataclass(slots=True)
class Sweep:
    """Compares what providers hold with what we know; strays are let go, losses and prices told."""

    heart: Heart
    providers: Mapping[str, Provider]
    tidy: Sequence[Callable[[], None]]
    """What providers clean up of themselves."""
    store: SqlStore
    log: Any
    holders: Holders
    feeders: Feeders | None = None
    """Accounting plugins."""
    aging: Callable[[], object] = lambda: None
    """Takes out records that are old."""
    clock: Callable[[], float] = time.monotonic
    every: float = 30.0
    doubt_every: float = 5.0
    _next: float = 0.0
    _next_doubt: float = 0.0
    _next_prune: float = 0.0

    def __call__(self) -> None:
        if self.clock() < self._next:
            return
        self._next = self.clock() + self.every
        self._each(self.tidy)
        self._look()
        self._let_go()
        self._sum_up()
        self._prune()

    def doubt(self) -> None:
        """A node could not be reached: whether its machine is gone is asked at once.

        Where many cannot be, or one for long, that is asked every five seconds and no oftener.
        """
        if self.clock() >= self._next_doubt:
            self._look()

    def _look(self) -> None:
        self._next_doubt = self.clock() + self.doubt_every
        self._each([partial(self._compare, provider) for provider in self.providers.values()])

    def _each(self, todo: Iterable[Callable[[], None]]) -> None:
        for act in todo:
            try:
                act()
            except OSError as error:
                self.log.warning("sweep.failed", error=str(error))

    def _compare(self, provider: Provider) -> None:
        """What the provider holds is asked first: what is bought meanwhile is known by then."""
        machines, now = provider.machines(), self.heart.clock.now()
        nodes = nodes_of(self.heart.engine.snapshot, provider.name)
        found = difference(nodes, machines, lately=now - UNSEEN_SECONDS)
        for machine in found.stray:
            if machine.launched_at < now - self.every:
                self.log.warning("sweep.stray", machine=machine.id, node=machine.node)
                provider.terminate([machine])
        for lost in found.lost:
            self.heart.report(lost)
        for repriced in found.repriced:
            self.heart.report(repriced)

    def _let_go(self) -> None:
        """Ends allocations whose salloc or srun did not come again, as InactiveLimit has it."""
        seen = self.heart.engine.snapshot
        limit = seen.site.inactive_limit
        jobs, patience = seen.jobs.values(), limit or GRACE
        for job in self.holders.abandoned(jobs, self.clock(), patience=patience):
            self.log.warning("allocation.abandoned", job=job.id, by=job.spec.allocator)
            if limit and job.state is JobState.RUNNING:
                self.heart.ask(FinishAllocation(job=job.id, by=job.owner, abandoned=True))
            else:
                self.heart.ask(Cancel(target=Target(job.id), by=job.owner))

    def _sum_up(self) -> None:
        """Brings the sums of the ledger near, so that reports have little to read beside them."""
        with contextlib.suppress(Busy):
            while self.store.roll_up() >= MOST:
                pass
            if self.feeders is not None:
                self.feeders.wake()

    def _prune(self) -> None:
        """Requests older than a day are not asked again; old records go as is configured."""
        if self.clock() < self._next_prune:
            return
        self._next_prune = self.clock() + PRUNE_SECONDS
        with contextlib.suppress(Busy):
            self.store.forget(self.heart.clock.now() - DAY)
            self.aging()
