"""What machines are made of and bear where a job wants other than the site gives to all."""

from collections.abc import Mapping
from dataclasses import dataclass

GP3 = "gp3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A root volume, in EC2's words; None: as many as its kind has by itself."""

    kind: str = GP3
    gib: int
    iops: int | None = None
    mbps: int | None = None
    """MiB a second."""


@dataclass(frozen=True, slots=True)
class Tier:
    """What SkyPilot's word for a disk stands for on AWS; `most` is IOPS for each GiB."""

    kind: str = GP3
    iops: int | None = None
    most: int = 500
    mbps: bool = False
    """Whether its throughput goes with its IOPS."""
    largest_gib: int = 16_384


IOPS_PER_MBPS = 16
"""Of gp3, as SkyPilot asks for it."""
TIERS: Mapping[str, Tier] = {
    "low": Tier("standard", largest_gib=1024),
    "medium": Tier(iops=3500, mbps=True),
    "high": Tier(iops=7000, mbps=True),
    "ultra": Tier("io2", iops=20_000, most=1000, largest_gib=65_536),
}
BEST = "best"
PLAIN = Tier()


def tier_of(name: str | None) -> Tier:
    """`best` is the last of them: every type takes it."""
    return TIERS["ultra"] if name == BEST else TIERS.get(name or "", PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Machines with such wishes are bought for their job alone; empty means as the site has it."""

    images: tuple[tuple[str, str], ...] = ()
    """By region, "" for all: an AMI, or an SSM parameter with `{arch}` or `{debian}` in it."""
    disk_gib: int | None = None
    disk_tier: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Tags of machines and volumes."""
    ports: tuple[str, ...] = ()
    """Open to the world: `8080`, `9000-9010`."""
    fabric: bool = False
    """EFA where the type has it on a single machine too, which several have anyway."""

    def image(self, region: str) -> str | None:
        """None: the site's."""
        named = dict(self.images)
        return named.get(region) or named.get("")

    def serves(self, region: str) -> bool:
        """Whether it has an image there."""
        return not self.images or self.image(region) is not None

    def volume(self, usual_gib: int) -> Volume:
        """Its root volume; IOPS no more than EC2 gives to one of that size."""
        gib, tier = self.disk_gib or usual_gib, tier_of(self.disk_tier)
        if tier.iops is None:
            return Volume(kind=tier.kind, gib=gib)
        iops = min(tier.iops, tier.most * gib)
        mbps = iops // IOPS_PER_MBPS if tier.mbps else None
        return Volume(kind=tier.kind, gib=gib, iops=iops, mbps=mbps)


USUAL = Build()
