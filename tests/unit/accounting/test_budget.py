"""Budgets: windows in their time zone, whom they are for, how they stand."""

from datetime import UTC, datetime

import pytest

from accounting.budget import Budget, Scope, Standing, Window, begins, ends


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def budget(**more: object) -> Budget:
    return Budget(**{"scope": Scope.ACCOUNT, "name": "lab", "micro_usd": 100, **more})  # type: ignore[arg-type]


WINDOWS = (
    # window, zone, now, begin, end (UTC)
    (Window.DAY, "UTC", "2026-03-05T10:00", "2026-03-05T00:00", "2026-03-06T00:00"),
    (Window.DAY, "America/New_York", "2026-03-05T03:00", "2026-03-04T05:00", "2026-03-05T05:00"),
    (Window.DAY, "Europe/Berlin", "2026-03-29T10:00", "2026-03-28T23:00", "2026-03-29T22:00"),
    (Window.DAY, "Europe/Berlin", "2026-10-25T01:30", "2026-10-24T22:00", "2026-10-25T23:00"),
    (Window.DAY, "America/Santiago", "2026-09-06T12:00", "2026-09-06T04:00", "2026-09-07T03:00"),
    (Window.DAY, "America/Santiago", "2026-04-05T03:30", "2026-04-04T03:00", "2026-04-05T04:00"),
    (Window.MONTH, "America/Santiago", "2026-04-05T03:30", "2026-04-01T03:00", "2026-05-01T04:00"),
    (Window.MONTH, "UTC", "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
    (Window.MONTH, "Europe/Berlin", "2026-03-31T22:30", "2026-03-31T22:00", "2026-04-30T22:00"),
    (Window.QUARTER, "UTC", "2026-05-20T00:00", "2026-04-01T00:00", "2026-07-01T00:00"),
    (Window.QUARTER, "Asia/Tokyo", "2026-12-31T15:00", "2026-12-31T15:00", "2027-03-31T15:00"),
)


@pytest.mark.parametrize(("window", "zone", "now", "begin", "end"), WINDOWS)
def test_a_window_begins_and_ends_in_its_own_time_zone(
    window: Window, zone: str, now: str, begin: str, end: str
) -> None:
    made = budget(window=window, zone=zone)
    assert (begins(made, at(now)), ends(made, at(now))) == (at(begin), at(end))


def test_a_total_never_ends() -> None:
    assert (begins(budget(window=Window.TOTAL), 5), ends(budget(window=Window.TOTAL), 5)) == (
        0,
        None,
    )


@pytest.mark.parametrize(
    ("spent", "ahead", "standing"),
    [(0, 0, "ok"), (50, 29, "ok"), (50, 30, "warn"), (99, 0, "warn"), (60, 40, "full")],
)
def test_what_is_promised_counts_as_spent(spent: int, ahead: int, standing: str) -> None:
    assert budget().standing(spent, ahead) is Standing(standing)


def test_an_accounts_budget_pays_for_all_below_it_others_for_their_own() -> None:
    how = {"accounts": ["sub", "lab", "root"], "user": "alice", "qos": "high", "partition": "ec2"}
    assert budget().covers(**how)  # type: ignore[arg-type]
    assert not budget(name="other").covers(**how)  # type: ignore[arg-type]
    for scope, name in (("user", "alice"), ("qos", "high"), ("partition", "ec2")):
        assert budget(scope=Scope(scope), name=name).covers(**how)  # type: ignore[arg-type]
        assert not budget(scope=Scope(scope), name="x").covers(**how)  # type: ignore[arg-type]
