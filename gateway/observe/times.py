"""How long requests took, in the buckets of a Prometheus histogram; of this process alone."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, the usual ones of Prometheus' libraries."""


@dataclass(slots=True)
class Histogram:
    """How many took up to each of BUCKETS, or longer, and how long all together."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


class RequestTimes:
    """By what was asked: a command's name, or a route as it is written in the table of routes."""

    def __init__(self) -> None:
        self._known: dict[str, Histogram] = {}
        self._users: dict[int, Histogram] = {}

    def note(self, asked: str, seconds: float) -> None:
        self._known.setdefault(asked, Histogram()).note(seconds)

    def note_user(self, uid: int, seconds: float) -> None:
        """Of a command, beside `note`."""
        self._users.setdefault(uid, Histogram()).note(seconds)

    @property
    def known(self) -> Mapping[str, Histogram]:
        return self._known

    @property
    def users(self) -> Mapping[int, Histogram]:
        """Of commands, by who asked."""
        return self._users
