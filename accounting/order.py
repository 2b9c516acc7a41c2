"""The multifactor priority: weights, what each factor is measured against, the sum (25.11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from accounting.reset import Period

HIGHEST = 2**32 - 1
FADE = 0.693
"""Slurm's own figure for the logarithm of 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How waiting jobs are put in order; with all weights 0, and as basic, by submission."""

    multifactor: bool = False
    age: int = 0
    assoc: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = field(default_factory=dict)
    max_age: int = 7 * 86400
    """Seconds of waiting at which the age factor is full."""
    half_life: int = 7 * 86400
    """Seconds in which what was used comes to count half; 0: it counts for ever."""
    period: int = 300
    """Seconds between two looks at ages and use."""
    favor_small: bool = False
    flags: frozenset[str] = frozenset()
    reset: Period = Period.NONE

    @property
    def counts(self) -> bool:
        """Whether anything but the order of submission matters."""
        weights = (self.age, self.assoc, self.fairshare, self.job_size, self.partition, self.qos)
        return self.multifactor and bool(any(weights) or self.tres)

    @property
    def keep(self) -> float:
        """What a second leaves of what was used before it."""
        return 1 - FADE / self.half_life if self.half_life else 1.0


RANKING = Ranking()
"""By submission."""


def faded(seconds: float, keep: float) -> float:
    """What so many seconds of steady use count at their end, where a second leaves `keep` of it."""
    return seconds if keep == 1.0 else (1 - keep**seconds) / -log(keep)


@dataclass(frozen=True, slots=True)
class Factors:
    """All of a job's factors in one partition, each between 0 and 1 unless not normalized."""

    age: float = 0.0
    fairshare: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    assoc: float = 0.0
    tres: Mapping[str, float] = field(default_factory=dict)


def steady(ranking: Ranking, factors: Factors) -> tuple[float, ...]:
    """What each factor but the age weighs: the same for all jobs that ask alike."""
    return (
        ranking.assoc * factors.assoc,
        ranking.fairshare * factors.fairshare,
        ranking.job_size * factors.size,
        ranking.partition * factors.partition,
        ranking.qos * factors.qos,
        sum(weight * factors.tres.get(name, 0.0) for name, weight in ranking.tres.items()),
    )


def priority(age: float, weighed: Iterable[float], *, nice: int = 0) -> int:
    """The sum of a weighed age and of what is `steady`, less nice, from 1 to 2^32-1."""
    total = age
    for weight in weighed:
        total += weight
    return max(1, min(HIGHEST, int(total) - nice))
