"""What a machine costs: price intervals to whole micro-dollars, and exact sharing of a cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from accounting.ids import MicroUsd

SECONDS_PER_HOUR = 3600
MICRO = 1_000_000
FREE = MicroUsd(0)


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """What an hour costs from the instant `since` (seconds UTC) until the next price begins."""

    since: int
    micro_usd_per_hour: int


@dataclass(frozen=True, slots=True)
class Terms:
    """How a provider bills one start of a machine beside its price; both in seconds."""

    minimum_seconds: int = 0
    free_if_interrupted_within: int = 0
    """A machine that the provider takes back sooner than this costs nothing."""
    price_seconds: int = SECONDS_PER_HOUR
    """So long holds the price that its pool has when that time begins, counted from the start."""


ON_DEMAND = Terms(minimum_seconds=60)
SPOT = Terms(minimum_seconds=60, free_if_interrupted_within=3600)
OWNED = Terms()
"""EC2's terms for Linux as of 2025, and those of a declared machine, which only has a price."""


def in_force(told: Iterable[Price], terms: Terms, first: Price) -> tuple[Price, ...]:
    """What a machine that runs since `first` costs, from what its pool was told to cost.

    A change holds from the next time that the price is looked at, as EC2 does with spot machines.
    The price of `first` is that where nothing is told of the pool at the start.
    """
    found = {first.since: first.micro_usd_per_hour}
    for price in sorted(told):
        late = max(0, price.since - first.since)
        periods = -(-late // terms.price_seconds)
        found[first.since + periods * terms.price_seconds] = price.micro_usd_per_hour
    times = sorted(found)
    changes = (
        Price(at, found[at])
        for before, at in zip([None, *times], times, strict=False)
        if before is None or found[before] != found[at]
    )
    return tuple(changes)


def cumulative(prices: Sequence[Price], start: int, until: int) -> MicroUsd:
    """Cost of running from `start` to `until`, cut to whole micro-dollars once, at the end.

    The first price also holds before it begins. Raises ValueError without any price.
    """
    if not prices:
        raise ValueError(
            "a machine without a price cannot be charged: give it one, 0 if it is free"
        )
    begins = [start, *(price.since for price in prices[1:])]
    ends = [*(price.since for price in prices[1:]), until]
    micro_usd_seconds = sum(
        price.micro_usd_per_hour * max(0, min(end, until) - max(begin, start))
        for price, begin, end in zip(prices, begins, ends, strict=True)
    )
    return MicroUsd(micro_usd_seconds // SECONDS_PER_HOUR)


def bill(
    prices: Sequence[Price], terms: Terms, *, start: int, end: int, interrupted: bool = False
) -> MicroUsd:
    """What the provider bills for one start of a machine that ran from `start` to `end`.

    `interrupted` says that the provider took the machine back.
    """
    if interrupted and end - start < terms.free_if_interrupted_within:
        return MicroUsd(0)
    return cumulative(prices, start, max(end, start + terms.minimum_seconds))


def share(amount: int, weights: Sequence[Fraction | int]) -> list[int]:
    """`amount` in whole parts by weight, by largest remainder; the parts' sum is `amount`.

    Equal remainders go to the earlier part; weights that are all zero count as equal. A negative
    amount is shared like its opposite. Raises ValueError without weights or with a negative one.
    """
    if not weights or min(weights) < 0:
        raise ValueError(f"cannot share {amount} by the weights {list(weights)}")
    if amount < 0:
        return [-part for part in share(-amount, weights)]
    if not any(weights):
        weights = [1] * len(weights)
    common = lcm(*(weight.denominator for weight in weights))
    exact = [weight.numerator * (common // weight.denominator) * amount for weight in weights]
    whole = sum(exact) // amount if amount else 1
    parts = [quota // whole for quota in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: (-(exact[i] % whole), i))
    for i in by_remainder[: amount - sum(parts)]:
        parts[i] += 1
    return parts


def dollars(cost: int) -> str:
    """Micro-dollars as dollars with six decimals, exactly: 1250000 is `1.250000`."""
    sign = "-" if cost < 0 else ""
    whole, micro = divmod(abs(cost), MICRO)
    return f"{sign}{whole}.{micro:06d}"
