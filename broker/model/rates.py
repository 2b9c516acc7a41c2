"""What is billed beside machines: rates by region, each with the day and the source it is of."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GP3_GIB, GP3_IOPS, GP3_MBPS = "gp3", "gp3-iops", "gp3-mbps"
IO2_GIB, IO2_IOPS = "io2", "io2-iops"
MAGNETIC_GIB = "standard"
ADDRESS = "address"
BETWEEN_REGIONS = "between-regions"
BETWEEN_ZONES = "between-zones"
INTERNET = "internet"
NAT_HOUR, NAT_GIB = "nat-hour", "nat-gib"
UNITS: Mapping[str, str] = {
    GP3_GIB: "GiB-month",
    GP3_IOPS: "IOPS-month beyond 3,000",
    GP3_MBPS: "MiB/s-month beyond 125",
    IO2_GIB: "GiB-month",
    IO2_IOPS: "IOPS-month",
    MAGNETIC_GIB: "GiB-month",
    ADDRESS: "hour",
    BETWEEN_REGIONS: "GiB sent",
    BETWEEN_ZONES: "GiB each way",
    INTERNET: "GiB sent",
    NAT_HOUR: "hour",
    NAT_GIB: "GiB",
}
"""Everything that has a rate, and what the rate is for."""
COUNTED = (GP3_GIB, GP3_IOPS, GP3_MBPS, IO2_GIB, IO2_IOPS, MAGNETIC_GIB, ADDRESS, BETWEEN_REGIONS)
"""What estimates and the ledger know of; what a job sends elsewhere nobody tells them."""
ANYWHERE = ""


class Rate(NamedTuple):
    """Micro-dollars for a unit, in a region, an area (`eu`) or ANYWHERE; `to` a region or any."""

    item: str
    region: str
    to: str
    micro_usd: int
    as_of: str
    """ISO 8601, day or year."""
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """A table of them: where a region has none, that of its area or of anywhere counts.

    One is equal to itself alone, so that what follows from it can be kept.
    """

    rows: Mapping[tuple[str, str, str], Rate] = field(default_factory=dict)

    def of(self, item: str, region: str, to: str = "") -> Rate:
        """Raises KeyError for an item without any."""
        area = region.partition("-")[0]
        for place in ((region, to), (region, ""), (area, ""), (ANYWHERE, "")):
            found = self.rows.get((item, *place))
            if found is not None:
                return found
        raise KeyError(item)

    def with_rows(self, fresh: Iterable[Rate]) -> "Rates":
        """These over the others."""
        return Rates({**self.rows, **{(one.item, one.region, one.to): one for one in fresh}})

    def moving(self, gib: int, source: str, target: str) -> int:
        """Micro-dollars for bringing so much data from one region to another: who sends pays."""
        if not gib or not source or source == target:
            return 0
        return gib * self.of(BETWEEN_REGIONS, source, target).micro_usd

    def __iter__(self) -> Iterator[Rate]:
        return iter(sorted(self.rows.values()))


YEAR = "2025"
LISTED = "EC2, EBS and VPC price pages, us-east-1"
ROUTES = "EC2 price page, data transfer"


def _published() -> Iterator[Rate]:
    """List prices as they were published, the same for all where no other is known."""
    here = {
        GP3_GIB: 80_000,
        GP3_IOPS: 5_000,
        GP3_MBPS: 40_000,
        IO2_GIB: 125_000,
        IO2_IOPS: 65_000,
        MAGNETIC_GIB: 50_000,
        ADDRESS: 5_000,
        BETWEEN_ZONES: 10_000,
        INTERNET: 90_000,
        NAT_HOUR: 45_000,
        NAT_GIB: 45_000,
    }
    areas = {
        **dict.fromkeys(("us", "ca", "eu", "mx"), 20_000),
        "ap": 90_000,
        "il": 80_000,
        "me": 110_000,
        "sa": 138_000,
        "af": 147_000,
        ANYWHERE: 147_000,
    }
    for item, price in here.items():
        for region in ("us-east-1", ANYWHERE):
            yield Rate(item, region, "", price, YEAR, LISTED)
    for area, price in areas.items():
        yield Rate(BETWEEN_REGIONS, area, "", price, YEAR, ROUTES)
    for one, other in (("us-east-1", "us-east-2"), ("us-east-2", "us-east-1")):
        yield Rate(BETWEEN_REGIONS, one, other, 10_000, YEAR, ROUTES)


PUBLISHED = Rates().with_rows(_published())
"""What counts where nothing was read from AWS."""
