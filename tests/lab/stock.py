"""How many machines there are to be had, and how many the account may have. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.lab.faults import Fault
from tests.lab.wares import SPOT, Wares, quota_code

ANY = "*"
PLENTY = 100_000
DEFAULT_VCPUS = 100_000


class Taken(Protocol):
    """A machine that occupies its place."""

    @property
    def instance_type(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def market(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Pool:
    """Where a machine can come from; `zone` is the zone's id."""

    instance_type: str
    region: str
    zone: str
    market: str


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many machines of what it names at a time."""

    machines: int
    instance_type: str = ANY
    region: str = ANY
    zone: str = ANY
    market: str = ANY

    def names(self, pool: Taken | Pool) -> bool:
        wanted = (self.instance_type, self.region, self.zone, self.market)
        given = (pool.instance_type, pool.region, pool.zone, pool.market)
        return all(want in {ANY, have} for want, have in zip(wanted, given, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Machines that are paid for: whoever has them named in the launch gets them."""

    id: str
    instance_type: str
    zone: str
    count: int
    region: str = "us-east-1"
    match: str = "open"
    block: bool = False
    ends_at: float | None = None

    def suits(self, pool: Pool) -> bool:
        same = (self.instance_type, self.region, self.zone)
        return same == (pool.instance_type, pool.region, pool.zone)


class Held(Protocol):
    """A machine that may have come of a reservation."""

    @property
    def reservation(self) -> str: ...


@dataclass(slots=True)
class Stock:
    wares: Wares
    reservations: dict[str, Reservation] = field(default_factory=dict)
    limits: list[Limit] = field(default_factory=list)
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    """vCPUs by quota code and region; the region may be any."""

    def limit(self, limit: Limit) -> None:
        """Adds it, in place of one that names the same."""
        same = (limit.instance_type, limit.region, limit.zone, limit.market)
        self.limits = [
            old
            for old in self.limits
            if (old.instance_type, old.region, old.zone, old.market) != same
        ] + [limit]

    def free(self, pool: Pool, taken: Sequence[Taken]) -> int:
        """How many more machines that pool has."""
        left = [
            limit.machines - sum(limit.names(machine) for machine in taken)
            for limit in self.limits
            if limit.names(pool)
        ]
        return max(0, min(left, default=PLENTY))

    def left_of(self, reservation: Reservation, taken: Iterable[Held]) -> int:
        """How many more machines it has."""
        return reservation.count - sum(one.reservation == reservation.id for one in taken)

    def reserved(self, id: str, pool: Pool, count: int, *, taken: Sequence[Held]) -> None:
        """Raises Fault unless so many of the pool can be had from the reservation."""
        found = self.reservations.get(id)
        if found is None:
            raise Fault("InvalidCapacityReservationId.NotFound", id=id)
        if not found.suits(pool):
            raise Fault(
                "InvalidParameterValue", f"{id} is of {found.instance_type} in {found.zone}"
            )
        if self.left_of(found, taken) < count:
            raise Fault("ReservationCapacityExceeded")

    def open_for(self, pool: Pool, taken: Sequence[Held]) -> str:
        """An open reservation that has room for one more of the pool; "" without any."""
        found = (
            one.id
            for one in self.reservations.values()
            if one.match == "open" and not one.block and one.suits(pool)
            if pool.market != SPOT and self.left_of(one, taken) > 0
        )
        return next(found, "")

    def quota(self, code: str, region: str) -> int:
        return self.quotas.get((code, region), self.quotas.get((code, ANY), DEFAULT_VCPUS))

    def check_quota(self, pool: Pool, count: int, taken: Iterable[Taken]) -> None:
        """Raises Fault if so many more would be over the account's quota in the region."""
        code = quota_code(pool.instance_type, pool.market)
        limit = self.quota(code, pool.region)
        used = sum(
            self.vcpus(machine.instance_type)
            for machine in taken
            if machine.region == pool.region
            and quota_code(machine.instance_type, machine.market) == code
        )
        if used + count * self.vcpus(pool.instance_type) > limit:
            spot = pool.market == SPOT
            raise Fault(
                "MaxSpotInstanceCountExceeded" if spot else "VcpuLimitExceeded", limit=limit
            )

    def vcpus(self, instance_type: str) -> int:
        shape = self.wares.shapes.get(instance_type)
        return shape.cpus if shape else 1

    def grant(self, pool: Pool, least: int, most: int, taken: Sequence[Taken]) -> int:
        """How many of `most` are to be had, at least `least`. Raises Fault."""
        if pool.zone not in self.wares.zones.get((pool.instance_type, pool.region), ()):
            raise Fault("Unsupported", instance_type=pool.instance_type, zone=pool.zone)
        self.check_quota(pool, least, taken)
        count = min(most, self.free(pool, taken))
        if count < least:
            raise Fault(
                "InsufficientInstanceCapacity", instance_type=pool.instance_type, zone=pool.zone
            )
        return count
