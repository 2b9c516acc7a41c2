"""What the price list tells of volumes, addresses and traffic."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.model.rates import PUBLISHED, UNITS
from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.rates import ASKS, read_rates
from tests.lab import tariff


@dataclass
class PriceList:
    """The box's; `silent` services say no."""

    silent: set[str] = field(default_factory=set)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        assert (service, region, operation) == ("pricing", "us-east-1", "get_products")
        self.calls.append(params)
        if params["ServiceCode"] in self.silent:
            raise AwsError("AccessDeniedException", "no", 403)
        wanted = {one["Field"]: one["Value"] for one in params["Filters"]}
        assert "eu-west-1" in wanted.values()
        return {"PriceList": [json.dumps(one) for one in tariff.told(wanted)]}


def test_each_rate_is_read_of_the_first_tier_of_its_own_product() -> None:
    found = read_rates(PriceList(), "eu-west-1")
    assert {item for item, _ in found} == UNITS.keys() == ASKS.keys()
    assert found.pop(("between-regions", "us-east-2")) == 10_000
    assert found.pop(("between-regions", "eu-west-1")) == 20_000
    usual = {(item, ""): PUBLISHED.of(item, "us-east-1").micro_usd for item, _ in found}
    assert found == usual, "units of which ours are parts are divided"


@pytest.mark.parametrize(
    ("silent", "left"),
    [({"AmazonEC2"}, {"address", "between-zones", "internet"}), ({"AmazonVPC"}, {"gp3"})],
)
def test_what_is_not_told_is_left_out(silent: set[str], left: set[str]) -> None:
    found = {item for item, _ in read_rates(PriceList(silent), "eu-west-1")}
    assert left <= found
    assert "address" not in found or "AmazonVPC" not in silent
