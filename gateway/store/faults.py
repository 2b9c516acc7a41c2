"""What a database that cannot serve now says, as Busy with the file's name and the way out."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from broker.model.errors import Busy, Refused, SpzError

PRIMARY = 0xFF
"""An extended SQLite code's primary one."""
FREE_SPACE = "free space on its file system; nothing else has to be done"
ONE_WRITER = "see which process has it open (fuser FILE), or try again"

NOT_OURS = ("is not a database", "name another file in SKYPURZA_STATE_DB")

SQLITE = {
    sqlite3.SQLITE_NOTADB: NOT_OURS,
    sqlite3.SQLITE_CORRUPT: ("is damaged", "stop the service and go back to a backup"),
    sqlite3.SQLITE_FULL: ("the disk is full", FREE_SPACE),
    sqlite3.SQLITE_READONLY: (
        "is read-only",
        "give the service's user write access to file and folder",
    ),
    sqlite3.SQLITE_BUSY: ("is locked by another process", ONE_WRITER),
    sqlite3.SQLITE_LOCKED: ("is locked by another reader", ONE_WRITER),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written",
        "see the kernel's log for what the disk says",
    ),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "see that its folder exists and may be written"),
}
POSTGRES = {
    "53100": ("the server's disk is full", FREE_SPACE),
    "53": ("the server is short of resources", "raise its limits, or try again"),
    "25006": ("is read-only", "point SKYPURZA_STATE_DB at the primary server"),
    "55P03": ("is locked by another session", "try again"),
    "40": ("another session got in between", "try again"),
    "57": ("the server is shutting down", "try again when it is up"),
    "08": ("the server does not answer", "see that it runs and is reachable"),
}
"""By SQLSTATE, whole or its class."""
SQLSTATE_CLASS = 2
OPERATIONAL = "OperationalError"


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turns the driver's errors that may pass into Busy; `name` is the file's or the server's.

    Raises Refused for a file that is no database.
    """
    try:
        yield
    except PoolTimeout as error:
        raise Busy(f"database {name}: too many readers at once", hint="try again") from error
    except Exception as error:  # border: drivers have no class in common
        refusal = _refusal(name, error)
        if refusal is None:
            raise
        raise refusal from error


def _refusal(name: str, told: Exception) -> SpzError | None:
    """Of the driver's own error, or of SQLAlchemy's that bears it."""
    error = told.orig if isinstance(told, DBAPIError) else told
    lost = OPERATIONAL in {*_names(error), *_names(told)}
    found = _sqlite(error) if isinstance(error, sqlite3.Error) else _postgres(error, lost=lost)
    if found is None:
        return None
    what, way_out = found
    kind = Refused if found is NOT_OURS else Busy
    return kind(f"database {name}: {what} ({error}): {way_out}", hint=way_out)


def _sqlite(error: sqlite3.Error) -> tuple[str, str] | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else SQLITE.get(code & PRIMARY)


def _postgres(error: BaseException | None, *, lost: bool) -> tuple[str, str] | None:
    """Of an error that bears a SQLSTATE; that of a lost connection is empty."""
    state = getattr(error, "sqlstate", "")
    if state is None:
        return POSTGRES["08"] if lost else None
    return POSTGRES.get(state) or POSTGRES.get(state[:SQLSTATE_CLASS])


def _names(error: BaseException | None) -> list[str]:
    """Of its classes: PEP 249 prescribes them, and the driver need not be installed."""
    return [kind.__name__ for kind in type(error).__mro__]
