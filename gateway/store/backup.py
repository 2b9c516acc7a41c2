"""Whole copies of a SQLite store while the service writes, and checks of its soundness."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from broker.model.errors import Busy, Refused
from gateway.store.place import place

FOUND_AT_MOST = 20


def backup_store(text: str, target: Path) -> None:
    """Copies the store of a path or URL to `target` as of one moment. Raises Refused, Busy."""
    where = place(text)
    if where.file is None:
        raise Refused(
            f"database {where.name} cannot be copied to a file by this program",
            hint="use pg_dump for a PostgreSQL store",
        )
    backup(where.file, target)


def backup(source: Path, target: Path) -> None:
    """Copies a SQLite file that others may be writing; `target` appears whole or not at all.

    Raises Refused if `source` cannot be read, Busy if `target` cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    with closing(_open(source)) as here:
        try:
            part.unlink(missing_ok=True)
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(part)) as there:
                here.backup(there)
                there.execute("PRAGMA journal_mode=DELETE")
            _sync(part)
            part.rename(target)
            _sync(target.parent)
        except (OSError, sqlite3.Error) as error:
            part.unlink(missing_ok=True)
            raise Busy(
                f"backup {target} of database {source}: {error}",
                hint="see that its folder exists, may be written and has space",
            ) from error


def check(file: Path) -> list[str]:
    """What is wrong with a SQLite store, in words; empty if it is sound. Raises Refused."""
    with closing(_open(file)) as connection:
        try:
            return [*_damage(connection), *_dangling(connection), *_changed_blobs(connection)]
        except sqlite3.DatabaseError as error:
            return [f"{file}: {error}"]


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    for (text,) in connection.execute(f"PRAGMA integrity_check({FOUND_AT_MOST})"):
        if text != "ok":
            yield text


def _dangling(connection: sqlite3.Connection) -> Iterator[str]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a row of {parent} that is not there"


def _changed_blobs(connection: sqlite3.Connection) -> Iterator[str]:
    for digest, data in connection.execute("SELECT digest, bytes FROM blobs"):
        if sha256(data).hexdigest() != digest:
            yield f"blob {digest} has other bytes than it was stored with"


def _open(file: Path) -> sqlite3.Connection:
    """For reading; a file that is not there is not made."""
    if not file.is_file():
        raise Refused(f"database {file}: no such file", hint="see SKYPURZA_STATE_DB")
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA busy_timeout=5000")
    connection.execute("PRAGMA query_only=ON")
    return connection


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
