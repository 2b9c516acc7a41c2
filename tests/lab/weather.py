"""What goes wrong by chance or by order: refusals, throttling, answers that are lost."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.lab.faults import Fault
from tests.lab.stock import ANY, Pool


@dataclass(slots=True)
class Rule:
    """Launches that it names are refused with `code`."""

    code: str = "InsufficientInstanceCapacity"
    instance_type: str = ANY
    region: str = ANY
    zone: str = ANY
    market: str = ANY
    times: int | None = None
    """How often it still applies; None is always."""
    at_least: int = 1
    """Only launches of so many machines or more."""

    def names(self, pool: Pool, count: int) -> bool:
        wanted = (self.instance_type, self.region, self.zone, self.market)
        given = (pool.instance_type, pool.region, pool.zone, pool.market)
        fits = all(want in {ANY, have} for want, have in zip(wanted, given, strict=True))
        return fits and count >= self.at_least and self.times != 0


@dataclass(slots=True)
class Weather:
    """Shares are of 1; the same seed gives the same luck to the same calls."""

    seed: int = 0
    refuse: float = 0.0
    """Of launches, whatever they ask for."""
    throttle: float = 0.0
    lose: float = 0.0
    """Of calls that work, and whose answer does not arrive."""
    hang_seconds: float = 0.0
    """So long a lost answer keeps its caller waiting."""
    rules: list[Rule] = field(default_factory=list)
    _luck: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._luck.seed(self.seed)

    def change(self, given: Mapping[str, float]) -> None:
        """Sets shares; a seed starts the luck anew. Raises ValueError for a name it lacks."""
        for name, value in given.items():
            if name not in {"seed", "refuse", "throttle", "lose", "hang_seconds"}:
                raise ValueError(f"the weather has no {name!r}")
            setattr(self, name, value)
        if "seed" in given:
            self._luck.seed(self.seed)

    def call(self) -> None:
        """Raises Fault for a call that is throttled."""
        if self._luck.random() < self.throttle:
            raise Fault("RequestLimitExceeded")

    def launch(self, pool: Pool, count: int) -> None:
        """Raises Fault for a launch that is refused, whatever its zone."""
        self._by_rule([rule for rule in self.rules if rule.zone == ANY], pool, count)
        if self._luck.random() < self.refuse:
            raise Fault(
                "InsufficientInstanceCapacity", instance_type=pool.instance_type, zone=pool.zone
            )

    def zone(self, pool: Pool, count: int) -> None:
        """Raises Fault for a launch that is refused in this zone."""
        self._by_rule([rule for rule in self.rules if rule.zone != ANY], pool, count)

    @staticmethod
    def _by_rule(rules: Sequence[Rule], pool: Pool, count: int) -> None:
        for rule in rules:
            if rule.names(pool, count):
                if rule.times is not None:
                    rule.times -= 1
                raise Fault(rule.code, instance_type=pool.instance_type, zone=pool.zone, limit=0)

    def loses(self) -> bool:
        """Whether the answer to a call that worked is lost."""
        return self._luck.random() < self.lose
