"""Old records: kept in archive files where that is wanted, then taken out; the sums stay.

An archive is a file of JSON lines, each a table's name and a row as it was. It stands on disk
before its rows go; loading one twice loads it once.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import BindParameter, Select, Table, bindparam, exists, or_, select

from broker.model.events import BookChanged
from broker.model.ids import digest_of
from broker.model.reservation import ReservationGone, ReservationSet
from gateway.store import records, rows
from gateway.store import statements as do
from gateway.store import tables as t
from gateway.store.rollup import CONSUMER, POSITIONS, Reader

PAGE = 2000
"""Jobs, events or entries that go in one file and one transaction."""
JOBS = (
    select(t.jobs)
    .where(t.jobs.c.over == 1, t.jobs.c.ended < bindparam("before"))
    .order_by(t.jobs.c.ended)
    .limit(bindparam("page"))
)
EVENTS = (
    select(t.events)
    .where(t.events.c.node.is_not(None), t.events.c.at < bindparam("before"))
    .order_by(t.events.c.seq)
    .limit(bindparam("page"))
)
ENTRIES = (
    select(t.ledger)
    .where(t.ledger.c.at < bindparam("before"), t.ledger.c.seq <= bindparam("summed"))
    .order_by(t.ledger.c.at)
    .limit(bindparam("page"))
)
USAGE = (
    select(t.usage)
    .where(t.usage.c.start + t.usage.c.span <= bindparam("before"))
    .order_by(*t.usage.primary_key)
    .limit(bindparam("page"))
)
"""Sums of use, not those of money."""
RESERVATIONS = select(t.events).where(t.OF_RESERVATIONS).order_by(t.events.c.seq)
HAVE_STEPS: BindParameter[str] = bindparam("steps", '%"steps":[%')
"""In a record's text; quotes within strings stand behind a backslash there."""
STEPS = (
    select(t.jobs)
    .where(
        t.jobs.c.over == 1,
        t.jobs.c.ended < bindparam("before"),
        or_(
            t.jobs.c.doc.like(HAVE_STEPS),
            exists().where(t.runs.c.job_id == t.jobs.c.job_id, t.runs.c.doc.like(HAVE_STEPS)),
        ),
    )
    .order_by(t.jobs.c.ended)
    .limit(bindparam("page"))
)
TRANSACTIONS = (
    select(t.events)
    .where(t.OF_THE_BOOK, t.events.c.at < bindparam("before"))
    .order_by(t.events.c.seq)
)
OF_JOBS = {
    table: select(table).where(table.c[column].in_(bindparam("jobs", expanding=True)))
    for table, column in ((t.runs, "job_id"), (t.events, "job"))
}
SPECS = select(t.specs).where(t.specs.c.digest.in_(bindparam("digests", expanding=True)))
Row = Mapping[str, Any]
Rows = list[tuple[Table, Row]]
Specs = Mapping[str, str]
"""Documents of specs by their digests."""
Rest = Callable[[Row], str | None]
"""The document that stays of a row; None: there is nothing in it that goes."""


def _without_steps(row: Row) -> str | None:
    doc = json.loads(row["doc"])
    return _compact(doc) if doc.pop("steps", None) else None


UNNAMED = {"actor": 0, "by": "", "action": "", "where": "", "info": ""}
"""Accounts are made of what transactions changed, which stays; who asked for what goes."""


def _unnamed(row: Row) -> str | None:
    doc = json.loads(row["doc"])
    if row["kind"] != BookChanged.__name__ or not doc["action"]:
        return None
    return _compact(doc | UNNAMED)


def _compact(doc: Mapping[str, Any]) -> str:
    return json.dumps(doc, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that is purged: its records, in whose order, and the instant that each has."""

    table: Table
    old: Select[Any]
    at: str
    summed: bool = False
    """Only what every reader of the ledger has had."""
    rest: Rest | None = None
    """Of which rows a part stays; None: they go whole."""
    of_jobs: bool = False
    """With what hangs on jobs."""


KINDS = {
    "job": Kind(t.jobs, JOBS, "ended", of_jobs=True),
    "step": Kind(t.jobs, STEPS, "ended", rest=_without_steps, of_jobs=True),
    "event": Kind(t.events, EVENTS, "at"),
    "ledger": Kind(t.ledger, ENTRIES, "at", summed=True),
    "usage": Kind(t.usage, USAGE, "start"),
    "resv": Kind(t.events, RESERVATIONS, "at"),
    "txn": Kind(t.events, TRANSACTIONS, "at", rest=_unnamed),
}
"""As slurmdbd names them; events are those of machines, the ledger is ours."""
OF_PARTS = {t.jobs: _without_steps, t.runs: _without_steps, t.events: _unnamed}
"""What may have stayed of a row, by its table."""


def old(reader: Reader, kind: str, before: int, *, page: int = PAGE) -> Rows:
    """A page of what is from before the instant, with all that hangs on it. Raises Busy."""
    this = KINDS[kind]
    if kind == "resv":
        return _past_reservations(reader, before)
    values = {"before": before, "page": page}
    values |= {"summed": _summed(reader)} if this.summed else {}
    found: Rows = [(this.table, _row(one)) for one in reader.read(this.old, values)]
    if this.of_jobs and found:
        jobs = [row["job_id"] for _, row in found]
        for table, statement in OF_JOBS.items():
            if this.rest is None or table is t.runs:
                found += [(table, _row(one)) for one in reader.read(statement, {"jobs": jobs})]
    return found if this.rest is None else [one for one in found if this.rest(one[1]) is not None]


def _past_reservations(reader: Reader, before: int) -> Rows:
    """What ever became of those that were gone by then, each from its first fact to its last."""
    lives: dict[str, Rows] = {}
    found: Rows = []
    for one in reader.read(RESERVATIONS, {}):
        fact, row = records.event(one.kind, one.doc, None), (t.events, _row(one))
        if isinstance(fact, ReservationSet):
            lives.setdefault(fact.record.name, []).append(row)
        elif isinstance(fact, ReservationGone):
            life = [*lives.pop(fact.name, []), row]
            found += life if fact.at < before else []
    return found


def _summed(reader: Reader) -> int:
    """Up to which entry the sums and every plugin have come."""
    rows = reader.read(POSITIONS, {})
    found: dict[str, int] = dict(map(tuple, rows))
    return min(found.values()) if CONSUMER in found else 0


def _row(one: Any) -> Row:
    return dict(one._mapping)


def archived(reader: Reader, rows: Rows, folder: Path, *, cluster: str, kind: str) -> None:
    """A file of these rows, on disk before this returns. Raises OSError, Busy."""
    at = KINDS[kind].at
    moments = [row[at] for _, row in rows if at in row]
    name = f"{cluster}_{kind}_archive_{_stamp(min(moments))}_{_stamp(max(moments))}"
    path, number = folder / f"{name}.jsonl", 1
    while path.exists():
        path, number = folder / f"{name}.{number}.jsonl", number + 1
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        for table, row in [*_specs(reader, rows), *rows]:
            file.write(json.dumps({"table": table.name, "row": row}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def _stamp(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _specs(reader: Reader, rows: Rows) -> Rows:
    digests = sorted({row["spec"] for _, row in rows if row.get("spec")})
    return [(t.specs, _row(one)) for one in reader.read(SPECS, {"digests": digests})]


def drop(cursor: Any, writes: do.Writes, rows: Rows, *, kind: str) -> None:
    """Takes them out, or what of them goes; one of the writer's transactions."""
    rest = KINDS[kind].rest
    if rest is not None:
        _turn(cursor, writes, [(table, row, row["doc"], rest(row)) for table, row in rows])
        return
    for table, write in writes.drop.items():
        gone = [_key(table, row) for own, row in rows if own is table]
        if gone:
            write.run(cursor, gone)


def _key(table: Table, row: Row) -> dict[str, Any]:
    return {f"gone_{column.name}": row[column.name] for column in table.primary_key}


Turned = tuple[Table, Row, str | None, str | None]
"""Which row gets another document: the one it has, the one it gets; None: there is no such."""


def _turn(cursor: Any, writes: do.Writes, turned: Sequence[Turned]) -> None:
    """Where a row has changed since, it stays as it is."""
    for table, write in writes.turn.items():
        found = [
            {**_key(table, row), "was": was, "is": new}
            for own, row, was, new in turned
            if own is table and was is not None and new is not None
        ]
        if found:
            write.run(cursor, found)


def archive_lines(path: Path) -> Sequence[str]:
    """Of a file; a device might have no end. Raises OSError, ValueError."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, os.strerror(code), str(path))
    return path.read_text(encoding="utf-8").splitlines()


def read_archive(lines: Sequence[str]) -> Iterator[tuple[Table, Row]]:
    """The rows of an archive. Raises ValueError for what is none, or not as this store wrote it."""
    specs: dict[str, str] = {}
    known = {table.name: table for table in AS_MADE}
    for number, line in enumerate(lines, start=1):
        try:
            found = json.loads(line)
            table, row = known[found["table"]], found["row"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} is no row of an archive") from error
        if not isinstance(row, dict) or row.keys() != set(table.c.keys()):
            raise ValueError(f"line {number} is no row of table {table.name}")
        try:
            made = AS_MADE[table](row, specs)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} has a document that cannot be read") from error
        if any(row[name] != value for name, value in made.items() if name not in WRITTEN_ONCE):
            raise ValueError(f"line {number} is not what its document says")
        if table is t.specs:
            specs[row["digest"]] = row["doc"]
        yield table, row


def _spec(row: Row, _specs: Specs) -> Row:
    records.spec(row["doc"])
    return {"digest": digest_of(row["doc"].encode())}


def _job(row: Row, specs: Specs) -> Row:
    return rows.job(records.job(row["doc"], specs[row["spec"]]), rows.Shared())


def _run(row: Row, specs: Specs) -> Row:
    return rows.run(records.job(row["doc"], specs[row["spec"]]), rows.Shared())


def _event(row: Row, specs: Specs) -> Row:
    spec = None if row["spec"] is None else specs[row["spec"]]
    return rows.event(
        row["seq"], records.event(row["kind"], row["doc"], spec), shared=rows.Shared()
    )


def _use(row: Row, _specs: Specs) -> Row:
    """It has no document: each column is what its table says."""
    for column in t.usage.c:
        if not isinstance(row[column.name], column.type.python_type):
            raise TypeError(column.name)
    return {}


def _entry(row: Row, _specs: Specs) -> Row:
    return rows.entry(records.entry(row["doc"]), row["seq"])


AS_MADE: Mapping[Table, Callable[[Row, Specs], Row]] = {
    t.specs: _spec,
    t.jobs: _job,
    t.runs: _run,
    t.events: _event,
    t.ledger: _entry,
    t.usage: _use,
}
"""A row as it would be written anew from its document."""
WRITTEN_ONCE = ("spec", "doc")
"""Written by an older version they may look otherwise."""


def load(cursor: Any, writes: do.Writes, rows: Rows) -> None:
    """Puts back what is not there, and what is there in part; one of the writer's transactions."""
    for table, write in writes.load.items():
        found = [dict(row) for own, row in rows if own is table]
        if found:
            write.run(cursor, found)
    parts = [
        (table, row, OF_PARTS[table](row), row["doc"]) for table, row in rows if table in OF_PARTS
    ]
    _turn(cursor, writes, parts)
