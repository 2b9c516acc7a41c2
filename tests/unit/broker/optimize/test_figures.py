"""Figures that were read, laid over a catalogue: what is new, what stays, what is a guess."""

from typing import Any

import pytest

from broker.model.offer import Market, Offer
from broker.optimize.bundled import catalog_of
from broker.optimize.figures import RegionFigures, refreshed
from tests.unit.broker.optimize.conftest import cut, unpacked

DAY = "2026-11-29"
BASE = cut(unpacked())
ZONES = ("use1-az1", "use1-az4")
NEW_TYPE = {
    "name": "z9.large",
    "cpus": 2,
    "mem_mib": 4096,
    "arch": "x86_64",
    "gpu": "",
    "gpus": 0.0,
    "gpu_mem_mib": 0,
    "tmp_mib": 0,
    "words": "intel",
}


def figures(**fields: Any) -> RegionFigures:
    usual: dict[str, Any] = {
        "region": "us-east-1",
        "opt_in": False,
        "zones": ZONES,
        "offered": {"g5.xlarge": ZONES, "c6a.xlarge": ZONES[:1], "z9.large": ZONES},
        "types": {"z9.large": NEW_TYPE},
        "on_demand": {"g5.xlarge": 900_000, "z9.large": 70_000},
        "spot": {("g5.xlarge", "use1-az4"): 300_000},
    }
    return RegionFigures(**{**usual, **fields})


def offers(name: str, region: str = "us-east-1", **fields: Any) -> dict[Market, list[Offer]]:
    read = [] if fields.pop("nothing", False) else [figures(**fields)]
    made = catalog_of(refreshed(BASE, read, DAY), "x")
    found = [one for one in made if (one.instance_type, one.region) == (name, region)]
    return {market: [one for one in found if one.market is market] for market in Market}


def test_a_price_that_was_read_replaces_the_old_one_and_bears_its_day() -> None:
    (full,) = offers("g5.xlarge")[Market.ON_DEMAND]
    assert (full.micro_usd_per_hour, full.as_of, full.zones) == (900_000, DAY, ZONES)


def test_a_spot_price_that_was_read_stands_for_its_zone_alone() -> None:
    (quoted,) = offers("g5.xlarge")[Market.SPOT]
    assert (quoted.micro_usd_per_hour, quoted.zones, quoted.as_of) == (300_000, ZONES[1:], DAY)


def test_where_no_spot_price_was_read_the_known_saving_is_taken_off_the_new_price() -> None:
    before, *_ = offers("c6a.xlarge", nothing=True)[Market.SPOT]
    (full,) = offers("c6a.xlarge", nothing=True)[Market.ON_DEMAND]
    (guess,) = offers("c6a.xlarge", on_demand={"c6a.xlarge": 300_000})[Market.SPOT]
    share = before.micro_usd_per_hour / full.micro_usd_per_hour
    assert guess.micro_usd_per_hour == pytest.approx(300_000 * share, abs=2)
    assert guess.estimate and guess.as_of == before.as_of < DAY


def test_a_type_that_no_catalogue_had_is_there() -> None:
    (full,) = offers("z9.large")[Market.ON_DEMAND]
    assert (full.cpus, full.family, full.micro_usd_per_hour) == (2, "z9", 70_000)


def test_what_the_price_list_does_not_tell_is_offered_unpriced() -> None:
    assert offers("c6a.xlarge")[Market.ON_DEMAND] == []
    made = catalog_of(refreshed(BASE, [figures()], DAY), "x")
    number = next(n for n, shape in enumerate(made.shapes) if shape.name == "c6a.xlarge")
    region = [of.name for of in made.regions].index("us-east-1")
    assert made.unpriced[number] >> region & 1


def test_without_an_answer_of_the_price_list_known_prices_keep_their_day() -> None:
    (before,) = offers("g5.xlarge", nothing=True)[Market.ON_DEMAND]
    (after,) = offers("g5.xlarge", on_demand=None)[Market.ON_DEMAND]
    assert (after.micro_usd_per_hour, after.as_of) == (before.micro_usd_per_hour, before.as_of)
    assert after.zones == ZONES


def test_what_is_offered_no_more_is_gone_and_other_regions_stay_as_they_were() -> None:
    assert offers("g5.xlarge", offered={}) == {Market.ON_DEMAND: [], Market.SPOT: []}
    assert offers("g5.xlarge", "eu-west-1") == offers("g5.xlarge", "eu-west-1", nothing=True)


def test_laying_nothing_over_changes_nothing() -> None:
    before, after = catalog_of(BASE, "x"), catalog_of(refreshed(BASE, [], DAY), "x")
    assert list(after) == list(before)
