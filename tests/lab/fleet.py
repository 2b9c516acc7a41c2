"""CreateFleet of type instant: which pools are asked in which order, and for how many. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.lab.faults import Fault
from tests.lab.stock import Pool


@dataclass(frozen=True, slots=True)
class Choice:
    """One override of one launch template, as a pool with what decides its place."""

    pool: Pool
    template: Mapping[str, Any]
    override: Mapping[str, Any]
    micro_usd_per_hour: int
    free: int
    priority: float = 0.0


def _by_price(choice: Choice, _wanted: int) -> tuple[float, ...]:
    return (choice.micro_usd_per_hour,)


def _by_priority(choice: Choice, _wanted: int) -> tuple[float, ...]:
    return (choice.priority,)


def _by_room(choice: Choice, _wanted: int) -> tuple[float, ...]:
    return (-choice.free, choice.micro_usd_per_hour)


def _room_then_price(choice: Choice, wanted: int) -> tuple[float, ...]:
    return (choice.free < wanted, choice.micro_usd_per_hour)


STRATEGIES: Mapping[str, Callable[[Choice, int], tuple[float, ...]]] = {
    "lowest-price": _by_price,
    "lowestPrice": _by_price,
    "prioritized": _by_priority,
    "diversified": _by_price,
    "capacity-optimized": _by_room,
    "capacityOptimized": _by_room,
    "capacity-optimized-prioritized": _by_priority,
    "price-capacity-optimized": _room_then_price,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the fleet is to give."""

    count: int
    strategy: str
    least: int = 0
    """Fewer than this is nothing."""
    one_type: bool = False
    one_zone: bool = False


@dataclass(slots=True)
class Given:
    granted: list[tuple[Choice, int]] = field(default_factory=list)
    refused: list[tuple[Choice, Fault]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(count for _choice, count in self.granted)


def ordered(choices: Sequence[Choice], asked: Asked) -> list[Choice]:
    """As the strategy goes through them. Raises Fault for one that EC2 does not have."""
    key = STRATEGIES.get(asked.strategy)
    if key is None:
        raise Fault("InvalidParameterValue", f"no allocation strategy {asked.strategy!r}")
    return sorted(choices, key=lambda choice: key(choice, asked.count))


def allocate(
    choices: Sequence[Choice], asked: Asked, grant: Callable[[Choice, int, int], int]
) -> Given:
    """Asks `grant(choice, least, most)` down the order until all is there or nothing is left."""
    given = Given()
    for choice in ordered(choices, asked):
        left = asked.count - given.count
        if not left or not _matches(choice, given, asked):
            continue
        least = asked.least if asked.one_type and asked.one_zone and asked.least else 1
        try:
            given.granted.append((choice, grant(choice, min(least, left), left)))
        except Fault as fault:
            given.refused.append((choice, fault))
    if given.count < asked.least:
        given.granted.clear()
    return given


def _matches(choice: Choice, given: Given, asked: Asked) -> bool:
    """Whether it is of the one type and zone that a fleet may have bound itself to."""
    if not given.granted:
        return True
    first = given.granted[0][0].pool
    same_type = choice.pool.instance_type == first.instance_type
    same_zone = choice.pool.zone == first.zone
    return (same_type or not asked.one_type) and (same_zone or not asked.one_zone)
