"""What EC2 tells of capacity reservations and blocks, as offers."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.model.offer import BLOCK, RESERVED, TARGETED
from broker.optimize.catalog import Catalog
from broker.optimize.shelf import shelve
from broker.providers.ec2.reserved import LOOK_SECONDS, READ_SECONDS, Reservations, offer_of
from tests.contract.cloud import StubEc2
from tests.unit.broker.providers.ec2.test_provider import OFFER

CATALOG: Catalog = shelve([OFFER])
END = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)


def told(**more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": "cr-1",
        "InstanceType": "m7i.large",
        "AvailabilityZoneId": "use1-az1",
        "AvailableInstanceCount": 3,
        "InstanceMatchCriteria": "open",
        "ReservationType": "default",
        **more,
    }


@pytest.mark.parametrize(
    ("more", "closed", "until"),
    [
        ({}, set(), None),
        ({"EndDate": END}, set(), int(END.timestamp())),
        ({"InstanceMatchCriteria": "targeted"}, {TARGETED}, None),
        ({"ReservationType": BLOCK, "EndDate": END}, {BLOCK}, int(END.timestamp()) - 1800),
        ({"ReservationType": BLOCK, "InstanceMatchCriteria": "targeted"}, {BLOCK}, None),
    ],
)
def test_a_reservation_is_an_offer_that_costs_nothing_more(
    more: dict[str, Any], closed: set[str], until: int | None
) -> None:
    offer = offer_of(told(**more), CATALOG.shapes[0], "us-east-1")
    assert (offer.reservation, offer.free, offer.micro_usd_per_hour) == ("cr-1", 3, 0)
    assert (offer.zones, offer.until, offer.cpus) == (("use1-az1",), until, 2)
    assert {RESERVED, "cr-1", "us-east-1", "on-demand"} <= set(offer.features)
    assert closed == {TARGETED, BLOCK}.intersection(offer.features)


@dataclass
class Bench:
    time: float = 0.0
    ec2: StubEc2 = field(default_factory=lambda: StubEc2(lambda: 0))

    def __post_init__(self) -> None:
        self.known = Reservations(self.ec2, lambda: CATALOG, lambda: self.time)

    def tells(self, *listed: dict[str, Any]) -> None:
        self.ec2.left["CapacityReservations"] = [("us-east-1", one) for one in listed]

    def read(self, after: float = 0.0) -> int:
        """How many calls it took."""
        self.time += after
        before = len(self.ec2.calls)
        self.known.read(["us-east-1"])
        return len(self.ec2.calls) - before


def test_a_region_with_reservations_is_read_each_minute_others_seldom() -> None:
    bench = Bench()
    assert [bench.read(), bench.read(READ_SECONDS), bench.read(LOOK_SECONDS)] == [1, 0, 1]
    bench.tells(told())
    assert [bench.read(LOOK_SECONDS), bench.read(1), bench.read(READ_SECONDS)] == [1, 0, 1]
    assert bench.known.free("cr-1") == 3


def test_what_was_taken_since_is_not_free() -> None:
    bench = Bench()
    bench.tells(told())
    bench.read()
    bench.known.taken("cr-1", 2)
    assert bench.known.free("cr-1") == 1
    bench.read(READ_SECONDS)
    assert bench.known.free("cr-1") == 3


def test_a_type_the_catalogue_lacks_is_left_out() -> None:
    bench = Bench()
    bench.tells(told(InstanceType="x9.large"), told(CapacityReservationId="cr-2"))
    bench.read()
    assert [one.reservation for one in bench.known.offers()] == ["cr-2"]


def test_where_looking_is_not_allowed_what_was_known_stays() -> None:
    bench = Bench()
    bench.tells(told())
    bench.read()
    bench.ec2.denied.add("describe_capacity_reservations")
    assert bench.read(READ_SECONDS) == 1
    assert bench.known.free("cr-1") == 3
