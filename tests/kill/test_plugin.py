"""A plugin that keeps its position with what it has gets each entry once, whatever is killed."""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Entry, Payer, usage
from accounting.tres import Tres
from gateway.store.feed import MOST, Feeders
from gateway.store.sql import open_store

ENTRIES = 2 * MOST + 7
pytestmark = pytest.mark.kill
PLACES = ("written", "committed", "taken", "never")
"""Where SIGKILL comes, at the page that has a certain entry."""


class Clock:
    def now(self) -> int:
        return 0


class Plugin:
    """Exactly once by what it keeps."""

    name = "books"

    def __init__(self, path: str, entry: int, place: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("CREATE TABLE IF NOT EXISTS had (seq INTEGER, key TEXT)")
        self.entry, self.place = entry, place
        self.due = False

    def position(self) -> int:
        if self.due:
            kill()  # the page was taken, and the service may have noted it
        return int(self.connection.execute("SELECT coalesce(max(seq), 0) FROM had").fetchone()[0])

    def receive(self, entries: Sequence[tuple[int, Entry]]) -> None:
        now = self.entry in {seq for seq, _ in entries}
        self.connection.execute("BEGIN IMMEDIATE")
        rows = [(seq, entry.key) for seq, entry in entries]
        self.connection.executemany("INSERT INTO had VALUES (?, ?)", rows)
        if now and self.place == "written":
            kill()
        self.connection.execute("COMMIT")
        if now and self.place == "committed":
            kill()
        self.due = now and self.place == "taken"


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_each_entry_comes_once_and_in_order_over_kills_at_every_place(tmp_path: Path) -> None:
    state, own = tmp_path / "state.db", tmp_path / "own.db"
    store = open_store(str(state), clock=Clock())
    with store.transaction(epoch=1) as tx:
        for number in range(1, ENTRIES + 1):
            payer = Payer(AccountName("a"), UserName("u"), JobId(number), 1)
            tx.post(usage(payer, Tres(1), billing=1, started=100, ended=160))
    store.close()
    ends = [hand_over(state, own, entry=1 + n * MOST, place=p) for n, p in enumerate(PLACES)]
    assert ends == [-signal.SIGKILL] * 3 + [0]
    with sqlite3.connect(own) as connection:
        had = connection.execute("SELECT seq FROM had ORDER BY rowid").fetchall()
    assert [seq for (seq,) in had] == list(range(1, ENTRIES + 1))
    after = open_store(str(state), clock=Clock())
    assert after.position("books") == ENTRIES
    after.close()


def hand_over(state: Path, own: Path, *, entry: int, place: str) -> int | None:
    """How the process ended."""
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_hand_over, args=(str(state), str(own), entry, place))
    process.start()
    process.join(60)
    return process.exitcode


def _hand_over(state: str, own: str, entry: int, place: str) -> None:
    store = open_store(state, clock=Clock())
    plugin = Plugin(own, entry, place)
    Feeders(store, [plugin], structlog.get_logger()).known[plugin.name].once()
    store.close()
