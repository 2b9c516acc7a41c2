"""How old a figure is, in words."""

import pytest

from broker.optimize.ages import age_days, old, told

NOW = 1_800_000_000
"""2027-01-15."""


@pytest.mark.parametrize(
    ("as_of", "days"),
    [
        ("2027-01-15", 0),
        ("2027-01-14", 1),
        ("2026-01-15", 365),
        ("2026", 379),
        ("", None),
        ("x", None),
    ],
)
def test_age_is_counted_in_days_and_a_year_from_its_first(as_of: str, days: int | None) -> None:
    assert age_days(as_of, NOW) == days


def test_only_what_is_older_than_the_limit_is_said_to_be_old() -> None:
    assert told("2027-01-10", NOW, old_days=5) == "price of 2027-01-10"
    assert told("2027-01-09", NOW, old_days=5).startswith("price of 2027-01-09, 6 days old")
    assert told("", NOW) == ""


def test_nothing_is_said_of_a_price_that_is_not_old() -> None:
    assert old("2027-01-10", NOW, old_days=5) == old("", NOW) == old("x", NOW) == ""
    assert old("2027-01-09", NOW, old_days=5) == told("2027-01-09", NOW, old_days=5)
