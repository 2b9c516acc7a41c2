"""A database that cannot take writes now says so, names itself and the way out, and stays whole."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from broker.model.errors import Busy
from broker.model.ids import Digest
from gateway.store.faults import told
from gateway.store.sql import SqlStore
from tests.contract.records import job
from tests.unit.gateway.store.conftest import Open, save


def fill(store: SqlStore) -> None:
    for number in range(2, 100):
        data = b"%d" % number * 10_000
        with store.transaction(epoch=1) as tx:
            tx.save_jobs([job(number)])
            tx.put_blobs({Digest(sha256(data).hexdigest()): data})


def test_a_full_disk_is_busy_and_nothing_of_the_step_is_there(open_with: Open, file: Path) -> None:
    store = open_with("max_page_count=100")
    save(store, job(1))
    with pytest.raises(Busy, match="the disk is full") as busy:
        fill(store)
    assert str(file) in busy.value.message
    assert "free space" in busy.value.message
    kept = store.live_jobs(ended_after=0)
    assert len(kept) > 1
    # What needs no new page still gets in.
    save(store, *kept[:1])
    assert store.live_jobs(ended_after=0) == kept


def test_a_file_that_may_not_be_written_is_busy(open_with: Open) -> None:
    with pytest.raises(Busy, match=r"is read-only .*write access"):
        save(open_with("query_only=ON"), job(1))


def test_a_file_that_another_program_holds_is_busy(open_with: Open, file: Path) -> None:
    store = open_with("busy_timeout=1")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match=r"is locked by another process .*fuser"):
            save(store, job(1))
        other.execute("ROLLBACK")
    save(store, job(1))
    assert store.live_jobs(ended_after=0) == [job(1)]


class ServerError(Exception):
    """As psycopg's errors, which carry the server's code."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("what the server said")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("53100", "the server's disk is full"),
        ("53300", "short of resources"),
        ("25006", "is read-only"),
        ("55P03", "locked by another session"),
        ("40001", "another session got in between"),
        ("57P01", "shutting down"),
        ("08006", "does not answer"),
        (None, "does not answer"),
    ],
)
def test_what_passes_on_a_server_is_busy(code: str | None, text: str) -> None:
    with pytest.raises(Busy, match=text) as busy, told("postgresql://host/name"):
        raise OperationalError("COMMIT", {}, ServerError(code))
    assert "postgresql://host/name" in busy.value.message


@pytest.mark.parametrize(
    "error",
    [
        IntegrityError("INSERT", {}, ServerError("23505")),
        DBAPIError("SELECT", {}, ServerError("42P01")),
        IntegrityError("INSERT", {}, sqlite3.IntegrityError("UNIQUE")),
    ],
)
def test_what_is_wrong_for_ever_is_not_hidden(error: DBAPIError) -> None:
    with pytest.raises(type(error)), told("x"):
        raise error
