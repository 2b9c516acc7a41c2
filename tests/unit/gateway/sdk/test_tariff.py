"""spz catalog rates."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.model.rates import UNITS
from broker.optimize.bundled import packaged
from gateway.config.catalogs import Shelf
from gateway.sdk.verbs.tariff import rates


class Desk:
    """Takes what is shown."""

    def __init__(self, home: Path) -> None:
        self.paths = SimpleNamespace(home=home)
        self.data: Any = None
        self.text = ""

    def show(self, data: Any, given: Any, text: Any) -> None:
        self.data, self.text = data, text()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = tmp_path / "home"
    home.mkdir()
    fresh = ["gp3", "sa-east-1", "", 152_000, "2999-01-01", "price-list"]
    Shelf(home).save({**packaged(), "rates": [fresh]})
    return Desk(home)


def test_rates_of_a_region_are_its_own_where_they_were_read_and_usual_ones_where_not(
    desk: Desk,
) -> None:
    assert rates({"words": ["sa-east-1"]}, desk) == 0  # type: ignore[arg-type]
    told = {row["item"]: row for row in desk.data["rates"]}
    assert told.keys() == UNITS.keys()
    gp3 = told["gp3"]
    assert (gp3["micro_usd"], gp3["region"], gp3["source"]) == (152_000, "sa-east-1", "price-list")
    assert (gp3["old_price"], told["address"]["region"]) == (None, "")
    assert "gp3              sa-east-1   -   0.152  GiB-month" in desk.text
    assert desk.text.splitlines()[-1].startswith("rate of 2025, ")


def test_without_a_region_all_are_told_with_what_goes_between_two(desk: Desk) -> None:
    rates({"words": []}, desk)  # type: ignore[arg-type]
    pairs = {(row["region"], row["to"]) for row in desk.data["rates"] if row["to"]}
    assert ("us-east-1", "us-east-2") in pairs
    rates({"words": ["us-east-1"]}, desk)  # type: ignore[arg-type]
    sent = [row for row in desk.data["rates"] if row["item"] == "between-regions"]
    assert [(row["to"], row["micro_usd"]) for row in sent] == [("", 20_000), ("us-east-2", 10_000)]
