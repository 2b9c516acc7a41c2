"""What the box sells and for how much: the figures of the package's own catalog."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from broker.model.offer import Market
from broker.optimize.bundled import bundled
from broker.optimize.catalog import Catalog, Shape

SAMPLES = (3600.0, 9 * 3600.0)
"""How old spot prices are, at the latest change or now."""
ON_DEMAND, SPOT = str(Market.ON_DEMAND), str(Market.SPOT)


@dataclass(frozen=True, slots=True)
class Quota:
    """Codes of Service Quotas that count the vCPUs of a group of families."""

    group: str
    on_demand: str
    spot: str


STANDARD = Quota("Standard (A, C, D, H, I, M, R, T, Z)", "L-1216C47A", "L-34B43A08")
QUOTAS: Mapping[str, Quota] = {
    "hpc": Quota("HPC", "L-F7808C92", ""),
    "inf": Quota("Inf", "L-1945791B", "L-B5D1601B"),
    "trn": Quota("Trn", "L-2C3B7624", "L-6B0D517C"),
    "dl": Quota("DL", "L-6E869C2A", "L-85EED4F7"),
    "vt": Quota("G and VT", "L-DB2E81BA", "L-3819A6DF"),
    "u": Quota("High Memory", "L-43DA4232", ""),
    "g": Quota("G and VT", "L-DB2E81BA", "L-3819A6DF"),
    "p5": Quota("P5", "L-417A185B", "L-C4BD4855"),
    "p6": Quota("P6", "L-417A185B", ""),
    "p": Quota("P", "L-417A185B", "L-7212CCBC"),
    "f": Quota("F", "L-74FC7D96", "L-88CF9481"),
    "x": Quota("X", "L-7295265B", "L-E3A00192"),
}
"""By how the family's name begins; longer beginnings stand first."""


def quota_code(instance_type: str, market: str) -> str:
    """The quota that a launch counts against; empty where AWS has none."""
    starts = (quota for start, quota in QUOTAS.items() if instance_type.startswith(start))
    quota = next(starts, STANDARD)
    return quota.spot if market == SPOT else quota.on_demand


def quota_names() -> Iterator[tuple[str, str]]:
    """Each code with its name, as Service Quotas lists them."""
    told = {}
    for quota in (STANDARD, *QUOTAS.values()):
        told[quota.on_demand] = f"Running On-Demand {quota.group} instances"
        if quota.spot:
            told[quota.spot] = f"All {quota.group} Spot Instance Requests"
    yield from told.items()


@dataclass(slots=True)
class Wares:
    """Types, where they are offered, and prices in micro-dollars per hour."""

    shapes: Mapping[str, Shape]
    zones: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Zone ids by type and region."""
    prices: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By type, market and place: the region on demand, the zone id for spot."""
    changed: dict[tuple[str, str, str], list[tuple[float, int]]] = field(default_factory=dict)
    """From when on they were what, the latest at the end."""

    @classmethod
    def of(cls, catalog: Catalog) -> "Wares":
        wares = cls({shape.name: shape for shape in catalog.shapes})
        for offer in catalog:
            name, where = offer.instance_type, (offer.instance_type, offer.region)
            spot = offer.market is Market.SPOT
            place = offer.zones[0] if spot and offer.zones else offer.region
            wares.prices[name, str(offer.market), place] = offer.micro_usd_per_hour
            known = wares.zones.get(where, ())
            wares.zones[where] = known + tuple(zone for zone in offer.zones if zone not in known)
        return wares

    @classmethod
    def bundled(cls) -> "Wares":
        """Prices that change are each box's own."""
        return replace(_bundled(), changed={})

    def price(self, instance_type: str, market: str, *, region: str, zone: str) -> int | None:
        """What a launch there costs now; None where nobody told a price."""
        place = zone if market == SPOT else region
        key = (instance_type, market, place)
        changes = self.changed.get(key)
        return changes[-1][1] if changes else self.prices.get(key)

    def change(self, pool: tuple[str, str, str], *, price: int, at: float) -> None:
        """From then on new machines there cost that much."""
        self.changed.setdefault(pool, []).append((at, price))

    def samples(self, instance_type: str, zone: str, now: float) -> list[tuple[float, int]]:
        """Spot prices of a pool by when they were told first, the newest first."""
        key = (instance_type, SPOT, zone)
        changes = self.changed.get(key, [])
        begun = changes[0][0] if changes else now
        first = [(begun - age, price) for age in SAMPLES if (price := self.prices.get(key))]
        return [*reversed(changes), *first]

    def types_in(self, region: str) -> list[str]:
        return sorted(name for name, where in self.zones if where == region)


@cache
def _bundled() -> Wares:
    return Wares.of(bundled("ec2"))
