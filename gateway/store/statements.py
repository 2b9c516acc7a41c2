"""Every statement of the store by name, built once from expressions for one database's dialect."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    Insert,
    Integer,
    Select,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import Dialect

from broker.model.commands import ASKED, ENDED
from broker.ports import HistoryQuery
from gateway.store import tables as t

INSERT: dict[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
"""The two have the same form of ON CONFLICT; SQLAlchemy gives each dialect a class of its own."""
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "sqlite": partial(sqlite.dialect, paramstyle="qmark"),
    "postgresql": partial(psycopg.dialect, paramstyle="format"),
}
"""As the drivers take statements: values by place."""
ROW = re.compile(r"(?<= VALUES )\([^()]*\)")
MOST_ROWS = 64
"""Of one statement; both databases take some hundred times more values."""

Turn = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Write:
    """A statement as text for its database's driver.

    Compiled once, and of one piece for many rows: what SQLAlchemy does anew at each execution costs
    ten times an insert, and the driver gives up the interpreter's lock at each.
    """

    sql: str
    names: tuple[str, ...]
    """Of the values, by place."""
    turns: tuple[tuple[str, Turn], ...] = ()
    """Columns whose values the driver cannot take as they are."""

    def run(self, cursor: Any, rows: Sequence[dict[str, Any]]) -> None:
        """Executes it for each row, which is used up."""
        for name, turn in self.turns:
            for row in rows:
                row[name] = turn(row[name])
        at_once, places = MOST_ROWS if ROW.search(self.sql) else 1, _places(self.names)
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            values = list(chain.from_iterable(map(places, some)))
            cursor.execute(_repeated(self.sql, len(some)), values)


@cache
def _places(names: tuple[str, ...]) -> Callable[[dict[str, Any]], Sequence[Any]]:
    """What takes the values out of a row."""
    take = itemgetter(*names)
    return take if len(names) > 1 else lambda row: (take(row),)


@lru_cache(1024)
def _repeated(sql: str, count: int) -> str:
    """The same insert of so many rows."""
    return ROW.sub(lambda row: ", ".join([row[0]] * count), sql) if count > 1 else sql


OF_ITS_SUBMISSION = ("array_base", "user", "uid", "submitted")
"""What of a job never changes."""
EMPTY = ("''", "0")
"""What a column may have, by whether it holds numbers."""
OF_ITS_STANDING = ("state", "over", "eligible", "started", "ended", "version", "doc")
"""What changes as it goes on."""
PURGED = (t.jobs, t.runs, t.events, t.ledger, t.usage)


class Writes:
    """Every statement of the writer, in the dialect of one database."""

    def __init__(self, dialect: str) -> None:
        self._insert = INSERT[dialect]
        self._dialect = DIALECTS[dialect]()
        self.add_events = self._ready(self._insert(t.events), t.events)
        self.add_specs = self._once(t.specs)
        self.add_blobs = self._once(t.blobs)
        self.add_entries = self._once(t.ledger)
        self.add_requests = self._once(t.requests)
        self.put_jobs = self._upsert(t.jobs, fixed=OF_ITS_SUBMISSION)
        self.move_jobs = self._moved(t.jobs, OF_ITS_STANDING)
        self.put_runs = self._upsert(t.runs)
        self.put_nodes = self._upsert(t.nodes)
        self.put_counters = self._upsert(t.counters)
        self.put_charges = self._upsert(t.charges)
        self.put_lease = self._upsert(t.leases)
        self.put_position = self._upsert(t.positions)
        self.drop_position = self._dropped(t.positions)
        self.add_usage, self.add_costs = self._summed(t.usage), self._summed(t.costs)
        self.part_node = self._ready(PART_NODE, t.nodes, {"gone_name": "name"})
        self.forget_requests = self._ready(FORGET_REQUESTS, t.requests, {"before": "at"})
        self.lease = self._ready(LEASE, t.leases)
        self.drop = {table: self._dropped(table) for table in PURGED}
        self.turn = {table: self._turned(table) for table in (t.jobs, t.runs, t.events)}
        self.load = {table: self._once(table) for table in (t.specs, *PURGED)}

    def _turned(self, table: Table) -> Write:
        """Sets the document of a row that has a certain one."""
        keys = {f"gone_{column.name}": column.name for column in table.primary_key}
        which = [table.c[column] == bindparam(name) for name, column in keys.items()]
        statement = update(table).where(*which, table.c.doc == bindparam("was"))
        statement = statement.values(doc=bindparam("is"))
        return self._ready(statement, table, keys | {"was": "doc", "is": "doc"})

    def _dropped(self, table: Table) -> Write:
        """Takes a row out by its key."""
        keys = {f"gone_{column.name}": column.name for column in table.primary_key}
        which = [table.c[column] == bindparam(name) for name, column in keys.items()]
        return self._ready(delete(table).where(*which), table, keys)

    def _once(self, table: Table) -> Write:
        statement = self._insert(table)
        key = list(table.primary_key)
        return self._ready(statement.on_conflict_do_nothing(index_elements=key), table)

    def _upsert(self, table: Table, *, fixed: Collection[str] = ()) -> Write:
        """`fixed` are columns that keep their first value, and so do their indexes."""
        statement = self._insert(table)
        kept = (*table.primary_key.columns.keys(), *fixed)
        statement = statement.on_conflict_do_update(
            index_elements=list(table.primary_key),
            set_={c.name: statement.excluded[c.name] for c in table.c if c.name not in kept},
        )
        return self._ready(statement, table)

    def _moved(self, table: Table, columns: Collection[str]) -> Write:
        """Sets these columns of rows that are there, many in one statement on both databases.

        An insert that always meets its row; the others of its values are never looked at.
        """
        statement = self._insert(table)
        keys = [column.name for column in table.primary_key]
        given: dict[str, Any] = {name: bindparam(name) for name in (*keys, *columns)}
        missing = (c for c in table.c if not c.nullable and c.name not in given)
        empty: dict[str, Any] = {
            c.name: literal_column(EMPTY[isinstance(c.type, Integer)]) for c in missing
        }
        statement = statement.values({**given, **empty}).on_conflict_do_update(
            index_elements=keys, set_={name: statement.excluded[name] for name in columns}
        )
        return self._ready(statement, table, {name: name for name in given})

    def _summed(self, table: Table) -> Write:
        """Adds to the amount that stands."""
        statement = self._insert(table)
        statement = statement.on_conflict_do_update(
            index_elements=list(table.primary_key),
            set_={"amount": table.c.amount + statement.excluded.amount},
        )
        return self._ready(statement, table)

    def _ready(self, statement: Any, table: Table, names: Mapping[str, str] | None = None) -> Write:
        """`names` are columns by the parameters that bear another name."""
        columns = names or {column.name: column.name for column in table.c}
        inserts = list(columns) if isinstance(statement, Insert) else None
        compiled = statement.compile(dialect=self._dialect, column_keys=inserts)
        turns = {
            name: table.c[column].type.bind_processor(self._dialect)
            for name, column in columns.items()
            if name in compiled.positiontup and isinstance(table.c[column].type, t.AnyText)
        }
        # Rows that are written together mostly have the same users, accounts and names.
        usable = tuple((name, lru_cache(1024)(turn)) for name, turn in turns.items() if turn)
        return Write(str(compiled), tuple(compiled.positiontup), usable)


PART_NODE: Update = (
    update(t.nodes)
    .where(t.nodes.c.name == bindparam("gone_name"), t.nodes.c.launch == bindparam("gone_launch"))
    .values(gone=bindparam("is_gone"))
)
ENDS = t.requests.alias("ends")
_BEGINS = func.substr(t.requests.c.id, literal_column("1"), literal_column(str(len(ASKED))))
_REQUEST = func.substr(t.requests.c.id, literal_column(str(len(ASKED) + 1)), type_=Text)
IS_OPEN = and_(
    _BEGINS.in_([literal_column(f"'{ASKED}'")]),
    ~exists().where(ENDS.c.id == literal_column(f"'{ENDED}'", Text) + _REQUEST),
)
"""A request that takes its time, and has come to nothing yet."""
FORGET_REQUESTS: Delete = delete(t.requests).where(
    t.requests.c.at < bindparam("before"), not_(IS_OPEN)
)
OPEN_REQUESTS = select(t.requests.c.reply).where(IS_OPEN).order_by(t.requests.c.at)

LEASE = select(t.leases.c.epoch).where(t.leases.c.role == bindparam("role")).with_for_update()
"""Locks the row on PostgreSQL: nobody takes over before the commit. SQLite has one writer."""
CHARGES = select(
    t.charges.c.user, t.charges.c.account, t.charges.c.qos, t.charges.c.partition, t.charges.c.doc
)
COUNTERS = select(t.counters.c.name, t.counters.c.value)
BLOB = select(t.blobs.c.bytes).where(t.blobs.c.digest == bindparam("digest"))
REPLY = select(t.requests.c.reply).where(t.requests.c.id == bindparam("request"))
REPLIES = select(t.requests.c.id, t.requests.c.reply).where(t.requests.c.at >= bindparam("since"))
LIVE_NODES = (
    select(t.nodes.c.doc).where(t.nodes.c.gone == 0).order_by(t.nodes.c.name, t.nodes.c.launch)
)
JOBS = select(t.jobs.c.job_id, t.jobs.c.doc, t.specs.c.doc).join(t.specs).order_by(t.jobs.c.job_id)
LIVE_JOBS = JOBS.where(
    or_(
        t.jobs.c.over == 0,
        and_(t.jobs.c.over == 1, t.jobs.c.ended >= bindparam("ended_after")),
    )
)
RUNS = (
    select(t.runs.c.doc, t.specs.c.doc)
    .join(t.specs)
    .where(t.runs.c.job_id == bindparam("job"))
    .order_by(t.runs.c.attempt)
)
EVENTS = (
    select(t.events.c.kind, t.events.c.doc, t.specs.c.doc)
    .outerjoin(t.specs)
    .where(t.events.c.job == bindparam("job"))
    .order_by(t.events.c.seq)
)
COSTS = (
    select(t.ledger.c.job, cast(func.sum(t.ledger.c.cost), BigInteger))
    .where(t.ledger.c.job.in_(bindparam("jobs", expanding=True)))
    .group_by(t.ledger.c.job)
)
ENTRIES = (
    select(t.ledger.c.at, t.ledger.c.key, t.ledger.c.doc)
    .where(
        t.ledger.c.at >= bindparam("since"),
        or_(t.ledger.c.at > bindparam("since"), t.ledger.c.key > bindparam("key")),
        t.ledger.c.at < bindparam("until"),
    )
    .order_by(t.ledger.c.at, t.ledger.c.key)
    .limit(bindparam("page"))
)
"""A page after an entry; keys are never empty, so the empty one begins."""
ENTRIES_OF_USER = ENTRIES.where(t.ledger.c.user == bindparam("user"))
ENTRIES_OF_JOB = (
    select(t.ledger.c.doc)
    .where(t.ledger.c.job == bindparam("job"))
    .order_by(t.ledger.c.at, t.ledger.c.key)
)
ELEMENTS = select(t.jobs.c.job_id).where(t.jobs.c.array_base.in_(bindparam("jobs", expanding=True)))


def jobs_by_id(query: HistoryQuery) -> Select[Any]:
    """Those of the ids `jobs` that the rest of the query wants.

    Hundreds of numbers written out cost PostgreSQL's driver a sixth less than as many parameters.
    """
    ids = t.jobs.c.job_id.in_(bindparam("jobs", expanding=True, literal_execute=True))
    return JOBS.where(ids, *_wanted(query))


def jobs_after(query: HistoryQuery) -> Select[Any]:
    """The first `page` jobs after the id `last` that the query wants, whatever ids it names."""
    return JOBS.where(t.jobs.c.job_id > bindparam("last"), *_wanted(query)).limit(bindparam("page"))


def _wanted(query: HistoryQuery) -> Sequence[ColumnElement[bool]]:
    """A pending job may be in several partitions: those are to be looked at again by the caller."""
    jobs = t.jobs.c
    named = (
        (jobs.uid, query.uids),
        (jobs.account, query.accounts),
        (func.lower(jobs.name, type_=jobs.name.type), query.names),
        (jobs.state, query.states),
    )
    wanted: list[ColumnElement[bool]] = []
    wanted += [column.in_(values) for column, values in named if values]
    if query.partitions:
        named_one = func.lower(jobs.partition, type_=jobs.partition.type).in_(query.partitions)
        wanted.append(or_(named_one, jobs.partition.contains(",")))
    if query.since is not None:
        wanted.append(or_(jobs.ended.is_(None), jobs.ended >= query.since))
    if query.until is not None:
        wanted.append(jobs.submitted <= query.until)
    return wanted
