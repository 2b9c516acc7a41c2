"""What pools of spot machines have cost: asked seldom, and when it matters."""

from datetime import UTC, datetime
from typing import Any

import pytest

from accounting.rates import Price
from broker.model.offer import MachineState, Market
from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.network import Zones
from broker.providers.ec2.spotprices import EVERY_SECONDS, SILENT_SECONDS, SpotPrices
from tests.unit.broker.made import machine

START = 1_700_000_000
REGION = "us-east-1"
ZONE = "use1-az1"


class Api:
    """A history of one pool, and the price of another beside it."""

    def __init__(self) -> None:
        self.told = [(START - 9999, "0.05"), (START - 10, "0.06"), (START + 500, "0.07")]
        self.asked: list[datetime] = []
        self.silent = False

    def call(self, service: str, region: str, operation: str, **params: Any) -> Any:
        if operation == "describe_availability_zones":
            return {"AvailabilityZones": [{"ZoneName": "us-east-1a", "ZoneId": ZONE}]}
        if self.silent:
            raise AwsError("UnauthorizedOperation", "no")
        assert operation == "describe_spot_price_history"
        assert params["InstanceTypes"] == ["m7i.large"]
        self.asked.append(params["StartTime"])
        return {"SpotPriceHistory": [_row(*one) for one in reversed(self.told)]}


def _row(at: int, price: str) -> dict[str, Any]:
    return {
        "InstanceType": "m7i.large",
        "AvailabilityZone": "us-east-1a",
        "SpotPrice": price,
        "Timestamp": datetime.fromtimestamp(at, UTC),
    }


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def prices(api: Api) -> SpotPrices:
    return SpotPrices(api, Zones(api))


def told(prices: SpotPrices, now: int, **changed: Any) -> tuple[Price, ...]:
    usual = {"market": Market.SPOT, "launched_at": START, "running_at": START + 5}
    return prices.told(REGION, {"i-1": machine(**usual | changed)}, now)["i-1"].prices


def test_a_machine_has_the_prices_from_its_launch_on(prices: SpotPrices) -> None:
    expected = (Price(START - 10, 60_000), Price(START + 500, 70_000))
    assert told(prices, START + 600) == expected


def test_what_costs_always_the_same_is_not_asked_about(api: Api, prices: SpotPrices) -> None:
    assert told(prices, START + 600, market=Market.ON_DEMAND) == ()
    assert api.asked == []


def test_prices_are_read_now_and_then_from_where_they_are_known(
    api: Api, prices: SpotPrices
) -> None:
    for now in (10, 20, EVERY_SECONDS, EVERY_SECONDS + 9, EVERY_SECONDS + 11):
        told(prices, START + now)
    known = [int(one.timestamp()) - START for one in api.asked]
    assert known == [0, 10]


def test_the_end_of_a_machine_makes_them_be_read_at_once_and_once(
    api: Api, prices: SpotPrices
) -> None:
    told(prices, START + 10)
    for now in (20, 21, 22):
        told(prices, START + now, state=MachineState.TERMINATED, terminated_at=START + 19)
    assert len(api.asked) == 2


def test_a_region_that_tells_none_is_asked_again_after_a_while(
    api: Api, prices: SpotPrices
) -> None:
    api.silent = True
    assert told(prices, START + 10) == ()
    api.silent = False
    assert told(prices, START + 11, terminated_at=START + 11) == ()
    assert told(prices, START + 10 + SILENT_SECONDS) != ()


def test_one_that_was_pending_is_asked_about_when_it_runs(api: Api, prices: SpotPrices) -> None:
    assert told(prices, START + 1, running_at=None) != ()
    assert told(prices, START + 2, id="i-2") != ()
    assert len(api.asked) == 1
