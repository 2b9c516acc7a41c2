"""What every store keeps of its promises: SQLite in memory and in a file, and PostgreSQL."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounting.ids import JobId, UserName
from accounting.ledger import Entry
from broker.model import commands as cmd
from broker.model.errors import Busy, LostLease, Unknown
from broker.model.events import Ended, Event, JobEvent, Queued, Started, Waits
from broker.model.ids import Digest, NodeName
from broker.model.job import ArrayPlace, Job, JobFlag, JobState, Run
from broker.model.node import Node
from broker.model.nodeevents import NodeEvent
from broker.model.spec import TaskSpec
from broker.ports import Counters, History, HistoryQuery, Store
from gateway.store.backup import check
from gateway.store.history import IDS, PAGE
from gateway.store.place import connect, place
from gateway.store.schema import migrate
from gateway.store.sql import SqlStore, open_store
from gateway.store.tables import METADATA
from tests.contract.records import (
    LATIN_1,
    NASTY,
    START,
    any_of,
    element,
    ended,
    entry,
    job,
    node,
    owner,
)

ROOT = Path(__file__).parents[2]
KINDS = ("memory", "file", pytest.param("postgres", marks=pytest.mark.postgres))
KEPT = ("file", pytest.param("postgres", marks=pytest.mark.postgres))
EVENTS = [*get_args(JobEvent), *get_args(NodeEvent)]
SHARES_THE_STORE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=10,
)


@dataclass
class Clock:
    at: int = START

    def now(self) -> int:
        return self.at


@dataclass
class Home:
    """Where a store is, and the stores that were opened there."""

    text: str
    clock: Clock = field(default_factory=Clock)
    opened: list[SqlStore] = field(default_factory=list)

    def open(self) -> SqlStore:
        self.opened.append(open_store(self.text, clock=self.clock))
        return self.opened[-1]


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    places: dict[str, Callable[[], str]] = {
        "memory": lambda: ":memory:",
        "file": lambda: str(tmp_path / "state.db"),
        "postgres": lambda: str(request.getfixturevalue("postgres_url")),
    }
    made = Home(places[request.param]())
    yield made
    for store in made.opened:
        store.close()


@pytest.fixture
def store(home: Home) -> SqlStore:
    return home.open()


everywhere = pytest.mark.parametrize("home", KINDS, indirect=True)
where_it_stays = pytest.mark.parametrize("home", KEPT, indirect=True)


def save(store: SqlStore, *jobs: Job) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs(jobs)


def ids(jobs: Iterator[Job]) -> list[int]:
    return [job.id for job in jobs]


@everywhere
def test_the_protocols_are_kept(store: SqlStore) -> None:
    as_store: Store = store
    as_history: History = store.history
    assert as_store
    assert as_history


@everywhere
def test_a_new_store_is_empty(store: SqlStore) -> None:
    assert store.counters() is None
    assert store.live_jobs(ended_after=0) == []
    assert store.live_nodes() == []
    assert store.replies(0) == {}
    assert list(store.history.jobs(HistoryQuery())) == []


@everywhere
def test_jobs_are_found_by_name_also_when_they_are_long_over(store: SqlStore) -> None:
    place = ArrayPlace(base=JobId(2), task=1)
    save(store, job(1), job(2), job(3, array=place), job(4))
    assert ids(iter(store.jobs_named([JobId(1), JobId(2)]))) == [1, 2, 3]
    assert store.jobs_named([]) == []


@everywhere
def test_a_transaction_that_fails_leaves_nothing(store: SqlStore) -> None:
    save(store, job(1))

    def write_and_fail() -> None:
        with store.transaction(epoch=1) as tx:
            tx.append([(7, Started(job=JobId(1), at=START))])
            tx.save_jobs([job(1, priority=5), job(2)])
            tx.save_nodes([node("ec2-1")], [])
            tx.post([entry("a")])
            tx.put_blobs({Digest(sha256(b"x").hexdigest()): b"x"})
            tx.remember_requests({"r": "reply"})
            tx.set_counters(Counters(2, 7))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert store.live_jobs(ended_after=0) == [job(1)]
    assert (store.live_nodes(), store.replies(0), store.counters()) == ([], {}, None)
    assert (store.history.events(JobId(1)), store.history.costs([JobId(1)])) == ([], {})
    # The spec that job 2 shares with nobody was taken back too, and has to be written once more.
    save(store, job(2))
    assert ids(store.history.jobs(HistoryQuery())) == [1, 2]


@everywhere
def test_an_earlier_epoch_can_write_no_more(store: SqlStore) -> None:
    first = store.take_lease()
    second = store.take_lease()
    with pytest.raises(LostLease, match=f"epoch {second}"), store.transaction(epoch=first) as tx:
        tx.save_jobs([job(1)])
    with store.transaction(epoch=second) as tx:
        tx.save_jobs([job(2)])
    assert ids(store.history.jobs(HistoryQuery())) == [2]


@where_it_stays
def test_a_second_gateway_ends_the_first_ones_writing(home: Home) -> None:
    old, new = home.open(), home.open()
    epoch = old.take_lease()
    with old.transaction(epoch=epoch) as tx:
        tx.save_jobs([job(1)])
    later = new.take_lease()
    with pytest.raises(LostLease), old.transaction(epoch=epoch):
        pass
    with new.transaction(epoch=later) as tx:
        tx.save_jobs([job(2)])
    assert ids(iter(new.live_jobs(ended_after=0))) == [1, 2]


@where_it_stays
def test_a_store_that_is_opened_again_has_everything(home: Home) -> None:
    first = home.open()
    with first.transaction(epoch=3) as tx:
        tx.append([(1, Queued(job=JobId(1), at=START, record=job(1)))])
        tx.save_jobs([job(1, spec=TaskSpec(name=NASTY))])
        tx.save_runs([Run(job(1, attempt=1))])
        tx.save_nodes([node("ec2-1")], [])
        tx.post([entry("a", 5)])
        tx.remember_requests({"r": NASTY})
        tx.set_counters(Counters(2, 1))
    first.close()
    again = home.open()
    assert again.live_jobs(ended_after=0) == [job(1, spec=TaskSpec(name=NASTY))]
    assert again.live_nodes() == [node("ec2-1")]
    assert again.replies(START) == {"r": NASTY}
    assert again.counters() == Counters(2, 1)
    assert again.history.events(JobId(1)) == [Queued(job=JobId(1), at=START, record=job(1))]
    assert again.history.runs(JobId(1)) == [Run(job(1, attempt=1))]
    assert list(again.history.entries(since=0, until=START + 1)) == [entry("a", 5)]
    assert again.take_lease() == 4


@everywhere
@pytest.mark.parametrize(
    "later",
    [
        {"priority": 5},
        {"state": JobState.CANCELLED, "ended": START + 9, "ended_by": 1000},
        {"started": START + 2, "eligible": START + 1, "state": JobState.RUNNING},
        {"account": "chem"},
        {"partitions": ("gpu", "ec2")},
        {"spec": TaskSpec(name="another")},
        {"array": ArrayPlace(base=JobId(1), task=7)},
    ],
    ids=str,
)
def test_a_job_that_goes_on_is_found_as_it_is_now(store: SqlStore, later: dict[str, Any]) -> None:
    was = job(1)
    save(store, was, job(2))
    now = replace(was, version=8, **later)
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([now], was={was.id: was})
    assert list(store.history.jobs(HistoryQuery())) == [now, job(2)]
    of_now = HistoryQuery(
        accounts=(now.account,), names=(now.spec.name.lower(),), states=(now.state.label,)
    )
    assert now in list(store.history.jobs(of_now))


@everywhere
def test_a_job_that_was_over_and_has_no_row_any_more_gets_one(store: SqlStore) -> None:
    was = job(1, state=JobState.FAILED, ended=START)
    again = replace(was, state=JobState.PENDING, ended=None, version=9)
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([again], was={was.id: was})
    assert store.live_jobs(ended_after=0) == [again]


@everywhere
@SHARES_THE_STORE
@given(record=any_of(Job))
def test_any_job_comes_back_as_it_was(store: SqlStore, record: Job) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([record])
        tx.save_runs([Run(record)])
    found = store.history.jobs(HistoryQuery(jobs=(record.id,)))
    assert record in list(found)
    assert Run(record) in store.history.runs(record.id)


@everywhere
@SHARES_THE_STORE
@given(record=any_of(Node))
def test_any_node_comes_back_as_it_was(store: SqlStore, record: Node) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_nodes([record], [])
    assert record in store.live_nodes()
    with store.transaction(epoch=1) as tx:
        tx.save_nodes([], [record.identity])
    assert store.live_nodes() == []


@everywhere
@SHARES_THE_STORE
@given(record=any_of(Entry).filter(lambda each: bool(each.key)))
def test_any_ledger_entry_comes_back_as_it_was(store: SqlStore, record: Entry) -> None:
    record = replace(record, key=f"{record.key}/{next(NUMBERS)}", at=abs(record.at) // 2)
    with store.transaction(epoch=1) as tx:
        tx.post([record])
    assert record in list(store.history.entries(since=record.at, until=record.at + 1))


NUMBERS = count(1)


@everywhere
@settings(SHARES_THE_STORE, max_examples=5)
@given(events=st.tuples(*map(any_of, EVENTS)))
def test_every_kind_of_event_comes_back_as_it_was(
    store: SqlStore, events: tuple[Event, ...]
) -> None:
    with store.transaction(epoch=1) as tx:
        tx.append([(next(NUMBERS), event) for event in events])
    for event in events:
        if isinstance(event, JobEvent):
            assert event in store.history.events(event.job)


@everywhere
def test_events_of_a_job_come_in_order(store: SqlStore) -> None:
    told: list[Event] = [
        Queued(job=JobId(1), at=START, record=job(1)),
        Waits(job=JobId(1), at=START, reason="Resources", detail=NASTY),
        Ended(job=JobId(1), at=START + 1, state=JobState.CANCELLED, reason="None"),
    ]
    with store.transaction(epoch=1) as tx:
        tx.append([(9, told[2]), (2, told[0])])
        tx.append([(3, Started(job=JobId(2), at=START)), (5, told[1])])
    assert store.history.events(JobId(1)) == told


@everywhere
def test_live_jobs_are_those_not_over_and_those_just_ended(store: SqlStore) -> None:
    cleaning = ended(4, START, flags=JobFlag.COMPLETING)
    save(store, job(1), ended(2, START + 9), ended(3, START + 10), cleaning)
    assert ids(iter(store.live_jobs(ended_after=START + 10))) == [1, 3, 4]
    save(store, ended(1, START + 8), replace(cleaning, flags=JobFlag.NONE))
    assert ids(iter(store.live_jobs(ended_after=START + 10))) == [3]


@everywhere
def test_jobs_with_the_same_spec_share_it_in_memory(store: SqlStore) -> None:
    spec = TaskSpec(name="array")
    save(store, job(1, spec=spec), job(2, spec=TaskSpec(name="array")), job(3, spec=spec))
    first, *others = store.live_jobs(ended_after=0)
    assert first.spec == spec
    assert all(other.spec is first.spec for other in others)


@everywhere
def test_a_gone_machine_is_no_longer_live(store: SqlStore) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_nodes([node("ec2-1"), node("ec2-1", 2), node(NASTY)], [])
    with store.transaction(epoch=1) as tx:
        tx.save_nodes([node("ec2-1", reason="last word")], [(NodeName("ec2-1"), 1)])
        tx.save_nodes([], [(NodeName(NASTY), 1), (NodeName("never was"), 1)])
    assert store.live_nodes() == [node("ec2-1", 2)]


@everywhere
def test_posting_an_entry_twice_is_posting_it_once(store: SqlStore) -> None:
    for cost in (5, 7):
        with store.transaction(epoch=1) as tx:
            tx.post([entry("a", cost), entry("a", cost)])
    assert list(store.history.entries(since=0, until=START + 1)) == [entry("a", 5)]


@everywhere
def test_costs_are_whole_sums_beyond_32_bits(store: SqlStore) -> None:
    large = 2**40
    with store.transaction(epoch=1) as tx:
        tx.post([entry("a", large), entry("b", large), entry("c", -1), entry("d", number=2)])
        tx.post([entry("idle", 50, number=None)])
    asked = [JobId(number) for number in range(IDS * 2 + 2)]
    found = store.history.costs(asked)
    assert found == {1: 2 * large - 1, 2: 1}
    assert {type(cost) for cost in found.values()} == {int}


@everywhere
def test_entries_come_by_time_in_a_half_open_window(store: SqlStore) -> None:
    same = [entry(f"same {number:04}", number) for number in range(2 * PAGE + 1)]
    before, after = entry("z", at=START - 1), entry("a", at=START + 1)
    with store.transaction(epoch=1) as tx:
        tx.post([after, *reversed(same), before])
    assert list(store.history.entries(since=START - 1, until=START + 1)) == [before, *same]


@everywhere
def test_a_users_entries_are_read_without_those_of_others(store: SqlStore) -> None:
    theirs = [replace(entry(f"b {number:04}"), user=UserName("bob")) for number in range(PAGE + 1)]
    with store.transaction(epoch=1) as tx:
        tx.post([entry("a"), *theirs, replace(entry("c", at=START + 1), user=UserName("bob"))])
    assert list(store.history.entries(since=START, until=START + 1, user="bob")) == theirs
    assert not list(store.history.entries(since=START, until=START + 1, user="carol"))


@everywhere
def test_blobs_are_kept_under_their_digest(store: SqlStore) -> None:
    data = bytes(range(256)) * 20_000
    digest = Digest(sha256(data).hexdigest())
    for _ in range(2):
        with store.transaction(epoch=1) as tx:
            tx.put_blobs({digest: data})
    assert store.blob(digest) == data
    assert store.history.blob(digest) == data
    with pytest.raises(Unknown, match="no bytes"):
        store.blob(Digest("0" * 64))


@everywhere
def test_blobs_of_a_transaction_that_failed_are_written_by_the_next(store: SqlStore) -> None:
    blob = {Digest(sha256(b"x").hexdigest()): b"x"}
    with pytest.raises(ZeroDivisionError), store.transaction(epoch=1) as tx:
        tx.put_blobs(blob)
        raise ZeroDivisionError
    for _ in range(2):
        with store.transaction(epoch=1) as tx:
            tx.put_blobs(blob)
        assert store.blob(*blob) == b"x"


@everywhere
def test_the_first_reply_to_a_request_stands_until_it_is_forgotten(home: Home) -> None:
    store = home.open()
    for reply in (NASTY, "another"):
        with store.transaction(epoch=1) as tx:
            tx.remember_requests({"a": reply})
    home.clock.at += 60
    with store.transaction(epoch=1) as tx:
        tx.remember_requests({"b": "later"})
    assert store.replies(START) == {"a": NASTY, "b": "later"}
    assert store.replies(START + 1) == {"b": "later"}
    assert store.forget(START + 60) == 1
    assert store.replies(0) == {"b": "later"}


@everywhere
def test_a_request_that_has_not_come_to_an_end_is_not_forgotten(home: Home) -> None:
    store = home.open()
    over = {cmd.ASKED + "b": "over", cmd.ENDED + "b": "so"}
    kept = {cmd.ASKED + "a": NASTY, **over, "askeda": "7"}
    with store.transaction(epoch=1) as tx:
        tx.remember_requests(kept)
    assert store.history.open_requests() == [NASTY]
    assert store.forget(START + 60) == 3
    assert store.history.open_requests() == [NASTY]
    assert store.replies(0) == {cmd.ASKED + "a": NASTY}


PAST = (
    ended(1, START + 100, partitions=("ec2",)),
    ended(2, START + 200, owner=owner("bob", 1001), spec=TaskSpec(name="train"), account="chem"),
    job(3, submitted=START + 150, partitions=("ec2", "gpu"), spec=TaskSpec(name=NASTY)),
    job(4, submitted=START + 300, owner=owner(LATIN_1, 1002), partitions=("EC2",)),
    job(10, submitted=START + 400, spec=TaskSpec(name="a\\udce9")),
    replace(element(11, 10, 0), submitted=START + 400, spec=TaskSpec(name="a\udce9")),
    replace(element(12, 10, 1), submitted=START + 400, spec=TaskSpec(name="a")),
)
ASKED: dict[str, tuple[dict[str, Any], list[int]]] = {
    "anything": ({}, [1, 2, 3, 4, 10, 11, 12]),
    "an id": ({"jobs": (3,)}, [3]),
    "an array's base": ({"jobs": (10,)}, [10, 11, 12]),
    "an element's own id": ({"jobs": (12, 1, 99, 1)}, [1, 12]),
    "ids and more": ({"jobs": (1, 2, 3), "uids": (1001,)}, [2]),
    "users": ({"uids": (1001, 1002)}, [2, 4]),
    "accounts": ({"accounts": ("chem", "none")}, [2]),
    "a name with NUL": ({"names": (NASTY,)}, [3]),
    "a name with a foreign byte": ({"names": ("a\udce9",)}, [11]),
    "a name that looks escaped": ({"names": ("a\\udce9",)}, [10]),
    "names are not patterns": ({"names": ("%",)}, []),
    "a partition, in whatever case": ({"partitions": ("ec2",)}, [1, 2, 3, 4, 10, 11, 12]),
    "one of several partitions": ({"partitions": ("gpu",)}, [3]),
    "states": ({"states": ("COMPLETED", "FAILED")}, [1, 2]),
    "since its end": ({"since": START + 200}, [2, 3, 4, 10, 11, 12]),
    "until its submission": ({"until": START + 150}, [1, 2, 3]),
    "a window": ({"since": START + 101, "until": START + 299}, [2, 3]),
    "all at once": (
        {"since": START, "uids": (1000,), "states": ("PENDING",), "partitions": ("gpu",)},
        [3],
    ),
}


@everywhere
def test_history_finds_what_is_asked_for(store: SqlStore) -> None:
    save(store, *PAST)
    found = {
        what: ids(store.history.jobs(HistoryQuery(**query))) for what, (query, _) in ASKED.items()
    }
    assert found == {what: wanted for what, (_, wanted) in ASKED.items()}


@everywhere
def test_names_are_found_in_whatever_case_they_were_given(store: SqlStore) -> None:
    names = ("ÉTUDE", "étude", "Étude", "etude")
    save(store, *(job(number, spec=TaskSpec(name=name)) for number, name in enumerate(names, 1)))
    assert ids(store.history.jobs(HistoryQuery(names=("étude",)))) == [1, 2, 3]


LASTED = (0, 1, 255, 256, 257, 2047, 2048, 16_384, 131_071, 131_072, 1 << 20, (1 << 20) + 1)


@everywhere
def test_a_window_finds_jobs_however_long_they_were_there(store: SqlStore) -> None:
    jobs = [
        ended(place + 1, START + lasted, submitted=START, partitions=("ec2",))
        for place, lasted in enumerate(LASTED)
    ]
    save(store, *jobs, job(99, submitted=START, partitions=("ec2",)))
    for since in (START, START + 1, START + 256, START + 3000, START + 140_000, START + (1 << 21)):
        query = HistoryQuery(since=since, until=since + 5)
        there = [
            one.id for one, lasted in zip(jobs, LASTED, strict=True) if START + lasted >= since
        ]
        assert ids(store.history.jobs(query)) == [*there, 99]
    assert ids(store.history.jobs(HistoryQuery(since=START - 9, until=START - 1))) == []


@everywhere
@pytest.mark.parametrize("held", [(), (3,), (2, 3, 4), (1, 3, 4, 6), range(1, 7)])
def test_a_window_leaves_out_what_the_asker_has_at_hand(
    store: SqlStore, held: Iterable[int]
) -> None:
    at_hand = [JobId(one) for one in held]
    save(store, *(ended(number, START + number) for number in range(1, 6)), job(6, submitted=START))
    query = HistoryQuery(since=START, until=START + 9, held=at_hand)
    assert ids(store.history.jobs(query)) == [one for one in range(1, 7) if one not in at_hand]


@everywhere
def test_a_job_that_changed_after_its_end_is_read_again(store: SqlStore) -> None:
    window = HistoryQuery(since=START, until=START + 200)
    first = ended(1, START + 100, version=5)
    save(store, first)
    assert list(store.history.jobs(window)) == [first]
    (again,) = store.history.jobs(window)
    changed = replace(first, comment="told later", version=6)
    save(store, changed)
    assert list(store.history.jobs(window)) == [changed]
    assert again == first
    assert list(store.history.jobs(replace(window, uids=(4711,)))) == []


@everywhere
def test_thousands_of_ids_can_be_asked_for(store: SqlStore) -> None:
    save(store, *(job(number) for number in range(1, PAGE * 2 + 2)), element(6001, 5000, 1))
    asked = tuple(JobId(number) for number in range(5001))
    assert ids(store.history.jobs(HistoryQuery(jobs=asked))) == [*range(1, PAGE * 2 + 2), 6001]
    assert ids(store.history.jobs(HistoryQuery())) == [*range(1, PAGE * 2 + 2), 6001]


@everywhere
def test_an_id_beyond_what_the_database_can_hold_is_no_job(store: SqlStore) -> None:
    save(store, job(1))
    assert ids(store.history.jobs(HistoryQuery(jobs=(JobId(1), JobId(10**20))))) == [1]
    assert store.history.costs((JobId(10**20),)) == {}


@everywhere
def test_several_threads_read_at_once(store: SqlStore) -> None:
    save(store, *(job(number) for number in range(PAGE + 1)))
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: len(list(store.history.jobs(HistoryQuery()))), range(40)))
    assert found == [PAGE + 1] * 40


@everywhere
def test_an_answer_that_is_not_read_to_its_end_holds_nothing_up(store: SqlStore) -> None:
    save(store, *(job(number) for number in range(PAGE + 1)))
    begun = [store.history.jobs(HistoryQuery()) for _ in range(20)]
    assert [next(each).id for each in begun] == [0] * 20
    save(store, job(5000))
    assert ids(store.history.jobs(HistoryQuery(jobs=(JobId(5000),)))) == [5000]


@where_it_stays
def test_what_is_not_committed_is_not_read(store: SqlStore) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([job(1)])
        assert list(store.history.jobs(HistoryQuery())) == []
    assert ids(store.history.jobs(HistoryQuery())) == [1]


@where_it_stays
def test_migrations_from_nothing_make_the_tables_of_a_new_store(home: Home) -> None:
    where = place(home.text)
    writer, readers = connect(where)
    try:
        migrate(writer, where)
        with writer.connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, METADATA) == []
    finally:
        writer.dispose()
        readers.dispose()
    save(home.open(), job(1))


@pytest.mark.postgres
@pytest.mark.parametrize("home", ["postgres"], indirect=True)
def test_a_connection_that_was_cut_is_busy_once(home: Home) -> None:
    store, other = home.open(), home.open()
    save(store, job(1))
    with other._writer.transaction() as cursor:
        cursor.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    with pytest.raises(Busy, match="server"):
        save(store, job(2))
    save(store, job(3))
    assert ids(store.history.jobs(HistoryQuery())) == [1, 3]


@pytest.mark.kill
@pytest.mark.parametrize("home", ["file"], indirect=True)
@pytest.mark.parametrize("lines", [1, 40])
def test_what_was_acknowledged_survives_a_kill(home: Home, lines: int) -> None:
    command = [sys.executable, "-m", "tests.contract.store_writer", home.text]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    store = home.open()
    found = ids(iter(store.live_jobs(ended_after=0)))
    assert found == [*range(1, len(found) + 1)]
    assert found[: len(said)] == said
    assert store.counters() == Counters(len(found) + 1, len(found))
    assert set(store.replies(0).values()) == set(map(str, found))
    assert store.history.costs([JobId(each) for each in found]) == dict.fromkeys(found, 1)
    assert [len(store.history.events(JobId(each))) for each in found] == [1] * len(found)
    assert store.take_lease() == 2
    assert check(Path(home.text)) == []
