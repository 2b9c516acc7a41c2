"""What users' live jobs come to, counted by user, account and QOS, for limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from accounting.tres import Tres
from broker.model.job import Job


class Party(NamedTuple):
    """Whose jobs are counted together."""

    user: str
    account: str
    qos: str


@dataclass(slots=True)
class Used:
    """What the live jobs of one party come to; changes with them."""

    queued: int = 0
    """Waiting and running; every task of an array counts."""
    running: int = 0
    tres: Tres = Tres()
    """Held by the running ones."""

    def add(self, other: "Used", sign: int = 1) -> None:
        """Counts more, or with a sign of -1 less."""
        self.queued += sign * other.queued
        self.running += sign * other.running
        if other.running:
            self.tres = self.tres + other.tres if sign > 0 else self.tres - other.tres


Tally = Mapping[Party, Used]


def party_of(job: Job) -> Party:
    return Party(job.owner.user, job.account, job.qos)


def used_by(job: Job) -> Used:
    """What one live record adds to its party."""
    if job.shares:
        return Used(queued=1, running=1, tres=job.alloc)
    if job.array is not None and job.array.task is None:
        return Used(queued=len(job.array.waiting))
    return Used(queued=1)
