"""Copies are whole while the service writes, and unsound files are noticed."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from broker.model.errors import Busy, Refused
from broker.model.ids import Digest
from gateway.store.backup import backup_store, check
from gateway.store.sql import open_store
from tests.contract.records import job
from tests.unit.gateway.store.conftest import Open, Standing, save


def test_a_copy_made_during_a_transaction_has_what_was_committed(
    open_with: Open, file: Path, tmp_path: Path
) -> None:
    store = open_with()
    save(store, job(1))
    copy = tmp_path / "copy.db"
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([job(2)])
        backup_store(str(file), copy)
    assert check(copy) == []
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = open_store(str(copy), clock=Standing())
    assert again.live_jobs(ended_after=0) == [job(1)]
    again.close()
    assert {each.name for each in tmp_path.iterdir() if "part" in each.name} == set()


def test_an_earlier_copy_stays_if_a_new_one_fails(
    open_with: Open, file: Path, tmp_path: Path
) -> None:
    open_with()
    folder = tmp_path / "copies"
    with pytest.raises(Busy, match=r"(?s)copies/state\.db.*No such file"):
        backup_store(str(file), folder / "state.db")
    folder.mkdir()
    backup_store(str(file), folder / "state.db")
    backup_store(str(file), folder / "state.db")
    assert [each.name for each in folder.iterdir()] == ["state.db"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("postgresql://host/name", "cannot be copied"), ("/nowhere/state.db", "no such file")],
)
def test_what_cannot_be_copied_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=message):
        backup_store(text, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_changed_and_missing_rows_are_noticed(open_with: Open, file: Path) -> None:
    store = open_with()
    save(store, job(1))
    with store.transaction(epoch=1) as tx:
        tx.put_blobs({Digest("0" * 64): b"other bytes"})
    store.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("DELETE FROM specs")
    assert check(file) == [
        "row 1 of jobs refers to a row of specs that is not there",
        f"blob {'0' * 64} has other bytes than it was stored with",
    ]


def test_a_damaged_file_is_noticed(open_with: Open, file: Path) -> None:
    store = open_with()
    for number in range(200):
        save(store, job(number))
    store.close()
    with file.open("r+b") as raw:
        raw.seek(5 * 4096)
        raw.write(b"\xff" * 4096)
    assert check(file) != []
