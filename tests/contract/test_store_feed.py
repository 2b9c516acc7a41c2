"""Accounting plugins get every entry, in order, from where they stand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Entry, Payer, usage
from accounting.tres import Tres
from gateway.store.feed import MOST, feed
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
