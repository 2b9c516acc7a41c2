"""What a job costs beside the price of its machines: volumes, addresses, data, lost work.

List prices of US East (N. Virginia), as published in 2025; they move by parts of a cent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log

from broker.model.build import GP3, USUAL, Build, Volume
from broker.model.offer import BuyPolicy

MONTH_HOURS = 730
VOLUME = "volume"
"""Its name among what is billed beside a machine."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Micro-dollars a month of a kind of volume: for a GiB, and for what goes beyond the free."""

    gib: int
    iops: int = 0
    mbps: int = 0
    free_iops: int = 0
    free_mbps: int = 0


VOLUMES: Mapping[str, Rate] = {
    GP3: Rate(80_000, iops=5_000, mbps=40_000, free_iops=3000, free_mbps=125),
    "io2": Rate(125_000, iops=65_000),
    "standard": Rate(50_000),
}
"""Requests to magnetic volumes are not counted."""
ADDRESS_MICRO_USD_HOUR = 5_000
"""A public IPv4 address, since February 2024."""
NEAR = frozenset({("us-east-1", "us-east-2"), ("us-east-2", "us-east-1")})
NEAR_MICRO_USD_GIB = 10_000
ROUTE_MICRO_USD_GIB: Mapping[str, int] = {
    "us": 20_000,
    "ca": 20_000,
    "eu": 20_000,
    "mx": 20_000,
    "ap": 90_000,
    "il": 80_000,
    "me": 110_000,
    "sa": 138_000,
    "af": 147_000,
}
"""A GiB from a region of this area to another region: who sends pays."""
FARTHEST_MICRO_USD_GIB = max(ROUTE_MICRO_USD_GIB.values())
TAKEN_BACK: Mapping[str, float] = {
    "": 0.0,
    "<5%": 0.025,
    "5-10%": 0.075,
    "10-15%": 0.125,
    "15-20%": 0.175,
    ">20%": 0.25,
}
"""Share of spot machines that are taken back in a month: the middle of each of AWS's bands."""
UNKNOWN = 0.125


def hourly(volume: Volume) -> int:
    """Micro-dollars an hour for a volume."""
    rate = VOLUMES[volume.kind]
    more_iops = max(0, (volume.iops or 0) - rate.free_iops)
    more_mbps = max(0, (volume.mbps or 0) - rate.free_mbps)
    return (volume.gib * rate.gib + more_iops * rate.iops + more_mbps * rate.mbps) // MONTH_HOURS


def parts(policy: BuyPolicy, build: Build | None = None) -> dict[str, int]:
    """Micro-dollars an hour of what a machine has beside itself: its root volume, its address."""
    volume = hourly((build or USUAL).volume(policy.root_gib))
    found = {VOLUME: volume, "address": ADDRESS_MICRO_USD_HOUR if policy.public_address else 0}
    return {part: price for part, price in found.items() if price}


def beside(policy: BuyPolicy, build: Build | None = None) -> int:
    """Micro-dollars an hour for all of that."""
    return sum(parts(policy, build).values())


def moving(gib: int, source: str, target: str) -> int:
    """Micro-dollars for bringing so much data from one region to another."""
    if not gib or not source or source == target:
        return 0
    if (source, target) in NEAR:
        return gib * NEAR_MICRO_USD_GIB
    area = source.split("-", maxsplit=1)[0]
    return gib * ROUTE_MICRO_USD_GIB.get(area, FARTHEST_MICRO_USD_GIB)


def likelihood(band: str) -> tuple[bool, float, str]:
    """What bands are sorted by: those that say nothing last."""
    return band not in TAKEN_BACK, TAKEN_BACK.get(band, UNKNOWN), band


@lru_cache(maxsize=4096)
def lost_seconds(band: str, seconds: int, nodes: int) -> int:
    """Seconds of each machine that are expected to be paid for in vain on spot.

    One of the machines is taken back now and then, and half of the work of all is lost then.
    """
    share = TAKEN_BACK.get(band, UNKNOWN)
    if not share:
        return 0
    rate = -log(1 - share) / (MONTH_HOURS * 3600) * nodes
    return ceil((1 - exp(-rate * seconds)) * seconds / 2)
