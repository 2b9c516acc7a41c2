"""How much planning costs."""

from dataclasses import dataclass


@dataclass(slots=True)
class Cycles:
    """What full passes of planning have cost since the start, in microseconds."""

    count: int = 0
    last: int = 0
    most: int = 0
    total: int = 0

    def note(self, seconds: float) -> None:
        self.last = round(seconds * 1_000_000)
        self.most = max(self.most, self.last)
        self.total += self.last
        self.count += 1
