"""What stands below a table: the age of its oldest price, unless that is said already."""

from gateway.sdk.show import below

TOLD = "price of 2026-10-01, 60 days old: `spz catalog refresh`"


def test_an_old_price_is_told_below_the_table_once() -> None:
    rows: list[dict[str, str | None]] = [{"old_price": None}, {"old_price": TOLD}]
    assert below(rows) == f"\n{TOLD}"
    assert below(rows, said=["zones not known", f"estimated, {TOLD}"]) == ""
    assert below(rows[:1]) == ""
