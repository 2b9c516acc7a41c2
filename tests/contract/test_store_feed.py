"""Accounting plugins get every entry, in order, from where they stand."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Entry, Payer, usage
from accounting.tres import Tres
from broker.model.errors import Conflict, Refused, Unknown
from gateway.store.feed import MOST, PATIENCE, Feeders, feed, loaded
from gateway.store.sql import SqlStore, open_store
from tests.unit.gateway.store.conftest import Standing


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    made = open_store(str(tmp_path / "state.db"), clock=Standing())
    yield made
    made.close()


class Log:
    def __init__(self) -> None:
        self.said: list[str] = []

    def exception(self, event: str, **_: object) -> None:
        self.said.append(event)

    error = warning = exception


@dataclass
class Kept:
    """A consumer; `own` where it keeps its position with what it has."""

    name: str = "them"
    own: bool = False
    breaks: bool = False
    had: dict[int, str] = field(default_factory=dict)
    calls: int = 0

    def position(self) -> int | None:
        return max(self.had, default=0) if self.own else None

    def receive(self, entries: Sequence[tuple[int, Entry]]) -> None:
        self.calls += 1
        if self.breaks and self.calls == 2:
            raise RuntimeError("full")
        assert not self.had.keys() & {number for number, _ in entries}
        self.had |= {number: entry.key for number, entry in entries}


def post(store: SqlStore, first: int, count: int) -> None:
    payer = [Payer(AccountName("a"), UserName("u"), JobId(first + n), 1) for n in range(count)]
    with store.transaction(epoch=1) as tx:
        for one in payer:
            tx.post(usage(one, Tres(1), billing=1, started=100, ended=160))


@pytest.mark.parametrize("own", [True, False])
def test_every_entry_comes_once_and_in_order(store: SqlStore, own: bool) -> None:
    consumer, log = Kept(own=own), Log()
    post(store, 1, 3)
    assert feed(store, consumer, log) == 3
    post(store, 2, MOST + 5)  # two of them stand already
    assert feed(store, consumer, log) == MOST + 3
    assert feed(store, consumer, log) == 0
    assert [key.split("/")[0] for _, key in sorted(consumer.had.items())] == [
        str(n) for n in range(1, MOST + 7)
    ]


def test_what_a_plugin_did_not_take_comes_again(store: SqlStore) -> None:
    consumer, log = Kept(breaks=True), Log()
    post(store, 1, MOST + 1)
    assert feed(store, consumer, log) == MOST
    assert log.said == ["accounting.plugin"]
    assert feed(store, consumer, log) == 1
    assert len(consumer.had) == MOST + 1


def test_consumers_do_not_stand_in_each_others_way(store: SqlStore) -> None:
    post(store, 1, 2)
    one, other = Kept("one"), Kept("other")
    feed(store, one, Log())
    assert feed(store, other, Log()) == 2
    assert store.roll_up() == 2


@dataclass
class Hanging(Kept):
    """Takes nothing until it may."""

    may: Event = field(default_factory=Event)
    came: Event = field(default_factory=Event)

    def receive(self, entries: Sequence[tuple[int, Entry]]) -> None:
        self.came.set()
        assert self.may.wait(10)
        super().receive(entries)
        self.came.clear()


@dataclass
class Broken(Kept):
    how: BaseException = field(default_factory=OSError)

    def position(self) -> int | None:
        raise self.how


def test_a_plugin_that_hangs_keeps_nobody_waiting_and_is_told_of_once(store: SqlStore) -> None:
    slow, quick, log, now = Hanging(name="slow"), Kept(name="quick"), Log(), [0.0]
    feeders = Feeders(store, [slow, quick], log)
    for feeder in feeders.known.values():
        feeder.clock = lambda: now[0]
    post(store, 1, 3)
    feeders.wake()
    assert slow.came.wait(10)
    until(lambda: len(quick.had) == 3 and feeders.known["quick"].busy_since is None)
    now[0] = PATIENCE + 1
    feeders.wake()
    feeders.wake()
    assert log.said == ["accounting.plugin_hangs"]
    stand = [("quick", 3, "waits"), ("slow", 0, "takes")]  # once the quick one has looked again
    until(lambda: [(one.name, one.position, one.state) for one in feeders.standings()] == stand)
    with pytest.raises(Conflict, match="is taking entries"):
        feeders.set("slow", 1)
    slow.may.set()
    until(lambda: len(slow.had) == 3)


def until(holds: Callable[[], bool]) -> None:
    pause = Event()
    for _ in range(1000):
        if holds():
            return
        pause.wait(0.01)
    raise AssertionError("it never came to be so")


@dataclass
class Entrance:
    """An entry point; it names what is made, or breaks so."""

    made: object
    name: str = "odd"

    def load(self) -> Callable[[], object]:
        if isinstance(self.made, BaseException):
            raise self.made
        return lambda: self.made


NO_PLUGINS = {
    "no module": ImportError("no module"),
    "leaves": SystemExit("goodbye"),
    "no name": object(),
    "a name that is no text": Kept(name=["a"]),  # type: ignore[arg-type]
    "an empty name": Kept(name=""),
    "a name of two lines": Kept(name="a\nb"),
    "a name that paints": Kept(name="a\x1b[2J"),
}


@pytest.mark.parametrize("what", NO_PLUGINS)
def test_one_that_cannot_be_made_is_told_of_and_left_out(what: str) -> None:
    log, well = Log(), Kept()
    assert loaded([Entrance(NO_PLUGINS[what]), Entrance(well)], log) == [well]
    assert log.said == ["accounting.plugin_broken"]


@pytest.mark.parametrize("how", [OSError("its database is gone"), SystemExit(3)])
def test_one_that_breaks_while_it_takes_entries_is_told_of_and_asked_again(
    store: SqlStore, how: BaseException
) -> None:
    log = Log()
    post(store, 1, 2)
    assert feed(store, Broken(how=how), log) == 0
    assert log.said == ["accounting.plugin"]


def test_two_of_one_name_would_share_a_position_and_the_second_is_left_out(store: SqlStore) -> None:
    log, first = Log(), Kept()
    feeders = Feeders(store, [first, Kept()], log)
    assert [one.consumer for one in feeders.known.values()] == [first]
    assert log.said == ["accounting.plugin_twice"]


def test_a_position_is_listed_and_set_and_entries_come_from_there(store: SqlStore) -> None:
    one = Kept(name="one")
    feeders = Feeders(store, [one], Log())
    post(store, 1, 5)
    store.roll_up()
    feeders.known["one"].once()
    assert [(s.name, s.position, s.behind) for s in feeders.standings()] == [
        ("one", 5, 0),
        ("sums", 5, 0),
    ]
    one.had.clear()
    feeders.known["one"].set(3)
    assert feeders.known["one"].once() == 2
    assert sorted(one.had) == [4, 5]


def test_a_position_that_cannot_be_is_refused_by_name(store: SqlStore) -> None:
    feeders = Feeders(store, [Kept(name="one"), Kept(name="own", own=True)], Log())
    post(store, 1, 2)
    for name, seq, error, said in (
        ("none", 0, Unknown, "no accounting plugin 'none'"),
        ("sums", 0, Unknown, "no accounting plugin 'sums'"),
        ("one", 3, Refused, "no entry has the number 3"),
        ("one", -1, Refused, "no entry has the number -1"),
        ("own", 1, Refused, "keeps its position itself"),
    ):
        with pytest.raises(error, match=said):
            feeders.set(name, seq)


def test_what_waits_for_a_plugin_that_is_gone_waits_no_more_once_it_is_forgotten(
    store: SqlStore,
) -> None:
    post(store, 1, 1)
    store.keep_position("old", 1)
    feeders = Feeders(store, [Kept(name="here")], Log())
    assert [(s.name, s.state) for s in feeders.standings()] == [("here", "waits"), ("old", "gone")]
    with pytest.raises(Refused, match="plugin here is installed"):
        feeders.forget("here")
    feeders.forget("old")
    assert [s.name for s in feeders.standings()] == ["here"]
    store.roll_up()
    with pytest.raises(Refused, match="sums are those of reports"):
        feeders.forget("sums")
    with pytest.raises(Unknown, match="was ever here"):
        feeders.forget("old")


def test_nothing_is_purged_that_a_plugin_has_not_had_though_it_never_took_any(
    store: SqlStore, tmp_path: Path
) -> None:
    post(store, 1, 2)
    store.roll_up()
    feed(store, Broken(name="new"), Log())
    assert store.purge("ledger", 10_000, archive=None, cluster="c") == 0
    store.keep_position("new", None)
    assert store.purge("ledger", 10_000, archive=None, cluster="c") == 2
