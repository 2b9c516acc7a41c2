"""The tables, the same on SQLite and PostgreSQL.

Numbers come from the engine, instants and money are BIGINT, records are JSON documents beside the
columns that history filters on.
"""

import re

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from gateway.store.windows import span_indexes

METADATA = MetaData()
UNSAFE = re.compile("[\\\\\\x00\\ud800-\\udfff]")
ESCAPE = re.compile(r"\\([0-9a-f]{4})")


class AnyText(TypeDecorator[str]):
    """Text of any code points: those a database refuses, and the backslash, stand as `\\udce9`.

    Equal strings stay equal and different ones different, so it can be a key and be filtered on.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None else UNSAFE.sub(lambda it: f"\\{ord(it[0]):04x}", value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None else ESCAPE.sub(lambda it: chr(int(it[1], 16)), value)


def _doc() -> Column[str]:
    return Column("doc", Text, nullable=False)


def _spec(*, nullable: bool = False) -> Column[str]:
    return Column("spec", Text, ForeignKey("specs.digest"), nullable=nullable)


specs = Table("specs", METADATA, Column("digest", Text, primary_key=True), _doc())

jobs = Table(
    "jobs",
    METADATA,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("array_base", BigInteger),
    Column("array_task", BigInteger),
    Column("user", AnyText, nullable=False),
    Column("uid", BigInteger, nullable=False),
    Column("account", AnyText, nullable=False),
    Column("partition", AnyText, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("state", Text, nullable=False),
    Column("over", SmallInteger, nullable=False),
    Column("submitted", BigInteger, nullable=False),
    Column("eligible", BigInteger),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("version", BigInteger, nullable=False),
    _spec(),
    _doc(),
    Index("jobs_over_ended", "over", "ended"),
    Index("jobs_user", "user"),
    Index("jobs_array_base", "array_base"),
    *span_indexes(),
)

runs = Table(
    "runs",
    METADATA,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", BigInteger, primary_key=True, autoincrement=False),
    _spec(),
    _doc(),
)

OF_THE_BOOK = text("kind = 'BookChanged'")
"""Few among many, and all read at a start."""

OF_RESERVATIONS = text("kind IN ('ReservationSet', 'ReservationGone')")

OF_PARTITIONS = text("kind IN ('PartitionSet', 'PartitionGone')")

OF_BOOTS = text("kind IN ('BootsSet', 'BootsGone')")

OF_VOLUMES = text("kind IN ('VolumeSet', 'VolumeGone')")

events = Table(
    "events",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job", BigInteger),
    Column("node", AnyText),
    Column("launch", BigInteger),
    _spec(nullable=True),
    _doc(),
    Index("events_job", "job"),
    Index("events_book", "seq", sqlite_where=OF_THE_BOOK, postgresql_where=OF_THE_BOOK),
    Index(
        "events_reservations",
        "seq",
        sqlite_where=OF_RESERVATIONS,
        postgresql_where=OF_RESERVATIONS,
    ),
    Index("events_partitions", "seq", sqlite_where=OF_PARTITIONS, postgresql_where=OF_PARTITIONS),
    Index("events_boots", "seq", sqlite_where=OF_BOOTS, postgresql_where=OF_BOOTS),
    Index("events_volumes", "seq", sqlite_where=OF_VOLUMES, postgresql_where=OF_VOLUMES),
)

nodes = Table(
    "nodes",
    METADATA,
    Column("name", AnyText, primary_key=True),
    Column("launch", BigInteger, primary_key=True, autoincrement=False),
    Column("gone", SmallInteger, nullable=False),
    _doc(),
    Index("nodes_gone", "gone"),
)
"""Live machines, and those of the past with their last record."""

ledger = Table(
    "ledger",
    METADATA,
    Column("key", AnyText, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job", BigInteger),
    Column("account", AnyText, nullable=False),
    Column("user", AnyText, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("seq", BigInteger),
    _doc(),
    Index("ledger_at", "at"),
    Index("ledger_seq", "seq"),
    Index("ledger_job", "job"),
    Index("ledger_user", "user", "at"),
)

usage = Table(
    "usage",
    METADATA,
    Column("span", BigInteger, primary_key=True, autoincrement=False),
    Column("tres", AnyText, primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("account", AnyText, primary_key=True),
    Column("user", AnyText, primary_key=True),
    Column("qos", AnyText, primary_key=True),
    Column("partition", AnyText, primary_key=True),
    Column("wckey", AnyText, primary_key=True),
    Column("reservation", AnyText, primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""TRES-seconds of ended attempts by hour and day; the key begins with what reports ask for."""

costs = Table(
    "costs",
    METADATA,
    Column("span", BigInteger, primary_key=True, autoincrement=False),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    *(
        Column(name, AnyText, primary_key=True)
        for name in ("account", "user", "qos", "partition", "instance_type", "region", "market")
    ),
    Column("why", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Micro-dollars of the ledger by hour and day."""

charges = Table(
    "charges",
    METADATA,
    *(Column(name, AnyText, primary_key=True) for name in ("user", "account", "qos", "partition")),
    _doc(),
)
"""What past jobs used, as it counts for limits and shares as of an instant."""

positions = Table(
    "positions",
    METADATA,
    Column("consumer", AnyText, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)
"""Up to which entry of the ledger each of its readers has come."""

blobs = Table(
    "blobs",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)

requests = Table(
    "requests",
    METADATA,
    Column("id", AnyText, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("reply", AnyText, nullable=False),
    Index("requests_at", "at"),
)

counters = Table(
    "counters",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

leases = Table(
    "leases",
    METADATA,
    Column("role", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", AnyText, nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""Who writes: a transaction of an earlier epoch is refused."""
