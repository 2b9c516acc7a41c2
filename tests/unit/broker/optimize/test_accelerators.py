"""Accelerators by name and region, with the cheapest price of each market."""

import pytest

from broker.model.offer import Market
from broker.optimize.accelerators import accelerated
from broker.optimize.catalog import Catalog


def test_each_type_has_its_cheapest_price_of_each_market(whole: Catalog) -> None:
    (first, *_) = accelerated(whole, name="a10g")
    assert (first.gpu, first.gpus, first.shape.name) == ("A10G", 1, "g5.xlarge")
    full = next(price for price in first.prices if price.market is Market.ON_DEMAND)
    assert full.micro_usd_per_hour == whole.least_price("g5.xlarge")
    assert len({price.market for price in first.prices}) == len(first.prices) == 2


def test_prices_of_each_region_stand_cheapest_first(whole: Catalog) -> None:
    (first, *_) = accelerated(whole, name="A10G", each=True)
    full = [p.micro_usd_per_hour for p in first.prices if p.market is Market.ON_DEMAND]
    assert len(full) > 5 and full == sorted(full)


@pytest.mark.parametrize(("name", "regions"), [("A10G", ["af-south-2"]), ("Z9", [])])
def test_nothing_is_told_of_what_nobody_sells(
    whole: Catalog, name: str, regions: list[str]
) -> None:
    assert accelerated(whole, name=name, regions=regions) == []


def test_opt_in_regions_count_only_when_they_are_named(whole: Catalog) -> None:
    opt_in = {region.name for region in whole.regions if region.opt_in}
    usual = {price.region for one in accelerated(whole, each=True) for price in one.prices}
    assert not usual & opt_in
    named = accelerated(whole, name="A10G", regions=["ap-east-1"])
    assert {price.region for one in named for price in one.prices} <= {"ap-east-1"}
