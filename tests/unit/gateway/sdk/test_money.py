"""spz cost: tables, CSV and pictures of what was spent."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.query import costpicture
from gateway.query.costwords import FILTERS
from gateway.sdk.verbs import money

TOLD = {
    "by": ["account", "day"],
    "rows": [["lab", "2026-01-01", 1_500_000], ["", "2026-01-02", 250_000]],
    "micro_usd": 1_750_000,
    "old_price": None,
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


def test_that_prices_of_what_runs_are_old_is_said_below_the_table() -> None:
    said = "price of 2025-04-04, 605 days old: `spz catalog refresh`"
    assert money.as_table({**TOLD, "old_price": said}).splitlines()[-1] == said
    assert said not in money.as_csv({**TOLD, "old_price": said})


def test_a_picture_is_an_svg_whose_longest_bar_is_the_dearest() -> None:
    many = {"by": ["user"], "rows": [[f"<u{n}>", 1000 - n] for n in range(30)], "micro_usd": 1}
    drawn = costpicture.picture(many)
    assert drawn.startswith("<svg ")
    assert drawn.count("<rect ") == costpicture.BARS + 1
    assert "&lt;u0&gt;" in drawn
    assert "10 more" in drawn


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(Refused, match="--since: 'soon' is no moment"):
        money.window({"since": "soon", "until": None})
    since, until = money.window({"since": "2026-01-01", "until": "2026-01-02T00:30"})
    assert (since, until) == (1767225600, 1767312000)


class Desk:
    """A counter whose service knows what was spent, and hears what is asked."""

    def __init__(self, **environ: str) -> None:
        self.environ = environ
        self.asked: list[tuple[str, dict[str, object]]] = []

    @staticmethod
    def show(data: object, _given: object, _text: object) -> None:
        assert data is TOLD

    def stream(self, route: str, **how: object) -> list[bytes]:
        self.asked.append((route, how))
        return []

    @property
    def service(self) -> "Desk":
        return self

    def get(self, route: str, **how: object) -> object:
        self.asked.append((route, how))
        return TOLD

    def post(self, route: str, body: object) -> object:
        raise AssertionError(f"{body} was sent to {route}")


def test_a_picture_that_cannot_be_written_is_told_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x.svg"
    with pytest.raises(Refused, match=r"x\.svg: No such file"):
        cost(Desk(), svg=str(path))


NOTHING = {
    **dict.fromkeys(("since", "until", "zone", "svg", "output", *FILTERS)),
    **dict.fromkeys(("focus", "csv", "json"), False),
    "by": [],
}


def cost(desk: Desk, **given: object) -> int:
    return money.cost({**NOTHING, **given}, desk)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [{"focus": True}, {"csv": True}, {"json": True}, {}])
def test_every_filter_goes_with_every_form(form: dict[str, object]) -> None:
    desk = Desk()
    chosen = {word: f"a{word}" for word in FILTERS}
    cost(desk, **form, **chosen)
    ((_, how),) = desk.asked
    assert {word: how[word] for word in FILTERS} == chosen


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"focus": True, "csv": True}, "--focus and --csv do not go together"),
        ({"svg": "x", "json": True}, "--svg and --json do not go together"),
        ({"focus": True, "by": ["user"]}, "--by does not go with --focus"),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "nothing lies between 2026-01-02T00:00"),
        ({"since": "2026-01-02", "until": "2026-01-02T00:59"}, "nothing lies between"),
        ({"zone": "Mars/Olympus"}, "option --zone: no time zone 'Mars/Olympus'"),
        ({"zone": "Mars/Olympus", "focus": True}, "option --zone: no time zone"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(given: dict[str, object], said: str) -> None:
    desk = Desk()
    with pytest.raises(Refused, match=said):
        cost(desk, **given)
    assert desk.asked == []


@pytest.mark.parametrize(
    ("zone", "since", "hours"),
    [
        # a day of 23 hours, one of 25, usual ones
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Europe/Berlin", "2026-10-26", 24),
        ("America/New_York", "2026-11-01", 25),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25", 25),
        ("UTC", "2026-10-25", 24),
    ],
)
def test_moments_are_those_of_the_zone_over_a_change_of_clocks_too(
    zone: str, since: str, hours: int
) -> None:
    until = (date.fromisoformat(since) + timedelta(days=1)).isoformat()
    for desk, given in ((Desk(), {"zone": zone}), (Desk(TZ=zone), {})):
        cost(desk, since=since, until=until, **given)
        ((_, how),) = desk.asked
        assert (int(str(how["until"])) - int(str(how["since"]))) == hours * 3600
        assert how["zone"] == zone


@pytest.mark.parametrize("tz", ["", ":/etc/localtime", "Mars/Olympus"])
def test_a_variable_that_names_no_zone_is_passed_over(tz: str) -> None:
    desk = Desk(TZ=tz)
    cost(desk)
    ((_, how),) = desk.asked
    assert how["zone"] == "UTC"


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


def test_data_to_regions_is_told_below_and_only_where_the_bill_has_it_otherwise() -> None:
    row = {"region": "us-east-1", "billed": 250_000, "posted": 200_000, "missing": 50_000}
    assert money.traffic({"data": []}) == []
    head, told = money.traffic({"data": [row]})
    assert head.startswith("data to regions")
    assert told.splitlines()[1].split()[0] == "us-east-1"
