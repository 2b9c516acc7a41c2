"""What users' live jobs come to, and what was used before, by party: for limits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from accounting.order import faded
from accounting.tres import Tres
from broker.model.job import Job
from broker.model.spec import UNLIMITED

FOREVER = 10**12
"""An instant after everything: the end of what has no time limit."""
WALL = "wall"
"""Among counts of TRES: 1 for each running job, so that its seconds are wall time."""
Counts = dict[str, int]
"""Amounts as limits name them: `cpu`, `mem` (MiB), `node`, `billing`, `gres/gpu`, WALL."""
Weighed = dict[str, float]
"""Such amounts, whole unless a QOS's UsageFactor has multiplied them."""


class Party(NamedTuple):
    """Whose jobs are counted together."""

    user: str
    account: str
    qos: str
    partition: str = ""


@dataclass(slots=True)
class Used:
    """What the live jobs of one party come to; changes with them."""

    queued: int = 0
    """Waiting and running; every task of an array counts."""
    running: int = 0
    accruing: int = 0
    """Waiting ones that grow older; counted only where a limit looks at them."""
    held: Counts = field(default_factory=dict)
    """By the running ones."""
    going: Weighed = field(default_factory=dict)
    """By those of them whose time runs: neither suspended nor still being set up."""
    begins: Weighed = field(default_factory=dict)
    """What is going, times the instant since when, less what stands still has used."""
    ends: Weighed = field(default_factory=dict)
    """What is going, times the instant at which its limit is reached, and what is left to those
    who stand still."""
    nodes: Counts = field(default_factory=dict)
    """How many of the running ones are on each node: limits count it once."""

    def add(self, other: "Used", sign: int = 1, *, factor: float = 1.0) -> None:
        """Counts more, or with a sign of -1 less; what is ahead times the factor."""
        self.queued += sign * other.queued
        self.running += sign * other.running
        self.accruing += sign * other.accruing
        if other.running:
            _merge(self.held, other.held, sign)
            _weigh(self.begins, other.begins, sign)
            weight = sign if factor == 1.0 else sign * factor
            _weigh(self.going, other.going, weight)
            _weigh(self.ends, other.ends, weight)
            for name, count in other.nodes.items():
                left = self.nodes.get(name, 0) + sign * count
                self.nodes[name] = left
                if not left:
                    del self.nodes[name]

    @property
    def in_use(self) -> Counts:
        """What is held, a node that several share counted once."""
        return {**self.held, "node": len(self.nodes)} if self.held else self.held

    def seconds(self, name: str, now: int) -> int:
        """TRES-seconds that the running jobs have used so far, where nothing is weighed."""
        return round(self.going.get(name, 0) * now - self.begins.get(name, 0))

    def charged(self, name: str, now: int, *, keep: float) -> float:
        """What of it counts where a second leaves `keep` of what was: as of jobs equally old."""
        seconds, count = self.seconds(name, now), self.held.get(name, 0)
        return count * faded(seconds / count, keep) if count else 0.0

    def ahead(self, name: str, now: int) -> int:
        """TRES-seconds that the running jobs may still use within their time limits."""
        return max(0, round(self.ends.get(name, 0) - self.going.get(name, 0) * now))


def _merge(into: Counts, other: Counts, sign: int) -> None:
    for name, count in other.items():
        into[name] = into.get(name, 0) + sign * count


def _weigh(into: Weighed, other: Mapping[str, float], weight: float) -> None:
    for name, count in other.items():
        into[name] = into.get(name, 0) + weight * count


WAITS = Used(queued=1)
"""What a job that waits comes to. Shared: never to be added to."""
Tally = Mapping[Party, Used]


@dataclass(slots=True)
class Charge:
    """TRES-seconds that the past jobs of one party used, as of an instant."""

    at: int = 0
    faded: dict[str, float] = field(default_factory=dict)
    """What is past counts less: for associations and shares."""
    graded: dict[str, float] = field(default_factory=dict)
    """The same for QOS, whose use is reset by itself."""
    whole: dict[str, float] = field(default_factory=dict)
    """For QOS that say NoDecay."""

    def copy(self) -> "Charge":
        return Charge(self.at, dict(self.faded), dict(self.graded), dict(self.whole))

    def add(self, counts: Mapping[str, float], at: int, *, keep: float, seconds: int = 0) -> None:
        """More was used, in the seconds before an instant; a second leaves `keep` of it."""
        self.fade(at, keep=keep)
        late = keep ** max(0, self.at - at)
        late *= faded(seconds, keep) / seconds if seconds > 0 else 1.0
        self.add_for_associations(counts, late)
        self.add_for_qos(counts, late)

    def add_for_associations(self, counts: Mapping[str, float], part: float) -> None:
        for name, count in counts.items():
            self.faded[name] = self.faded.get(name, 0.0) + count * part

    def add_for_qos(self, counts: Mapping[str, float], part: float) -> None:
        for name, count in counts.items():
            self.graded[name] = self.graded.get(name, 0.0) + count * part
            self.whole[name] = self.whole.get(name, 0.0) + count

    def fade(self, now: int, *, keep: float) -> None:
        if now <= self.at:
            return
        part = keep ** (now - self.at) if self.at else 1.0
        self.faded = {name: count * part for name, count in self.faded.items()}
        self.graded = {name: count * part for name, count in self.graded.items()}
        self.at = now


Charges = Mapping[Party, Charge]


def party_of(job: Job) -> Party:
    """A job that waits for several partitions counts for the first."""
    return Party(job.owner.user, job.account, job.qos, job.partitions[0] if job.partitions else "")


def counts_of(tres: Tres, billing: int) -> Counts:
    """Amounts by the names that limits have."""
    counts = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node, "billing": billing, WALL: 1}
    return counts | {f"gres/{name}": count for name, count in tres.gres}


def used_by(job: Job, billing: int = 0) -> Used:
    """What one live record adds to its party; `billing` in units, as it runs."""
    if job.shares:
        used = _holding(job, counts_of(job.alloc, billing))
        used.nodes = {share.node: 1 for share in job.shares}
        return used
    if job.array is not None and job.array.task is None:
        return Used(queued=len(job.array.waiting))
    return WAITS


def starting(job: Job, tres: Tres, *, billing: int, names: Iterable[str]) -> Used:
    """What it adds when it starts on these nodes, beside its being queued."""
    used = _standing(counts_of(tres, billing), used=0, left=_limit(job))
    return replace(used, queued=0, nodes=dict.fromkeys(names, 1))


def _holding(job: Job, held: Counts) -> Used:
    """Time stands still while its machines are made ready, while it is suspended, at its end."""
    limit = _limit(job)
    if job.ended is not None:
        return _standing(held, used=job.ran(job.ended), left=0)
    if job.configuring or job.started is None:
        return _standing(held, used=0, left=limit)
    if job.suspended_at is not None:
        used = job.ran(job.suspended_at)
        return _standing(held, used=used, left=max(0, limit - used))
    begun = job.started + job.suspended_for
    return Used(
        queued=1,
        running=1,
        held=held,
        going=_times(held, 1),
        begins=_times(held, begun),
        ends=_times(held, begun + limit),
    )


def _standing(held: Counts, *, used: int, left: int) -> Used:
    return Used(queued=1, running=1, held=held, begins=_times(held, -used), ends=_times(held, left))


def _limit(job: Job) -> int:
    return FOREVER if job.time_limit == UNLIMITED else int(job.time_limit)


def _times(counts: Counts, factor: int) -> Weighed:
    return {name: count * factor for name, count in counts.items()}
