"""Points in time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbatch_shim.grammar.instants import (
    InstantError,
    civil,
    days,
    read_instant,
    show_instant,
    to_utc,
)
from sbatch_shim.grammar.stopped import stopped

NOW = days(2026, 11, 29) * 86400 + 17 * 3600 + 30 * 60
"""2026-11-29T17:30:00 UTC, a Sunday."""


def utc(_: int) -> int:
    return 0


def berlin(at: int) -> int:
    """Summer time of 2026 and 2027, roughly."""
    return 7200 if days(2026, 3, 29) <= at // 86400 < days(2026, 10, 25) else 3600


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("now", "2026-11-29T17:30:00"),
        ("now+60", "2026-11-29T17:31:00"),
        ("now+1hour", "2026-11-29T18:30:00"),
        ("now + 2 hours", "2026-11-29T19:30:00"),
        ("now+2minutes", "2026-11-29T17:32:00"),
        ("now+1day", "2026-11-30T17:30:00"),
        ("now+1w", "2026-12-06T17:30:00"),
        ("now-1hour", "2026-11-29T16:30:00"),
        ("today", "2026-11-29T00:00:00"),
        ("tomorrow", "2026-11-30T00:00:00"),
        ("midnight", "2026-11-30T00:00:00"),
        ("noon", "2026-11-30T12:00:00"),
        ("elevenses", "2026-11-30T11:00:00"),
        ("teatime tomorrow", "2026-11-30T16:00:00"),
        ("16:00", "2026-11-30T16:00:00"),
        ("11:30PM", "2026-11-29T23:30:00"),
        ("11:30 pm", "2026-11-29T23:30:00"),
        ("12:15am", "2026-11-30T00:15:00"),
        ("2030-01-20", "2030-01-20T00:00:00"),
        ("2030-01-20T12:34", "2030-01-20T12:34:00"),
        ("2030-01-20T12:30:05", "2030-01-20T12:30:05"),
        ("2030-01-20 12:30", "2030-01-20T12:30:00"),
        ("2030-01-20-12:30", "2030-01-20T12:30:00"),
        ("012030", "2030-01-20T00:00:00"),
        ("0120", "2027-01-20T00:00:00"),
        ("01/20", "2027-01-20T00:00:00"),
        ("12/20-08:30", "2026-12-20T08:30:00"),
        ("01/20/30", "2030-01-20T00:00:00"),
        ("01.20.30", "2030-01-20T00:00:00"),
        ("2020-01-01", "2020-01-01T00:00:00"),
        ("uts1700000000", "2023-11-14T22:13:20"),
        ("16:00-2030-01-20", "2030-01-20T16:00:00"),
        ("16:00T01/20/30", "2030-01-20T16:00:00"),
        ("2030-01-2016:00", "2030-01-20T16:00:00"),
        ("tomorrow16:00", "2026-11-30T16:00:00"),
        ("noon-tomorrow", "2026-11-30T12:00:00"),
        ("-10:00-01/20", "2027-01-20T10:00:00"),
    ],
)
def test_a_point_in_time_is_read(text: str, shown: str) -> None:
    assert show_instant(read_instant(text, NOW, offset=utc), utc) == shown


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "yesterday",
        "25:00",
        "12:60",
        "13:00pm",
        "now+",
        "now+1x",
        "2030-13-01",
        "utsx",
        "1/2/3/4",
    ],
)
def test_what_is_none_is_refused_with_slurms_words(text: str) -> None:
    with pytest.raises(InstantError) as refused:
        read_instant(text, NOW, offset=utc)
    said = f"Invalid time specification (pos={stopped(text)}): {text}\n"
    assert refused.value.complaint() == said


@pytest.mark.parametrize("text", ["", " ", "\t"])
def test_blanks_are_refused_without_a_word_of_where(text: str) -> None:
    with pytest.raises(InstantError) as refused:
        read_instant(text, NOW, offset=utc)
    assert not refused.value.complaint()


def test_sacct_looks_back_where_begin_looks_ahead() -> None:
    assert show_instant(read_instant("16:00", NOW, offset=utc, past=True), utc).startswith(
        "2026-11-29"
    )


def test_clocks_are_those_of_the_callers_zone() -> None:
    at = read_instant("2026-07-01T12:00", NOW, offset=berlin)
    assert show_instant(at, utc) == "2026-07-01T10:00:00"
    assert show_instant(at, berlin) == "2026-07-01T12:00:00"
    assert show_instant(read_instant("18:00", NOW, offset=berlin), berlin) == "2026-11-30T18:00:00"


@given(st.integers(min_value=-(10**6), max_value=10**6))
def test_days_and_dates_are_inverse(number: int) -> None:
    assert days(*civil(number)) == number


@given(st.integers(min_value=0, max_value=2 * 10**9))
def test_walls_and_instants_are_inverse_outside_the_hour_that_comes_twice(at: int) -> None:
    wall = at + berlin(at)
    again = to_utc(wall, berlin)
    assert again == at or again + berlin(again) == wall


@pytest.mark.parametrize(
    "text",
    [
        *("now+9999999999999weeks", "now-99999999999999999999999999days", "99999999-01-01"),
        *("uts99999999999999999", "0-01-01", "1/1/99999", "now-" + "9" * 5000),
    ],
)
def test_an_instant_beyond_the_calendar_is_none(text: str) -> None:
    with pytest.raises(InstantError):
        read_instant(text, 0, offset=lambda _: 0)
