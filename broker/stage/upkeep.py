"""What is done for the files of running jobs now and then: results fetched, checkpoints taken."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from broker.model.errors import Refused
from broker.model.ids import NodeName
from broker.model.job import Job, JobFlag, JobState
from broker.model.node import Node
from broker.stage.checkpoints import Checkpoints, Owned
from broker.stage.sides import HereError, Side, Where

TURN_SECONDS = 5.0
"""So long a checkpoint is copied at a time while its job runs: others wait for the node."""
MOST_TRIES = 5
"""An end is told of although its checkpoint could not be taken so often."""


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
    log: Log = field(default_factory=NoLog)
    clock: Callable[[], float] = time.monotonic
    _next: dict[Due, float] = field(default_factory=dict)
    """When each is due, in seconds of `clock`."""
    _failed: dict[Due, int] = field(default_factory=dict)

    def fetch_due(self, job: Job, node: Node) -> bool:
        """Whether its results are to be fetched now; the next time is a period later."""
        return self._is_due(job, node, "fetch", every=self.fetch_every(node))

    def now_and_then(self, job: Job, node: Node, far: Side) -> None:
        """Takes a checkpoint, or goes on with one, where that is due. Raises OSError."""
        asked = job.spec.checkpoint
        if self.checkpoints is None or asked is None:
            return
        owned = _owned(job, node, asked.folder)
        begun = self.checkpoints.unfinished(owned)
        if self._is_due(job, node, "checkpoint", every=asked.every or 0) or begun:
            self._save(job, owned, far, seconds=TURN_SECONDS)

    def at_end(self, job: Job, node: Node, far: Side, *, well: bool) -> None:
        """The last checkpoint of an attempt, unless its job has ended well for good.

        Raises OSError, a few times at most.
        """
        asked, again = job.spec.checkpoint, JobFlag.REQUEUED in job.flags
        done = job.state is JobState.COMPLETED or (well and not again)
        if self.checkpoints is None or asked is None or done:
            return
        due = node.name, job.key, "checkpoint"
        try:
            self._save(job, _owned(job, node, asked.folder), far)
        except OSError as error:
            self._failed[due] = self._failed.get(due, 0) + 1
            if self._failed[due] < MOST_TRIES:
                raise
            self.log.warning("checkpoint.lost", job=job.id, node=node.name, error=str(error))

    def restore(self, job: Job, node: Node, far: Side) -> None:
        """The folder is there, before a later attempt with the newest checkpoint.

        Raises OSError, Refused.
        """
        asked = job.spec.checkpoint
        if self.checkpoints is None or asked is None:
            return
        owned = _owned(job, node, asked.folder)
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


def _owned(job: Job, node: Node, folder: str) -> Owned:
    places = [share.node for share in job.shares]
    rank = places.index(node.name) if node.name in places else 0
    return Owned(job.id, job.sluid, rank, job.attempt, of(job, folder))
