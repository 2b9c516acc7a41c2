"""The one writing connection: a transaction's boundaries, a bare driver's cursor within."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine

BEGIN = {"sqlite": "BEGIN IMMEDIATE"}
"""SQLite takes its lock before the first read; PostgreSQL's driver begins by itself."""


class Writer:
    """Hands out cursors on which `statements.Write` runs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._begin = BEGIN.get(engine.dialect.name)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor; committed when left without an error, else nothing of it stands."""
        connection = self.engine.raw_connection()
        try:
            cursor = connection.cursor()
            if self._begin is not None:
                cursor.execute(self._begin)
            yield cursor
            connection.commit()
        except BaseException:
            _undo(connection)
            raise
        finally:
            connection.close()

    def dispose(self) -> None:
        self.engine.dispose()


def _undo(connection: Any) -> None:
    """A connection that cannot even go back is not used again."""
    try:
        connection.rollback()
    except Exception:  # border: whatever the driver says, what led here is told
        connection.invalidate()
