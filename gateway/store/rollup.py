"""Sums of the ledger: kept by hour and day, read with what is not summed up yet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import BigInteger, Executable, Select, Table, bindparam, cast, func, select

from accounting import rollup as sums
from accounting.ledger import Entry
from broker.model.tally import Party
from gateway.store import records
from gateway.store import statements as do
from gateway.store import tables as t

CONSUMER = "sums"
FOREVER = 2**40
"""After every instant."""
MOST = 5000
"""Entries summed up in one transaction: some tenths of a second."""
TRIES = 5
LAST = select(func.max(t.ledger.c.seq))
POSITION = select(t.positions.c.seq).where(t.positions.c.consumer == bindparam("consumer"))
POSITIONS = select(t.positions.c.consumer, t.positions.c.seq)
FIRST_USE = select(func.min(t.usage.c.start)).where(
    t.usage.c.span == sums.HOUR, t.usage.c.tres == "cpu"
)
NODES = select(t.nodes.c.doc)
FRESH = (
    select(t.ledger.c.seq, t.ledger.c.doc)
    .where(t.ledger.c.seq > bindparam("last"))
    .order_by(t.ledger.c.seq)
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class Fresh:
    """Entries that a consumer has not had, in their order; `last` the number of the last."""

    consumer: str
    entries: tuple[Entry, ...]
    last: int


def add(cursor: Any, writes: do.Writes, found: Fresh) -> None:
    """Adds entries to the sums and notes how far they go; one of the writer's transactions."""
    use, money = sums.used(found.entries), sums.spent(found.entries)
    writes.add_usage.run(cursor, [_row(cell, amount) for cell, amount in use.items()])
    writes.add_costs.run(cursor, [_row(cell, amount) for cell, amount in money.items()])
    writes.put_position.run(cursor, [{"consumer": found.consumer, "seq": found.last}])


def _row(cell: sums.Cell | sums.CostCell, amount: int) -> dict[str, Any]:
    return {**cell._asdict(), "amount": amount}


class Reader(Protocol):
    """What sums are read through."""

    def read(self, statement: Executable, values: Mapping[str, object]) -> Sequence[Any]: ...


class Sums:
    """Reads of sums, for `SqlHistory`. All raise Busy."""

    def last_entry(self: Reader) -> int:
        """The highest number of an entry; 0 where there is none."""
        return self.read(LAST, {})[0][0] or 0

    def machines(self: Reader) -> dict[str, str]:
        """Our names of machines (`ec2-17.3`) and what is beside them (`ec2-17.3/volume`) by the
        provider's ids; those of the past too.
        """
        nodes = [records.node(doc) for (doc,) in self.read(NODES, {})]
        found = {n.machine.id: n.label for n in nodes if n.machine}
        parts = ((n.label, part) for n in nodes if n.machine for part in n.machine.parts)
        return found | {own: f"{label}/{name}" for label, (name, own) in parts}

    def position(self: Reader, consumer: str) -> int:
        """The number of the last entry that it has had; 0 where it had none."""
        return _position(self, consumer)

    def positions(self: Reader) -> dict[str, int]:
        """How far every consumer has come."""
        return {str(consumer): int(seq) for consumer, seq in self.read(POSITIONS, {})}

    def entries_after(self: Reader, last: int, most: int) -> list[tuple[int, Entry]]:
        """Entries with their numbers, in their order."""
        rows = self.read(FRESH, {"last": last, "most": most})
        return [(seq, records.entry(doc)) for seq, doc in rows]

    def fresh(self: Reader, consumer: str, most: int) -> Fresh:
        """The next entries that the consumer has not had."""
        return _fresh(self, consumer, _position(self, consumer), most=most)

    def first_use(self: Reader) -> int | None:
        """The hour of the first use that was summed up; None before that."""
        found: int | None = self.read(FIRST_USE, {})[0][0]
        return found

    def used(
        self: Reader, *, since: int, until: int, by: Sequence[str], tres: Sequence[str] = ()
    ) -> dict[tuple[Any, ...], int]:
        """TRES-seconds in whole hours of [since, until), by columns of USAGE, or `start`."""
        return _summed(self, _Asked(t.usage, tuple(by), since, until, frozenset(tres)))

    def spent(
        self: Reader, *, since: int, until: int, by: Sequence[str], span: int | None = None
    ) -> dict[tuple[Any, ...], int]:
        """Micro-dollars in whole hours of [since, until), by columns of COSTS, or `start`.

        `start` is that of days where they fit, unless `span` is an hour.
        """
        return _summed(self, _Asked(t.costs, tuple(by), since, until, span=span))

    def charges(
        self: Reader, since: int, *, span: int = sums.DAY, until: int = FOREVER
    ) -> list[tuple[Party, str, int, int]]:
        """What somebody used in whole spans: who, the TRES, the span's begin, TRES-seconds."""
        by = ("user", "account", "qos", "partition", "tres", "start")
        found = _summed(self, _Asked(t.usage, by, since, until, span=span))
        used = ((key, amount) for key, amount in found.items() if key[1])
        return [(Party(*key[:4]), key[4], key[5], amount) for key, amount in used]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be summed by which columns, from when until when."""

    table: Table
    by: tuple[str, ...]
    since: int
    until: int
    tres: frozenset[str] = frozenset()
    span: int | None = None
    """Spans of that length alone, also the first one, whole; else the longest that fit."""

    def cells(self, entries: Sequence[Entry]) -> Iterable[tuple[Any, int]]:
        """The sums of entries that are not summed up yet."""
        if self.table is t.costs:
            return sums.spent(entries).items()
        return [
            (cell, amount)
            for cell, amount in sums.used(entries).items()
            if not self.tres or cell.tres in self.tres
        ]

    def windows(self) -> list[tuple[int, int, int]]:
        if self.span is not None:
            return [(self.span, self.since - self.since % self.span, self.until)]
        return sums.windows(self.since, self.until)

    def statement(self) -> Select[Any]:
        columns = [self.table.c[name] for name in self.by]
        wanted = [self.table.c.tres.in_(sorted(self.tres))] if self.tres else []
        return (
            select(*columns, cast(func.sum(self.table.c.amount), BigInteger))
            .where(
                self.table.c.span == bindparam("span"),
                self.table.c.start >= bindparam("since"),
                self.table.c.start < bindparam("until"),
                *wanted,
            )
            .group_by(*columns)
        )


def _position(reader: Reader, consumer: str) -> int:
    found = reader.read(POSITION, {"consumer": consumer})
    return int(found[0][0]) if found else 0


def _fresh(reader: Reader, consumer: str, last: int, *, most: int) -> Fresh:
    rows = reader.read(FRESH, {"last": last, "most": most})
    return Fresh(
        consumer, tuple(records.entry(doc) for _, doc in rows), rows[-1][0] if rows else last
    )


def _summed(reader: Reader, asked: _Asked) -> dict[tuple[Any, ...], int]:
    """Read again where entries were summed up in between: nothing is missed or counted twice."""
    found: dict[tuple[Any, ...], int] = {}
    for _ in range(TRIES):
        before = _position(reader, CONSUMER)
        found = _kept(reader, asked)
        _add_rest(reader, asked, found, before=before)
        if _position(reader, CONSUMER) == before:
            break
    return {key: amount for key, amount in found.items() if amount}


def _kept(reader: Reader, asked: _Asked) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    statement = asked.statement()
    for span, since, until in asked.windows():
        for *key, amount in reader.read(statement, {"span": span, "since": since, "until": until}):
            found[tuple(key)] = found.get(tuple(key), 0) + amount
    return found


def _add_rest(
    reader: Reader, asked: _Asked, found: dict[tuple[Any, ...], int], *, before: int
) -> None:
    windows, last = asked.windows(), before
    while (page := _fresh(reader, CONSUMER, last, most=MOST)).entries:
        last = page.last
        for cell, amount in asked.cells(page.entries):
            if any(s == cell.span and a <= cell.start < b for s, a, b in windows):
                key = tuple(getattr(cell, name) for name in asked.by)
                found[key] = found.get(key, 0) + amount
