"""The bundled table: small, dated, and what its builder makes of the data."""

import os
import runpy
from pathlib import Path

import pytest

from broker.model.offer import Market
from broker.optimize.bundled import catalog_of
from broker.optimize.catalog import Catalog
from broker.optimize.gpus import gpu_key, gres_type, nominal_gb
from broker.optimize.shelf import shelve

ROOT = Path(__file__).parents[4]
SHARED = Path(os.environ.get("SKYPURZA_SHARED") or ROOT.parent / "shared")
TABLE = ROOT / "broker" / "optimize" / "data" / "ec2.json.z"


def test_the_table_is_below_half_a_megabyte() -> None:
    assert TABLE.stat().st_size < 500_000


def test_both_markets_are_there_with_zones_and_days(whole: Catalog) -> None:
    offers = list(whole)
    assert {offer.market for offer in offers} == set(Market)
    assert all(offer.as_of for offer in offers)
    assert all(len(offer.zones) == 1 for offer in offers if offer.market is Market.SPOT)
    on_demand = [o for o in offers if o.market is Market.ON_DEMAND]
    assert len({(o.instance_type, o.region) for o in on_demand}) == len(on_demand)
    assert not any(offer.estimate for offer in on_demand)


def test_no_spot_offer_is_free_or_twice_in_a_zone(whole: Catalog) -> None:
    spot = [offer for offer in whole if offer.market is Market.SPOT]
    assert len({(offer.instance_type, offer.zones) for offer in spot}) == len(spot)
    assert all(offer.micro_usd_per_hour > 0 for offer in spot)


def test_an_offer_tells_all_that_a_constraint_can_name(whole: Catalog) -> None:
    offer = next(o for o in whole if o.instance_type == "g5.xlarge" and o.region == "eu-west-1")
    assert {
        "g5",
        "g5.xlarge",
        "eu-west-1",
        "euw1-az1",
        "x86_64",
        "ondemand",
        "a10g",
        "nvme",
    } <= set(offer.features)
    assert offer.gres == (("gpu", 1), ("gpu:a10g", 1))
    assert {word.lower() for word in offer.features} <= whole.vocabulary()


def test_lines_of_a_shape_stand_cheapest_first(whole: Catalog) -> None:
    for lines in whole.prices.values():
        for number in range(len(whole.shapes)):
            prices = list(lines.price[lines.start[number] : lines.start[number + 1]])
            assert prices == sorted(prices)


def test_a_catalogue_is_its_own_shelf(whole: Catalog) -> None:
    assert shelve(whole) is whole


def test_a_shelf_gives_the_same_offers_back(small: Catalog) -> None:
    offers = list(small)
    assert sorted(map(repr, shelve(offers))) == sorted(map(repr, offers))


def test_a_table_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="this version reads 1"):
        catalog_of({"format": 2}, "local")


def test_a_type_is_found_by_name(whole: Catalog) -> None:
    shape = whole.shape("G5.xlarge")
    assert shape is not None
    assert (shape.cpus, shape.mem_mib, shape.gpu_name) == (4, 16384, "A10G")
    assert whole.shape("g5.tiny") is None


def test_the_least_price_of_a_type_is_told_by_market(whole: Catalog) -> None:
    assert whole.least_price("g5.xlarge") == 1_006_000
    assert (whole.least_price("g5.xlarge", Market.SPOT) or 0) < 1_006_000
    assert whole.least_price("p5e.48xlarge") is None


@pytest.mark.parametrize(
    "text, key",
    [
        ("A100-80GB", "a10080gb"),
        ("a100_80gb", "a10080gb"),
        ("A100-40GB", "a100"),
        ("H100-80GB", "h100"),
        ("Tesla-T4", "t4"),
        ("NVIDIA L40S", "l40s"),
    ],
)
def test_spellings_of_a_gpu_are_one(text: str, key: str) -> None:
    assert gpu_key(text) == key


def test_gres_types_have_no_blanks_or_signs() -> None:
    assert gres_type("RTX PRO 4500") == "rtxpro4500"
    assert gres_type("Virtex UltraScale+ (VU47P)") == "virtexultrascalevu47p"


def test_the_figure_on_the_box_is_told() -> None:
    assert [nominal_gb(mib) for mib in (22888, 16384, 45776, 144384)] == [24, 16, 48, 141]


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the data directory is not here")
def test_the_table_is_what_its_builder_makes_of_the_data(tmp_path: Path) -> None:
    builder = runpy.run_path(str(ROOT / "docs" / "scripts" / "build_catalog.py"))
    output = tmp_path / "ec2.json.z"
    assert builder["main"]([str(SHARED / "data"), str(output)]) == 0
    assert output.read_bytes() == TABLE.read_bytes()


def test_spot_may_come_to_what_the_type_costs_on_demand_in_its_region(whole: Catalog) -> None:
    on_demand = {
        (offer.instance_type, offer.region): offer.micro_usd_per_hour
        for offer in whole
        if offer.market is Market.ON_DEMAND
    }
    for offer in whole:
        there = on_demand.get((offer.instance_type, offer.region), 0)
        most = there if offer.market is Market.SPOT else 0
        assert offer.on_demand_micro_usd == most
        assert offer.dearest == max(most, offer.micro_usd_per_hour)
