"""Old records go into archives and come back as they were; what was summed up stays."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.assoc import Account
from accounting.change import NO_CHANGE, Change
from accounting.ids import AccountName, JobId
from accounting.rollup import DAY
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.ids import NodeName, StepId
from broker.model.job import Job, Run, Step, StepState
from broker.model.reservation import Reservation, ReservationGone, ReservationSet
from broker.ports import HistoryQuery
from gateway.store import purge
from gateway.store.sql import SqlStore
from tests.contract.records import START, ended, job
from tests.contract.test_store_sums import T0, charge, used


def filled(store: SqlStore) -> None:
    """Two jobs that ended, one of them later, and one that did not."""
    with store.transaction(epoch=1) as tx:
        tx.append([(n, ev.Released(job=JobId(n), at=START)) for n in (1, 2, 3)])
        tx.save_jobs([ended(1, START), ended(2, START + 1), ended(3, START + DAY), job(4)])


def jobs(store: SqlStore) -> list[int]:
    return [one.id for one in store.history.jobs(HistoryQuery())]


def test_jobs_that_ended_long_ago_go_with_their_events_and_come_back(
    store: SqlStore, tmp_path: Path
) -> None:
    filled(store)
    known = list(store.history.jobs(HistoryQuery()))
    assert store.purge("job", START + 60, archive=tmp_path, cluster="site") == 4
    assert (jobs(store), store.history.events(JobId(1))) == ([3, 4], [])
    (archive,) = tmp_path.glob("*.jsonl")
    assert archive.name.startswith("site_job_archive_")
    for _ in range(2):
        assert store.load_archive(archive) == 6
        assert list(store.history.jobs(HistoryQuery())) == known
    assert len(store.history.events(JobId(1))) == 1


def test_without_a_folder_nothing_is_kept(store: SqlStore, tmp_path: Path) -> None:
    filled(store)
    assert store.purge("job", START + 60, archive=None, cluster="site") == 4
    assert (jobs(store), list(tmp_path.glob("*.jsonl"))) == ([3, 4], [])


def test_what_runs_and_what_the_book_and_reservations_are_made_of_stays(store: SqlStore) -> None:
    with store.transaction(epoch=1) as tx:
        change = ev.BookChanged(at=1, actor=0, by="root", action="x", change=NO_CHANGE)
        tx.append([(1, change), (2, nev.NodeRemoved(node="n1", launch=0, at=1))])  # type: ignore[arg-type]
        tx.save_jobs([job(4)])
    assert [
        store.purge(kind, 2**40, archive=None, cluster="site") for kind in ("job", "event")
    ] == [
        0,
        1,
    ]
    assert (jobs(store), len(store.book_changes())) == ([4], 1)


def test_the_ledger_goes_as_far_as_it_is_summed_up_and_reports_stay(store: SqlStore) -> None:
    with store.transaction(epoch=1) as tx:
        tx.post([used(1, "alice", T0, T0 + 600), charge(1, "alice", T0, 700)])
    assert store.purge("ledger", T0 + DAY, archive=None, cluster="site") == 0
    before = store.history.used(since=T0, until=T0 + DAY, by=("user", "tres"))
    store.roll_up()
    assert store.purge("ledger", T0 + DAY, archive=None, cluster="site") == 2
    assert list(store.history.entries(since=0, until=2**40)) == []
    assert store.history.used(since=T0, until=T0 + DAY, by=("user", "tres")) == before
    assert store.history.spent(since=T0, until=T0 + DAY, by=("user",)) == {("alice",): 700}


@pytest.mark.parametrize("line", ["", "{", json.dumps({"table": "leases", "row": {}}), "[]"])
def test_a_file_that_is_no_archive_loads_nothing(
    store: SqlStore, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "other"
    path.write_text(f"{line}\n")
    with pytest.raises(ValueError, match="line 1 is no row of an archive"):
        store.load_archive(path)


DAMAGED: tuple[tuple[str, str, object, str], ...] = (
    ("jobs", "doc", '{"id":', "a document that cannot be read"),
    ("jobs", "doc", None, "a document that cannot be read"),
    ("jobs", "doc", "{}", "a document that cannot be read"),
    ("jobs", "job_id", "abc", "not what its document says"),
    ("jobs", "submitted", None, "not what its document says"),
    ("jobs", "spec", "0" * 64, "a document that cannot be read"),
    ("specs", "doc", "{}", "a document that cannot be read"),
    ("specs", "digest", "0" * 64, "not what its document says"),
    ("events", "kind", "Unheard", "a document that cannot be read"),
    ("events", "doc", "[]", "a document that cannot be read"),
)


@pytest.mark.parametrize(("table", "column", "value", "said"), DAMAGED)
def test_a_row_that_could_not_be_read_back_loads_nothing(
    store: SqlStore, tmp_path: Path, table: str, column: str, value: object, said: str
) -> None:
    filled(store)
    store.purge("job", START + 60, archive=tmp_path, cluster="site")
    (archive,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in archive.read_text().splitlines()]
    next(line for line in lines if line["table"] == table)["row"][column] = value
    archive.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(ValueError, match=said):
        store.load_archive(archive)
    assert jobs(store) == [3, 4]


def test_a_device_is_no_archive(store: SqlStore) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        store.load_archive(Path("/dev/zero"))


WEEK = Reservation(name="week", start=START, end=START + 60, nodes=(NodeName("n1"),))
LIVES = (
    ReservationSet(at=START, record=WEEK),
    ReservationSet(at=START + 1, record=replace(WEEK, begun=True)),
    ReservationGone(at=START + 60, name="week"),
    ReservationSet(at=START + 70, record=WEEK),  # of the same name, and still there
    ReservationSet(at=START, record=replace(WEEK, name="other")),
    ReservationGone(at=START + DAY, name="other"),
)


def test_what_became_of_reservations_goes_once_they_are_over(
    store: SqlStore, tmp_path: Path
) -> None:
    with store.transaction(epoch=1) as tx:
        tx.append(list(enumerate(LIVES, 1)))
    assert store.purge("resv", START + 61, archive=tmp_path, cluster="site") == 3
    assert list(store.reservation_facts()) == list(LIVES[3:])
    (archive,) = tmp_path.glob("site_resv_archive_*.jsonl")
    assert store.load_archive(archive) == 3
    assert list(store.reservation_facts()) == list(LIVES)


def test_sums_of_use_go_by_their_own_age_and_come_back(store: SqlStore, tmp_path: Path) -> None:
    with store.transaction(epoch=1) as tx:
        tx.post([used(1, "alice", T0, T0 + 600), charge(1, "alice", T0, 700)])
        tx.post([used(2, "bob", T0 + 2 * DAY, T0 + 2 * DAY + 600)])
    store.roll_up()
    window = {"since": T0, "until": T0 + 3 * DAY}
    before = store.history.used(**window, by=("user", "tres"))
    assert store.purge("usage", T0 + DAY, archive=tmp_path, cluster="site") > 0
    left = {user for user, _ in store.history.used(**window, by=("user", "tres"))}
    assert left == {"bob"}
    assert store.history.spent(**window, by=("user",)) == {("alice",): 700}
    (archive,) = tmp_path.glob("site_usage_archive_*.jsonl")
    for _ in range(2):
        store.load_archive(archive)
        assert store.history.used(**window, by=("user", "tres")) == before


@pytest.mark.parametrize("kind", ["job", "usage", "ledger"])
def test_a_kill_between_archive_and_deletion_loses_nothing_and_doubles_nothing(
    store: SqlStore, tmp_path: Path, kind: str
) -> None:
    filled(store)
    with store.transaction(epoch=1) as tx:
        tx.post([used(1, "alice", T0, T0 + 600), charge(1, "alice", T0, 700)])
    store.roll_up()

    def told() -> tuple[object, ...]:
        window = {"since": T0, "until": T0 + DAY}
        found = store.history.used(**window, by=("user", "tres"))
        return (
            list(store.history.jobs(HistoryQuery())),
            list(store.history.entries(since=0, until=2**40)),
            found,
        )

    before, after = told(), max(START, T0) + 2 * DAY
    rows = purge.old(store.history, kind, after)
    purge.archived(store.history, rows, tmp_path, cluster="site", kind=kind)  # and then the kill
    (tmp_path / "site_half.part").write_text("{")
    assert store.purge(kind, after, archive=tmp_path, cluster="site") == len(rows)
    assert told() != before
    archives = sorted(tmp_path.glob("*.jsonl"))
    assert len(archives) == 2
    for archive in archives:
        store.load_archive(archive)
        assert told() == before


def stepped(number: int, at: int) -> Job:
    """One that ended with steps, and mentions them."""
    step = Step(id=StepId("0"), name="x", state=StepState.COMPLETED, started=at - 9, ended=at)
    return replace(ended(number, at), steps=(step,), comment='"steps":[')


def test_steps_go_by_their_own_age_their_jobs_stay_and_they_come_back(
    store: SqlStore, tmp_path: Path
) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([stepped(1, START), ended(2, START), stepped(3, START + DAY)])
        tx.save_runs([Run(replace(stepped(1, START - 60), attempt=0))])
    before, runs = list(store.history.jobs(HistoryQuery())), store.history.runs(JobId(1))
    assert store.purge("step", START + 60, archive=tmp_path, cluster="site") == 2
    assert [len(one.steps) for one in store.history.jobs(HistoryQuery())] == [0, 0, 1]
    assert [one.job.steps for one in store.history.runs(JobId(1))] == [()]
    assert store.purge("step", START + 60, archive=tmp_path, cluster="site") == 0
    (archive,) = tmp_path.glob("site_step_archive_*.jsonl")
    for _ in range(2):
        store.load_archive(archive)
        assert list(store.history.jobs(HistoryQuery())) == before
        assert store.history.runs(JobId(1)) == runs


def test_a_job_that_changed_since_its_steps_went_stays_as_it_is(
    store: SqlStore, tmp_path: Path
) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([stepped(1, START)])
    store.purge("step", START + 60, archive=tmp_path, cluster="site")
    (archive,) = tmp_path.glob("*.jsonl")
    (left,) = store.history.jobs(HistoryQuery())
    changed = replace(left, comment="other")
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([changed])
    store.load_archive(archive)
    assert list(store.history.jobs(HistoryQuery())) == [changed]


def test_who_changed_accounts_goes_what_they_changed_stays_and_it_comes_back(
    store: SqlStore, tmp_path: Path
) -> None:
    change = Change(accounts=(Account(name=AccountName("lab")),))
    made = [
        ev.BookChanged(
            at=START + n, actor=7, by=f"u{n}", action="Add Accounts", change=change, where="w"
        )
        for n in range(3)
    ]
    with store.transaction(epoch=1) as tx:
        tx.append(list(enumerate(made, 1)))
    assert store.purge("txn", START + 2, archive=tmp_path, cluster="site") == 2
    left = store.book_changes()
    assert [one.by for one in left] == ["", "", "u2"]
    assert [one.change for one in left] == [change] * 3
    assert store.purge("txn", START + 2, archive=tmp_path, cluster="site") == 0
    (archive,) = tmp_path.glob("site_txn_archive_*.jsonl")
    for _ in range(2):
        store.load_archive(archive)
        assert store.book_changes() == made
