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

from sqlalchemy import Select, Table, bindparam, select

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
OF_JOBS = {
    table: select(table).where(table.c[column].in_(bindparam("jobs", expanding=True)))
    for table, column in ((t.runs, "job_id"), (t.events, "job"))
}
SPECS = select(t.specs).where(t.specs.c.digest.in_(bindparam("digests", expanding=True)))
Row = Mapping[str, Any]
Rows = list[tuple[Table, Row]]
Specs = Mapping[str, str]
"""Documents of specs by their digests."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that is purged: its records, in whose order, and the instant that each has."""

    table: Table
    old: Select[Any]
    at: str
    summed: bool = False
    """Only what every reader of the ledger has had."""


KINDS = {
    "job": Kind(t.jobs, JOBS, "ended"),
    "event": Kind(t.events, EVENTS, "at"),
    "ledger": Kind(t.ledger, ENTRIES, "at", summed=True),
    "usage": Kind(t.usage, USAGE, "start"),
    "resv": Kind(t.events, RESERVATIONS, "at"),
}
"""As slurmdbd names them; events are those of machines, the ledger is ours."""


def old(reader: Reader, kind: str, before: int) -> Rows:
    """A page of what is from before the instant, with all that hangs on it. Raises Busy."""
    this = KINDS[kind]
    if kind == "resv":
        return _past_reservations(reader, before)
    values = {"before": before, "page": PAGE}
    values |= {"summed": _summed(reader)} if this.summed else {}
    found: Rows = [(this.table, _row(one)) for one in reader.read(this.old, values)]
    if kind == "job" and found:
        jobs = [row["job_id"] for _, row in found]
        for table, statement in OF_JOBS.items():
            found += [(table, _row(one)) for one in reader.read(statement, {"jobs": jobs})]
    return found


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
    moments = [row[at] for table, row in rows if table is KINDS[kind].table]
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


def drop(cursor: Any, writes: do.Writes, rows: Rows) -> None:
    """Takes them out; one of the writer's transactions."""
    for table, write in writes.drop.items():
        keys = [column.name for column in table.primary_key]
        gone = [{f"gone_{key}": row[key] for key in keys} for own, row in rows if own is table]
        if gone:
            write.run(cursor, gone)


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
    """Puts back what is not there; one of the writer's transactions."""
    for table, write in writes.load.items():
        found = [dict(row) for own, row in rows if own is table]
        if found:
            write.run(cursor, found)
