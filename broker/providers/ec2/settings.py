"""What a site says about its EC2: where machines stand, what they are made of, who comes in."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Settings:
    """Maps are by region unless they say otherwise; what is absent is found or made."""

    ssh_port: int = 22
    ssh_from: tuple[str, ...] = ()
    """CIDR blocks from which the gateway comes; none: the VPC's own."""
    public: bool = True
    """Whether machines get a public address."""
    vpcs: Mapping[str, str] = field(default_factory=dict)
    subnets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    security_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    """By node prefix, `gpu`, `x86_64` or `arm64`: an AMI id or the name of an SSM parameter."""
    instance_profile: str | None = None
    root_gib: int = 30
    kms_key: str | None = None
    devices: str = "/dev/disk/by-id"
    """Folder in which machines show the disks that are attached to them."""
    efa: bool = True
    """Whether gangs on types with EFA get it, in a placement group of their own."""
