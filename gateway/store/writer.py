"""The one writing connection: a transaction's boundaries, a bare driver's cursor within."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from sqlalchemy import Engine

BEGIN = {"sqlite": "BEGIN IMMEDIATE"}
"""SQLite takes its lock before the first read; PostgreSQL's driver begins by itself."""


class Writer:
    """Hands out cursors on which `statements.Write` runs; `keep` holds on to the connection.

    Taking one from SQLAlchemy's pool and giving it back costs as much as the shortest transaction.
    """

    def __init__(self, engine: Engine, *, keep: bool) -> None:
        self._engine = engine
        self._keep = keep
        self._begin = BEGIN.get(engine.dialect.name)
        self._kept: Any = None
        self._one = Lock()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor; committed when left without an error, else nothing of it stands."""
        with self._one:
            connection, self._kept = self._kept or self._engine.raw_connection(), None
            try:
                cursor = connection.cursor()
                if self._begin is not None:
                    cursor.execute(self._begin)
                yield cursor
                connection.commit()
            except BaseException:
                _undo(connection)
                raise
            if self._keep:
                self._kept = connection
            else:
                connection.close()

    def dispose(self) -> None:
        """Closes all; a transaction after this makes a connection anew."""
        with self._one:
            if self._kept is not None:
                self._kept.close()
            self._kept = None
            self._engine.dispose()


def _undo(connection: Any) -> None:
    """Gives it back; a connection that cannot even go back is not used again."""
    try:
        connection.rollback()
    except Exception:  # border: whatever the driver says, what led here is told
        connection.invalidate()
    connection.close()
