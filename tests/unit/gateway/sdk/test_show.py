"""What stands below a table, and what is told of a name that none of its rows has."""

import pytest

from broker.model.errors import Unknown
from gateway.sdk.show import below, matching

TOLD = "price of 2026-10-01, 60 days old: `spz catalog refresh`"


def test_an_old_price_is_told_below_the_table_once() -> None:
    rows: list[dict[str, str | None]] = [{"old_price": None}, {"old_price": TOLD}]
    assert below(rows) == f"\n{TOLD}"
    assert below(rows, said=["zones not known", f"estimated, {TOLD}"]) == ""
    assert below(rows[:1]) == ""


def test_a_name_that_is_none_is_told_as_what_it_was_to_be() -> None:
    with pytest.raises(Unknown, match="no volume 'data'") as told:
        matching([{"name": "other"}], ["data"], what="volume", lists="volumes ls")
    assert told.value.hint == "`spz volumes ls` lists those there are"
