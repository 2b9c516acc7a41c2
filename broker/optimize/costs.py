"""What a job costs beside the price of its machines: volumes, addresses, data, lost work."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log

from broker.model import rates
from broker.model.build import GP3, USUAL, Build, Volume
from broker.model.offer import BuyPolicy
from broker.model.rates import Rates

MONTH_HOURS = 730
VOLUME = "volume"
"""Its name among what is billed beside a machine."""


@dataclass(frozen=True, slots=True)
class Disk:
    """Which rates a kind of volume has, and how much of it is free."""

    gib: str
    iops: str = ""
    mbps: str = ""
    free_iops: int = 0
    free_mbps: int = 0


DISKS: Mapping[str, Disk] = {
    GP3: Disk(rates.GP3_GIB, rates.GP3_IOPS, rates.GP3_MBPS, free_iops=3000, free_mbps=125),
    "io2": Disk(rates.IO2_GIB, rates.IO2_IOPS),
    "standard": Disk(rates.MAGNETIC_GIB),
}
"""Requests to magnetic volumes are not counted."""
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


def hourly(volume: Volume, region: str, known: Rates) -> int:
    """Micro-dollars an hour for a volume."""
    disk = DISKS[volume.kind]
    counts = (
        (disk.gib, volume.gib),
        (disk.iops, (volume.iops or 0) - disk.free_iops),
        (disk.mbps, (volume.mbps or 0) - disk.free_mbps),
    )
    month = sum(
        count * known.of(item, region).micro_usd for item, count in counts if item and count > 0
    )
    return month // MONTH_HOURS


def parts(
    policy: BuyPolicy, region: str, known: Rates, *, build: Build | None = None
) -> dict[str, int]:
    """Micro-dollars an hour of what a machine has beside itself: its root volume, its address."""
    volume = (build or USUAL).volume(policy.root_gib)
    return _parts(volume, policy.public_address, region, known=known)


def _parts(volume: Volume, public: bool, region: str, *, known: Rates) -> dict[str, int]:
    address = known.of(rates.ADDRESS, region).micro_usd if public else 0
    found = {VOLUME: hourly(volume, region, known), rates.ADDRESS: address}
    return {part: price for part, price in found.items() if price}


def beside(
    policy: BuyPolicy, regions: tuple[str, ...], known: Rates, *, build: Build | None = None
) -> tuple[int, ...]:
    """Micro-dollars an hour for all of that, in each of the regions."""
    volume = (build or USUAL).volume(policy.root_gib)
    return _beside(volume, policy.public_address, regions, known=known)


@lru_cache(maxsize=256)
def _beside(
    volume: Volume, public: bool, regions: tuple[str, ...], *, known: Rates
) -> tuple[int, ...]:
    return tuple(sum(_parts(volume, public, region, known=known).values()) for region in regions)


def days(policy: BuyPolicy, region: str, known: Rates) -> str:
    """Of what day the oldest rate is that counts for a machine; "" where none does."""
    return _days(bool(policy.root_gib), policy.public_address, region, known=known)


@lru_cache(maxsize=1024)
def _days(volume: bool, public: bool, region: str, *, known: Rates) -> str:
    items = [rates.GP3_GIB] * volume + [rates.ADDRESS] * public
    return min((known.of(item, region).as_of for item in items), default="")


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
