"""Where the database is: a path or URL to connections that are set up as the store needs them."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from broker.model.errors import Refused
from gateway.store.faults import told

MOUNTS = Path("/proc/self/mounts")
OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
"""How a blank and the like stand there."""
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs", "fuse.glusterfs"})
"""File systems on which SQLite's locks and shared memory do not hold."""
ON_DISK = ("journal_mode=WAL", "synchronous=FULL", "journal_size_limit=67108864")
ALWAYS = ("foreign_keys=ON", "busy_timeout=5000")
READERS = 4
DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A database by its URL."""

    url: URL

    @property
    def dialect(self) -> str:
        return self.url.get_backend_name()

    @property
    def file(self) -> Path | None:
        """None for PostgreSQL and for a store in memory."""
        path = self.url.database
        in_file = self.dialect == "sqlite" and path and path != ":memory:"
        return Path(path) if in_file and path else None

    @property
    def name(self) -> str:
        """For messages: the path, or the URL without a password."""
        if self.dialect == "sqlite":
            return str(self.file or "in memory")
        return self.url.render_as_string(hide_password=True)


def place(text: str) -> Place:
    """From a path or an SQLAlchemy URL (SKYPURZA_STATE_DB). Raises Refused for another database."""
    if text == ":memory:" or "://" not in text:
        return Place(URL.create(DRIVERS["sqlite"], database=text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise Refused(f"SKYPURZA_STATE_DB: {text!r} is not a database URL: {error}") from error
    if url.drivername in DRIVERS:
        url = url.set(drivername=DRIVERS[url.drivername])
    if url.drivername not in DRIVERS.values():
        raise Refused(
            f"SKYPURZA_STATE_DB: {url.drivername} is not a database that can be used",
            hint="give a path, sqlite:///PATH or postgresql://USER@HOST/NAME",
        )
    return Place(url)


def connect(where: Place, *, mounts: Path = MOUNTS) -> tuple[Engine, Engine]:
    """The writer's connections (one) and the readers'. Raises Refused."""
    if where.dialect == "postgresql":
        return _postgres(where)
    if where.file is None:
        writer = _sqlite_writer(where, ALWAYS)
        return writer, writer
    _prepare(where.file, mounts)
    return _sqlite_writer(where, (*ALWAYS, *ON_DISK)), _sqlite_reader(where)


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system that `path` is on, by the text of /proc/mounts."""
    found = [
        (len(place.parts), kind)
        for place, kind in map(_mount, mounts.splitlines())
        if path.is_relative_to(place)
    ]
    return max(reversed(found), key=lambda each: each[0], default=(0, "unknown"))[1]


def _file_system(path: Path, mounts: Path) -> str:
    if not mounts.exists():
        return "unknown"
    return file_system(path, mounts.read_text(errors="surrogateescape"))


def _mount(line: str) -> tuple[Path, str]:
    _, place, kind, *_ = line.split(" ")
    plain = OCTAL.sub(lambda it: bytes([int(it[1], 8)]), os.fsencode(place))
    return Path(os.fsdecode(plain)), kind


def _prepare(file: Path, mounts: Path) -> None:
    """Refuses a place where it would be damaged; makes the file so that only its owner reads it."""
    kind = _file_system(file.resolve(), mounts)
    if kind in REMOTE:
        raise Refused(
            f"database {file} is on {kind}, where SQLite's locks do not hold",
            hint="put it on a local disk (SKYPURZA_STATE_DB), or use PostgreSQL",
        )
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise Refused(
            f"database {file}: {error.strerror}",
            hint="see that its folder exists and that the service's user may write there",
        ) from error


def reach(where: Place) -> None:
    """Opens one connection to a server's database. Raises Refused, Busy where none is to be had."""
    for engine in _postgres(where):
        with told(where.name), engine.connect():
            pass
        engine.dispose()


def _sqlite_writer(where: Place, pragmas: tuple[str, ...]) -> Engine:
    engine = _sqlite(where, pragmas, size=1)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _sqlite_reader(where: Place) -> Engine:
    return _sqlite(where, (*ALWAYS, "query_only=ON"), size=READERS)


def _sqlite(where: Place, pragmas: tuple[str, ...], *, size: int) -> Engine:
    """Without a driver that begins transactions of its own accord."""
    engine = create_engine(
        where.url,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"isolation_level": None, "check_same_thread": False},
    )
    event.listen(engine, "connect", _setting(pragmas))
    return engine


def _setting(pragmas: tuple[str, ...]) -> Callable[[Any, object], None]:
    def set_up(connection: Any, _: object) -> None:
        connection.create_function("lower", 1, str.lower, deterministic=True)  # its own: ASCII
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    return set_up


def _postgres(where: Place) -> tuple[Engine, Engine]:
    """Readers cannot write and see each statement's own moment."""
    try:
        writer = create_engine(where.url, pool_size=1, max_overflow=0)
        reader = create_engine(
            where.url,
            pool_size=READERS,
            max_overflow=0,
            pool_pre_ping=True,
            isolation_level="AUTOCOMMIT",
            connect_args={"options": "-c default_transaction_read_only=on"},
        )
    except ImportError as error:
        raise Refused(
            f"database {where.name} needs the PostgreSQL driver: {error}",
            hint="pip install 'skypurza[postgres]'",
        ) from error
    return writer, reader
