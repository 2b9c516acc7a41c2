"""What is done for the files of running jobs now and then: results fetched, checkpoints taken."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from broker.model.errors import Refused
from broker.model.ids import NodeName
from broker.model.job import Job, JobFlag, JobState
from broker.model.naming import checkpoint_folder
from broker.model.node import Node
from broker.model.recovery import Fetched
from broker.model.spec import Checkpoint
from broker.stage.checkpoints import Checkpoints, Owned
from broker.stage.mounts import Mounts, Visit
from broker.stage.sides import HereError, Side, Where, understood

TURN_SECONDS = 5.0
"""So long a checkpoint is copied at a time while its job runs: others wait for the node."""
GIVEN_UP_SECONDS = 300.0
"""An end is told of although its results or checkpoint could not be had for so long."""
MOST_TOLD = 9
"""Failures that one line of the log names."""


class Log(Protocol):
    def warning(self, event: str, **fields: object) -> object: ...


class NoLog:
    """Nobody listens."""

    def warning(self, event: str, **fields: object) -> None:
        """Says nothing."""


Due = tuple[NodeName, str, str]
"""A node, an attempt there, and what is done."""


@dataclass(slots=True)
class Upkeep:
    """Of one service; for each node one call at a time."""

    checkpoints: Checkpoints | None = None
    """None: no copies are kept."""
    fetch_every: Callable[[Node], int] = lambda node: 0
    """Seconds between two fetches of results while a job runs; 0: only at ends."""
    mounts: Mounts | None = None
    """None: nothing travels beside working directories."""
    fetched: Callable[[Job, Fetched], None] = lambda job, results: None
    """Hears of what was put into buckets, and of what is lost."""
    log: Log = field(default_factory=NoLog)
    clock: Callable[[], float] = time.monotonic
    _next: dict[Due, float] = field(default_factory=dict)
    """When each is due, in seconds of `clock`."""
    _failed: dict[Due, float] = field(default_factory=dict)
    """When something failed first, in seconds of `clock`."""

    def fetch_due(self, job: Job, node: Node) -> bool:
        """Whether its results are to be fetched now; the next time is a period later."""
        return self._is_due(job, node, "fetch", every=self.fetch_every(node))

    def now_and_then(self, job: Job, node: Node, far: Side) -> None:
        """Takes a checkpoint, or goes on with one, where that is due. Raises OSError."""
        asked = job.spec.checkpoint
        if self.checkpoints is None or asked is None:
            return
        owned = _owned(job, node, asked)
        begun = self.checkpoints.unfinished(owned)
        if self._is_due(job, node, "checkpoint", every=asked.every or 0) or begun:
            self._save(job, owned, far, seconds=TURN_SECONDS)

    def at_end(self, job: Job, node: Node, far: Side, *, well: bool, shared: bool) -> None:
        """Further results, and the last checkpoint of an attempt unless it ended well for good.

        Raises OSError, for a while.
        """
        with self.patiently(job, node, "end"), understood(node.name):
            self._fetch(job, node, far, shared=shared)
            self._save_last(job, node, far, well=well)

    @contextmanager
    def patiently(self, job: Job, node: Node, what: str) -> Iterator[None]:
        """An OSError passes for a while; from then on what is lost is told instead."""
        due = node.name, job.key, what
        try:
            yield
        except OSError as error:
            now = self.clock()
            if now - self._failed.setdefault(due, now) < GIVEN_UP_SECONDS:
                raise
            self.tell(job, node, Fetched(failed=(str(error),)))

    def _fetch(self, job: Job, node: Node, far: Side, *, shared: bool) -> None:
        if self.mounts is None or not job.spec.results:
            return
        try:
            found = self.mounts.fetch(Visit(job, node.label, far, shared))
        except (Refused, HereError) as error:
            found = Fetched(failed=(str(error),))
        self.tell(job, node, found)

    def tell(self, job: Job, node: Node, found: Fetched) -> None:
        """The log of what is lost, and who listens of all that came of results."""
        if found.failed:
            told, lost = found.failed[:MOST_TOLD], len(found.failed)
            self.log.warning("results.lost", job=job.id, node=node.name, lost=lost, failed=told)
        if found != Fetched():
            self.fetched(job, found)

    def _save_last(self, job: Job, node: Node, far: Side, *, well: bool) -> None:
        asked, again = job.spec.checkpoint, JobFlag.REQUEUED in job.flags
        done = job.state is JobState.COMPLETED or (well and not again)
        if asked is not None and not done:
            self._save(job, _owned(job, node, asked), far)

    def bring(self, job: Job, node: Node, far: Side, *, shared: bool) -> None:
        """Files beside the working directory, and the folder of checkpoints, before a later
        attempt with the newest one.

        Raises OSError, Refused.
        """
        if self.mounts is not None:
            self.mounts.bring(Visit(job, node.label, far, shared))
        asked = job.spec.checkpoint
        if self.checkpoints is None or asked is None:
            return
        owned = _owned(job, node, asked)
        far.carry("make", owned.where)
        if job.attempt > 1:
            self.checkpoints.restore(owned, far)

    def hasten(self, node: NodeName) -> None:
        """All that is done now and then on the node is due at once."""
        for due in self._next:
            if due[0] == node:
                self._next[due] = 0.0

    def forget(self, node: NodeName) -> None:
        """The machine is gone."""
        for table in (self._next, self._failed):
            for due in [due for due in table if due[0] == node]:
                del table[due]

    def _is_due(self, job: Job, node: Node, what: str, *, every: int) -> bool:
        """For the first time a period after it was first asked; 0 is never, unless hastened."""
        due, now = (node.name, job.key, what), self.clock()
        wait = every or float("inf")
        if now < self._next.setdefault(due, now + wait):
            return False
        self._next[due] = now + wait
        return True

    def _save(self, job: Job, owned: Owned, far: Side, *, seconds: float | None = None) -> None:
        if self.checkpoints is None:
            return
        try:
            self.checkpoints.save(owned, far, seconds=seconds)
        except (Refused, HereError) as error:
            self.log.warning("checkpoint.failed", job=job.id, error=str(error))


def of(job: Job, path: str) -> Where:
    """A folder, with the rights of the job's owner."""
    owner = job.owner
    return Where(path, owner.uid, owner.gid, owner.groups, job.spec.umask)


def _owned(job: Job, node: Node, asked: Checkpoint) -> Owned:
    places = [share.node for share in job.shares]
    rank = places.index(node.name) if node.name in places else 0
    return Owned(job.id, job.sluid, rank, job.attempt, of(job, checkpoint_folder(job, asked)))
