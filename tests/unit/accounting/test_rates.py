"""Prices and times become whole micro-dollars, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.rates import (
    ON_DEMAND,
    OWNED,
    SPOT,
    Price,
    Terms,
    bill,
    cumulative,
    dollars,
    in_force,
    share,
)

START = 1_700_000_000
DOLLAR = (Price(0, 1_000_000),)
WEIGHTS = st.lists(st.fractions(min_value=0, max_value=1, max_denominator=512), min_size=1)


@pytest.mark.parametrize(
    ("prices", "start", "until", "cost"),
    [
        (DOLLAR, 0, 3600, 1_000_000),
        (DOLLAR, 100, 100, 0),
        (DOLLAR, 0, 1, 277),
        (DOLLAR, 0, 18, 5000),
        ((Price(500, 3600),), 0, 1000, 1000),
        ((Price(0, 3600), Price(100, 7200)), 0, 150, 200),
        ((Price(0, 3600), Price(100, 7200)), 120, 150, 60),
        ((Price(0, 3600), Price(100, 7200), Price(110, 0)), 90, 500, 30),
        ((Price(0, 0),), 0, 10**9, 0),
    ],
)
def test_each_second_costs_what_the_price_of_that_second_says(prices, start, until, cost):
    assert cumulative(prices, start, until) == cost


def test_a_machine_without_a_price_is_not_taken_for_free():
    with pytest.raises(ValueError, match="without a price"):
        cumulative((), 0, 10)


@given(st.integers(0, 10**8), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_longer_run_never_costs_less(price, first, second):
    prices = (Price(0, price),)
    assert cumulative(prices, 0, first) <= cumulative(prices, 0, first + second)


@pytest.mark.parametrize(
    ("terms", "seconds", "interrupted", "billed_seconds"),
    [
        (ON_DEMAND, 0, False, 60),
        (ON_DEMAND, 59, False, 60),
        (ON_DEMAND, 61, False, 61),
        (ON_DEMAND, 61, True, 61),
        (SPOT, 10, False, 60),
        (SPOT, 10, True, 0),
        (SPOT, 3599, True, 0),
        (SPOT, 3600, True, 3600),
        (SPOT, 3599, False, 3599),
        (OWNED, 10, False, 10),
        (Terms(3600), 10, False, 3600),
    ],
)
def test_the_bill_has_a_minimum_and_forgives_an_early_interruption(
    terms, seconds, interrupted, billed_seconds
):
    prices = (Price(0, 3_600_000),)
    billed = bill(prices, terms, start=50, end=50 + seconds, interrupted=interrupted)
    assert billed == billed_seconds * 1000


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [
        (10, [1, 1, 1], [4, 3, 3]),
        (10, [1, 2], [3, 7]),
        (-10, [1, 1, 1], [-4, -3, -3]),
        (1, [Fraction(1, 8), Fraction(7, 8)], [0, 1]),
        (7, [0, 0], [4, 3]),
        (0, [3], [0]),
        (5, [0, 1], [0, 5]),
    ],
)
def test_the_largest_remainder_gets_what_is_left(amount, weights, parts):
    assert share(amount, weights) == parts


@given(st.integers(-(10**12), 10**12), WEIGHTS)
def test_parts_add_up_and_none_is_a_micro_dollar_from_its_due(amount, weights):
    parts = share(amount, weights)
    whole = sum(weights)
    assert sum(parts) == amount
    if whole:
        dues = [amount * weight / whole for weight in weights]
        assert all(abs(part - due) < 1 for part, due in zip(parts, dues, strict=True))


@pytest.mark.parametrize("weights", [[], [1, -1]])
def test_no_weights_and_negative_ones_are_refused(weights):
    with pytest.raises(ValueError, match="cannot share"):
        share(10, weights)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (0, "0.000000"),
        (1, "0.000001"),
        (1_250_000, "1.250000"),
        (-1, "-0.000001"),
        (-12_000_001, "-12.000001"),
    ],
)
def test_money_is_shown_in_dollars_with_six_decimals(cost, text):
    assert dollars(cost) == text


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ([], [(START, 9)]),
        ([(START - 99, 5), (START - 9, 7)], [(START, 7)]),
        ([(START, 7)], [(START, 7)]),
        ([(START + 1, 7)], [(START, 9), (START + 60, 7)]),
        ([(START + 60, 7)], [(START, 9), (START + 60, 7)]),
        ([(START + 61, 7), (START + 90, 8)], [(START, 9), (START + 120, 8)]),
        ([(START + 90, 8), (START + 61, 7)], [(START, 9), (START + 120, 8)]),
        ([(START + 1, 9), (START + 61, 9), (START + 130, 8)], [(START, 9), (START + 180, 8)]),
        ([(START + 1, 7), (START + 61, 9)], [(START, 9), (START + 60, 7), (START + 120, 9)]),
    ],
)
def test_a_price_holds_for_a_period_from_when_the_machine_runs(told, wanted):
    prices = in_force([Price(*one) for one in told], Terms(price_seconds=60), Price(START, 9))
    assert [(price.since, price.micro_usd_per_hour) for price in prices] == wanted
