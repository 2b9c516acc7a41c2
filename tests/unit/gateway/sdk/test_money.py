"""spz cost: tables, CSV and pictures of what was spent."""

from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.sdk.verbs import money

TOLD = {
    "by": ["account", "day"],
    "rows": [["lab", "1767225600", 1_500_000], ["", "1767312000", 250_000]],
    "micro_usd": 1_750_000,
}


def test_a_table_has_dates_and_a_total() -> None:
    lines = [line.split() for line in money.as_table(TOLD).splitlines()]
    assert lines[0] == ["ACCOUNT", "DAY", "USD"]
    assert lines[1][:2] == ["lab", "2026-01-01"]
    assert lines[2][:2] == ["-", "2026-01-02"]
    assert lines[-1][0] == "TOTAL"


def test_csv_has_dollars_to_the_micro_dollar() -> None:
    assert money.as_csv(TOLD).splitlines() == [
        "account,day,usd",
        "lab,2026-01-01,1.500000",
        "-,2026-01-02,0.250000",
    ]


def test_a_picture_is_an_svg_whose_longest_bar_is_the_dearest() -> None:
    many = {"by": ["user"], "rows": [[f"<u{n}>", 1000 - n] for n in range(30)], "micro_usd": 1}
    drawn = money.picture(many)
    assert drawn.startswith("<svg ")
    assert drawn.count("<rect ") == money.BARS + 1
    assert "&lt;u0&gt;" in drawn
    assert "10 more" in drawn


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(Refused, match="--since: 'soon' is no moment"):
        money.window({"since": "soon", "until": None})
    since, until = money.window({"since": "2026-01-01", "until": "2026-01-02T00:30"})
    assert (since, until) == (1767225600, 1767312000)


class Desk:
    """A counter whose service knows what was spent."""

    @property
    def service(self) -> "Desk":
        return self

    def get(self, route: str, **_: object) -> object:
        del route
        return TOLD

    def post(self, route: str, body: object) -> object:
        raise AssertionError(f"{body} was sent to {route}")


def test_a_picture_that_cannot_be_written_is_told_by_its_path(tmp_path: Path) -> None:
    given = {"since": None, "until": None, "focus": False, "by": [], "user": None, "account": None}
    path = tmp_path / "none" / "x.svg"
    with pytest.raises(Refused, match=r"x\.svg: No such file"):
        money.cost({**given, "svg": str(path)}, Desk())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "said"), [(b"\xff\xfe1,2", "is no text"), (None, "No such file")]
)
def test_a_bill_that_cannot_be_read_is_told_by_its_path(
    tmp_path: Path, found: bytes | None, said: str
) -> None:
    path = tmp_path / "bill.csv"
    if found is not None:
        path.write_bytes(found)
    with pytest.raises(Refused, match=rf"bill\.csv.*{said}"):
        money.reconcile({"words": [str(path)], "post": False}, Desk())  # type: ignore[arg-type]
