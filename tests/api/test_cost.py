"""What was spent, asked of a ledger on disk: words, filters, days of a zone, who may."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Sampled, Why
from accounting.tres import Tres, gres_counts
from gateway.api.app import App, build_app
from gateway.api.exports import exports
from gateway.api.money import money
from gateway.api.zone import LATEST
from gateway.store.sql import open_store
from tests.api.asking import ask
from tests.unit.gateway.api.office import SITE, Office
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.store.conftest import Standing

HOUR = 3600
MIDNIGHT = int(datetime(2026, 10, 25, tzinfo=UTC).timestamp())
"""Clocks in Europe go back an hour at 01:00 UTC of this day."""


def charge(number: int, hour: int, cost: int, **more: object) -> Entry:
    since = MIDNIGHT + hour * HOUR
    made = Entry(
        key=f"k{number}", at=since + 60, since=since, kind=Kind.CHARGE, why=Why.RUN,
        job=JobId(number), attempt=1, account=AccountName("chem"), user=UserName("alice"),
        machine="ec2-1.1", qos="normal", partition="ec2", instance_type="m5.large",
        region="eu-west-1", market="spot", cost=MicroUsd(cost),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


ENTRIES = (
    charge(1, -3, 1_000_000),
    charge(2, -2, 2_000_000, user=UserName("bob"), instance_type="p5", market="on-demand"),
    charge(3, 22, 4_000_000, account=AccountName("bio"), region="us-east-1"),
    charge(4, 23, 8_000_000, partition="debug", qos="high"),
    charge(5, 46, 16_000_000, why=Why.BOOT),
    charge(
        5, 22, 0, key="u1", kind=Kind.STEP, why=Why.USAGE, machine=None, step="0",
        billing_seconds=20,
        tres_seconds=Tres(2, 100, 1, gres_counts({"gpu:a10g": 1})).times(4),
        sampled=Sampled((("energy", 0), ("pages", 2), ("vmem", 4096)), (("fs/disk", 1),)),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    path: Path = tmp_path_factory.mktemp("cost") / "state.db"
    store = open_store(str(path), clock=Standing())
    with store.transaction(epoch=1) as tx:
        tx.post(ENTRIES)
    store.roll_up(most=3)
    office = Office(SITE)
    office.desk.history = store.history
    yield build_app(office.desk, {}, log=Log(), routers=[money(), exports()])
    store.close()


def get(app: App, route: str, *, uid: int = 0, **how: Any) -> httpx.Response:
    window = {"since": MIDNIGHT - 48 * HOUR, "until": MIDNIGHT + 72 * HOUR}
    return ask(app, "GET", route, uid=uid, params={**window, **how})


M = 1_000_000
TOLD: tuple[tuple[dict[str, Any], list[list[Any]]], ...] = (
    ({}, [["chem", 27 * M], ["bio", 4 * M]]),
    ({"by": "user"}, [["alice", 29 * M], ["bob", 2 * M]]),
    ({"by": "type,market"}, [["m5.large", "spot", 29 * M], ["p5", "on-demand", 2 * M]]),
    ({"by": "why", "user": "alice"}, [["boot", 16 * M], ["run", 13 * M]]),
    ({"by": "region", "account": "bio"}, [["us-east-1", 4 * M]]),
    ({"by": "partition", "qos": "high"}, [["debug", 8 * M]]),
    ({"by": "user", "type": "p5", "market": "on-demand"}, [["bob", 2 * M]]),
    ({"by": "user", "account": "bio", "user": "bob"}, []),
    ({"by": "day"}, [["2026-10-24", 3 * M], ["2026-10-25", 12 * M], ["2026-10-26", 16 * M]]),
    (
        {"by": "day", "zone": "Europe/Berlin"},
        [["2026-10-24", M], ["2026-10-25", 6 * M], ["2026-10-26", 24 * M]],
    ),
    (
        {"by": "day", "zone": "UTC+2"},
        [["2026-10-24", 3 * M], ["2026-10-25", 12 * M], ["2026-10-26", 16 * M]],
    ),
    (
        {"by": "user,day", "zone": "Asia/Tokyo"},
        [["bob", "2026-10-25", 2 * M], ["alice", "2026-10-25", M], ["alice", "2026-10-26", 12 * M],
         ["alice", "2026-10-27", 16 * M]],
    ),
    ({"until": MIDNIGHT}, [["chem", 3 * M]]),
    ({"since": MIDNIGHT + 60 * HOUR}, []),
)  # fmt: skip


@pytest.mark.parametrize(("how", "rows"), TOLD)
def test_costs_are_told_by_what_is_asked(app: App, how: dict[str, Any], rows: list[Any]) -> None:
    answer = get(app, "/v1/cost", **how)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["rows"] == rows
    assert told["micro_usd"] == sum(row[-1] for row in rows)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"by": "colour"}, "costs are not told by 'colour'"),
        ({"user": "carol"}, "nothing was spent by user 'carol', nor is there one"),
        ({"account": "Chem"}, "nothing was spent by account 'Chem'"),
        ({"region": "eu-west-9"}, "known: eu-west-1, us-east-1"),
        ({"zone": "Mars/Olympus"}, "no time zone 'Mars/Olympus'"),
        ({"zone": "../etc/passwd"}, "no time zone"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_what_there_is(
    app: App, how: dict[str, Any], said: str
) -> None:
    answer = get(app, "/v1/cost", **how)
    assert answer.status_code == 400
    assert said in json.dumps(answer.json()).replace('\\"', '"')


def test_a_name_that_is_configured_and_spent_nothing_is_no_mistake(app: App) -> None:
    answer = get(app, "/v1/cost", partition="debug", user="bob")
    assert (answer.status_code, answer.json()["rows"]) == (200, [])


@pytest.mark.parametrize(
    ("how", "jobs"),
    [
        ({}, "12345"),
        ({"user": "bob"}, "2"),
        ({"account": "bio"}, "3"),
        ({"partition": "debug", "qos": "high", "market": "spot"}, "4"),
        ({"region": "us-east-1", "type": "m5.large"}, "3"),
        ({"until": MIDNIGHT}, "12"),
    ],
)
def test_every_filter_is_one_of_the_export_too(app: App, how: dict[str, Any], jobs: str) -> None:
    answer = get(app, "/v1/focus", **how)
    found = csv.DictReader(answer.text.splitlines())
    assert "".join(row["x_SlurmJobId"] for row in found) == jobs


def test_the_export_is_for_administrators_and_a_filter_it_has_not_is_refused(app: App) -> None:
    assert get(app, "/v1/focus", uid=2001).status_code == 403
    assert get(app, "/v1/focus", by="user").status_code == 422
    assert get(app, "/v1/focus", user="carol").status_code == 400


def lines(app: App, **how: Any) -> list[dict[str, Any]]:
    answer = get(app, "/v1/ledger", **how)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize(
    ("how", "keys"),
    [
        ({}, ["k1", "k2", "k3", "u1", "k4", "k5"]),
        ({"user": "bob"}, ["k2"]),
        ({"account": "bio"}, ["k3"]),
        ({"job": 5}, ["k5", "u1"]),
        ({"job": 5, "since": MIDNIGHT, "until": MIDNIGHT}, ["k5", "u1"]),
        ({"job": 77}, []),
        ({"until": MIDNIGHT}, ["k1", "k2"]),
        ({"uid": 2001}, ["k1", "k3", "u1", "k4", "k5"]),
        ({"uid": 2001, "user": "bob"}, []),
        ({"uid": 2002}, ["k2"]),
    ],
)
def test_entries_are_told_to_administrators_and_to_whose_they_are(
    app: App, how: dict[str, Any], keys: list[str]
) -> None:
    assert sorted(line["key"] for line in lines(app, **how)) == sorted(keys)


@pytest.mark.parametrize("route", ["/v1/cost", "/v1/focus", "/v1/ledger"])
@pytest.mark.parametrize("until", [-1, LATEST + 1, 10**30])
def test_a_time_that_has_no_date_is_refused(app: App, route: str, until: int) -> None:
    assert get(app, route, until=until).status_code == 422


def test_an_entry_of_use_has_every_tres_by_name(app: App) -> None:
    (used,) = [line for line in lines(app) if line["key"] == "u1"]
    assert used["tres_seconds"] == {
        "cpu": 8, "mem": 400, "node": 4, "gres/gpu": 4, "gres/gpu:a10g": 4, "billing": 20,
        "energy": 0,
    }  # fmt: skip
    assert (used["job"], used["attempt"], used["step"]) == (5, 1, "0")
    assert used["sampled"] == {"energy": 0, "pages": 2, "vmem": 4096}
    assert used["written"] == {"fs/disk": 1}
    assert [line["tres_seconds"] for line in lines(app, account="bio")] == [{}]
