"""Sums of the ledger by hour and day: the same before and after entries were summed up."""

# ruff: noqa: E501 - rows and drawn things stay on one line

from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Payer, Why, usage
from accounting.rollup import DAY, HOUR, windows
from accounting.tres import Tres
from broker.model.tally import Charge, Party
from gateway.store.place import connect, place
from gateway.store.schema import MIGRATIONS
from gateway.store.sql import SqlStore, open_store
from tests.unit.gateway.store.conftest import Standing

T0 = 1_700_000_000 - 1_700_000_000 % DAY


def used(job: int, user: str, since: int, until: int, cpus: int = 2) -> Entry:
    payer = Payer(AccountName("lab"), UserName(user), JobId(job), 1, qos="normal", partition="p")
    (entry,) = usage(
        payer,
        Tres(cpus, 512, 1, (("gpu", 1),)),
        billing=cpus,
        started=since,
        ended=until,
    )
    return replace(entry, factor_millionths=500_000)


def charge(job: int, user: str, since: int, cost: int) -> Entry:
    return Entry(
        key=f"{job}/c", at=since + 60, since=since, kind=Kind.CHARGE, why=Why.RUN, job=JobId(job), attempt=1,
        account=AccountName("lab"), user=UserName(user), machine="n.1", qos="normal", partition="p",
        instance_type="m5.large", region="eu-west-1", market="spot", cost=MicroUsd(cost),
    )  # fmt: skip


def post(store: SqlStore, *entries: Entry) -> None:
    with store.transaction(epoch=1) as tx:
        tx.post(entries)


def test_use_is_split_over_hours_and_days_to_the_second(store: SqlStore) -> None:
    post(store, used(1, "alice", T0 - 1800, T0 + 2 * DAY + 100))
    for summed in (1, 0):
        found = store.history.used(since=T0, until=T0 + HOUR, by=("user", "tres"))
        assert found["alice", "cpu"] == 2 * HOUR
        assert found["alice", "charged"] == HOUR
        assert found["alice", "gres/gpu"] == HOUR
        whole = store.history.used(
            since=T0 - DAY, until=T0 + 3 * DAY, by=("tres",), tres=("cpu", "jobs")
        )
        assert whole == {("cpu",): 2 * (1800 + 2 * DAY + 100), ("jobs",): 1}
        assert store.roll_up() == summed
    assert store.roll_up() == 0


def test_what_is_posted_twice_is_summed_up_once(store: SqlStore) -> None:
    entry = used(1, "alice", T0, T0 + 60)
    post(store, entry)
    store.roll_up()
    post(store, entry, used(2, "alice", T0, T0 + 60))
    store.roll_up()
    assert store.history.used(since=T0, until=T0 + HOUR, by=("user",), tres=("cpu",)) == {
        ("alice",): 240
    }


def test_money_is_summed_by_what_was_rented(store: SqlStore) -> None:
    post(store, charge(1, "alice", T0, 100), charge(2, "bob", T0 + HOUR, 50))
    store.roll_up()
    post(store, charge(3, "bob", T0 + DAY, 7))
    spent = store.history.spent(
        since=T0, until=T0 + 2 * DAY, by=("user", "instance_type", "market")
    )
    assert spent == {("alice", "m5.large", "spot"): 100, ("bob", "m5.large", "spot"): 57}


def test_what_counts_as_used_is_kept_to_the_last_bit(store: SqlStore) -> None:
    alice, bob = Party("alice", "lab", "normal", "p"), Party("b\\ob", "lab", "", "")
    first = {alice: Charge(T0, {"cpu": 0.1 + 0.2}, {"gres/gpu": -1e-17}, {"wall": 3e9})}
    other = {bob: Charge(T0, {"billing": 1 / 3})}
    later = {alice: Charge(T0 + 9, {"cpu": 7.0})}
    for charges in (first, other, later):
        with store.transaction(epoch=1) as tx:
            tx.save_charges(charges)
    assert store.kept_charges() == {**other, **later}


def test_what_was_used_comes_back_by_party_and_day(store: SqlStore) -> None:
    post(store, used(1, "alice", T0, T0 + 60))
    found = {(party, tres): (hour, n) for party, tres, hour, n in store.charges(T0 - DAY)}
    assert found[Party("alice", "lab", "normal", "p"), "cpu"] == (T0, 120)


@given(since=st.integers(T0, T0 + 5 * DAY), length=st.integers(0, 5 * DAY))
def test_windows_cover_every_hour_once(since: int, length: int) -> None:
    until = since + length
    hours = [
        h
        for span, a, b in windows(since, until)
        for s in range(a, b, span)
        for h in range(s, s + span, HOUR)
    ]
    assert hours == list(range(since - since % HOUR, until - until % HOUR, HOUR))


@settings(max_examples=15, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 3 * DAY), st.integers(1, DAY), st.integers(1, 9)),
        min_size=1,
        max_size=12,
    ),
    cut=st.integers(0, 12),
)
def test_sums_are_those_of_all_entries_however_far_they_are_summed_up(
    drawn: list[tuple[int, int, int]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = open_store(str(tmp_path_factory.mktemp("s") / "state.db"), clock=Standing())
    entries = [used(n, "alice", T0 + a, T0 + a + b, c) for n, (a, b, c) in enumerate(drawn)]
    post(store, *entries[:cut])
    store.roll_up(most=3)
    post(store, *entries[cut:])
    found = store.history.used(since=T0 - DAY, until=T0 + 9 * DAY, by=("tres",), tres=("cpu",))
    assert found == {("cpu",): sum(b * c for _, b, c in drawn)}
    store.close()


@pytest.mark.parametrize("kind", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_sums_of_before_wckeys_were_told_apart_stay(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = kind == "file"
    url = str(tmp_path / "state.db") if file else request.getfixturevalue("postgres_url")
    before = open_store(url, clock=Standing())
    post(before, used(1, "alice", T0, T0 + 60))
    before.roll_up()
    before.close()
    _as_of("0006", url)
    after = open_store(url, clock=Standing())
    post(after, used(2, "alice", T0, T0 + 60))
    after.roll_up()
    by = ("user", "wckey", "reservation")
    found = after.history.used(since=T0, until=T0 + HOUR, by=by, tres=("cpu",))
    assert found == {("alice", "", ""): 240}
    after.close()


def _as_of(revision: str, url: str) -> None:
    """The tables as an older version had them."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engines = connect(place(url))
    with engines[0].begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    for engine in engines:
        engine.dispose()
