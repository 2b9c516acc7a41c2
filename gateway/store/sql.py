"""The store over SQLAlchemy Core: one writer's transactions, and what a start reads."""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from accounting.ids import JobId
from accounting.ledger import Entry
from accounting.rollup import DAY
from broker.model.boots import BootsEvent
from broker.model.events import BookChanged, Event
from broker.model.ids import Digest, NodeName
from broker.model.job import Job, Run
from broker.model.node import Node
from broker.model.partition import PartitionEvent
from broker.model.reservation import ReservationEvent
from broker.model.tally import Charges, Party
from broker.model.volume import VolumeEvent
from broker.ports import UNKNOWN, Clock, Counters, HistoryQuery
from gateway.store import lease, purge, records, rollup, rows
from gateway.store import statements as do
from gateway.store.faults import told
from gateway.store.history import SqlHistory
from gateway.store.place import Place, connect, place
from gateway.store.schema import make_ready
from gateway.store.writer import Writer


def open_store(text: str, *, clock: Clock) -> "SqlStore":
    """The store at a path, a SQLAlchemy URL or `:memory:`, made or migrated if need be.

    Raises Refused for a place or tables that cannot be used, Busy if it does not answer now.
    """
    where = place(text)
    writer, readers = connect(where)
    try:
        with told(where.name):
            make_ready(writer, where)
    except BaseException:
        writer.dispose()
        readers.dispose()
        raise
    return SqlStore(where, (writer, readers), clock=clock)


class SqlStore:
    """`broker.ports.Store`; `history` reads beside it from any thread."""

    def __init__(self, where: Place, engines: tuple[Engine, Engine], *, clock: Clock) -> None:
        self.where = where
        writer, self._readers = engines
        self._writer = Writer(writer, keep=where.dialect != "sqlite" or where.file is not None)
        self._name = where.name
        self._clock = clock
        self._writes = do.Writes(where.dialect)
        self._shared = rows.Shared()
        self._last_entry: int | None = None
        self.history = SqlHistory(self._readers, self._name)

    @contextmanager
    def transaction(self, *, epoch: int) -> Iterator["SqlTx"]:
        """All or nothing, durable when left without an error. Raises LostLease, Busy."""
        if self._last_entry is None:  # before: a database in memory has one connection for all
            self._last_entry = self.history.last_entry()
        with self._shared.settled(), told(self._name), self._writer.transaction() as cursor:
            lease.check(cursor, self._writes, epoch)
            yield SqlTx(
                cursor,
                self._writes,
                shared=self._shared,
                now=self._clock.now(),
                number=self._number,
            )

    def take_lease(self) -> int:
        """Begins an epoch, to be named in transactions; those of earlier ones fail from now on."""
        holder = f"{socket.gethostname()}:{os.getpid()}"
        with told(self._name), self._writer.transaction() as cursor:
            return lease.take(cursor, self._writes, holder=holder, at=self._clock.now())

    def forget(self, before: int) -> int:
        """Drops requests remembered before an instant; says how many."""
        with told(self._name), self._writer.transaction() as cursor:
            self._writes.forget_requests.run(cursor, [{"before": before}])
            dropped: int = cursor.rowcount
            return dropped

    def kept_charges(self) -> Charges:
        """What everybody has used, as it was saved last."""
        found = self.history.read(do.CHARGES, {})
        return {Party(*whose): records.charge(doc) for *whose, doc in found}

    def counters(self) -> Counters | None:
        """None in a new store."""
        found = dict(self.history.read(do.COUNTERS, {}))
        return Counters(**found) if found else None

    def live_jobs(self, *, ended_after: int) -> Sequence[Job]:
        """Jobs that are not over, and those that ended at `ended_after` or later; by id."""
        found = self.history.read(do.LIVE_JOBS, {"ended_after": ended_after})
        return [records.job(doc, spec) for _, doc, spec in found]

    def jobs_named(self, jobs: Sequence[JobId]) -> Sequence[Job]:
        """Records of these ids, and every element of the arrays that bear them, over or not."""
        return list(self.history.jobs(HistoryQuery(jobs=tuple(jobs)))) if jobs else []

    def live_nodes(self) -> Sequence[Node]:
        """By name."""
        return [records.node(doc) for (doc,) in self.history.read(do.LIVE_NODES, {})]

    def blob(self, digest: Digest) -> bytes:
        """Raises Unknown."""
        return self.history.blob(digest)

    def replies(self, since: int) -> Mapping[str, str]:
        """Requests remembered since an instant, each with its reply."""
        return dict(self.history.read(do.REPLIES, {"since": since}))

    def roll_up(self, most: int = rollup.MOST) -> int:
        """Sums up entries that are not summed up yet, at most so many; says how many. Raises Busy.

        To be called by one thread at a time; the sums and how far they go are one transaction.
        """
        found = self.history.fresh(rollup.CONSUMER, most)
        if found.entries:
            with told(self._name), self._writer.transaction() as cursor:
                rollup.add(cursor, self._writes, found)
        return len(found.entries)

    def purge(
        self, kind: str, before: int, *, archive: Path | None, cluster: str, page: int = purge.PAGE
    ) -> int:
        """Takes out records from before an instant, into files of a folder if there is one.

        `kind` is one of `purge.KINDS`; returns how many rows went. Raises OSError, Busy.
        """
        gone = 0
        while rows := purge.old(self.history, kind, before, page=page):
            if archive is not None:
                purge.archived(self.history, rows, archive, cluster=cluster, kind=kind)
            with told(self._name), self._writer.transaction() as cursor:
                purge.drop(cursor, self._writes, rows, kind=kind)
            gone += len(rows)
        return gone

    def load_archive(self, path: Path) -> int:
        """Puts back an archive's rows, and parts of rows, that are not there.

        Raises OSError, ValueError, Busy.
        """
        found = list(purge.read_archive(purge.archive_lines(path)))
        with told(self._name), self._writer.transaction() as cursor:
            purge.load(cursor, self._writes, found)
        return len(found)

    def charges(
        self, since: int, *, span: int = DAY, until: int = rollup.FOREVER
    ) -> Sequence[tuple[Party, str, int, int]]:
        """What was used in whole spans: whose, the TRES, the span's begin, TRES-seconds."""
        return self.history.charges(since, span=span, until=until)

    def position(self, consumer: str) -> int:
        """Up to which entry a consumer of the ledger has come."""
        return self.history.position(consumer)

    def entries_after(self, last: int, most: int) -> Sequence[tuple[int, Entry]]:
        """Entries of the ledger with their numbers, in their order."""
        return self.history.entries_after(last, most)

    def positions(self) -> Mapping[str, int]:
        """How far every consumer has come."""
        return self.history.positions()

    def last_entry(self) -> int:
        """The highest number of an entry."""
        return self.history.last_entry()

    def keep_position(self, consumer: str, seq: int | None) -> None:
        """Up to which entry it has come; None: there is no such consumer. Raises Busy."""
        with told(self._name), self._writer.transaction() as cursor:
            if seq is None:
                self._writes.drop_position.run(cursor, [{"gone_consumer": consumer}])
            else:
                self._writes.put_position.run(cursor, [{"consumer": consumer, "seq": seq}])

    def spent(self, since: int) -> Mapping[tuple[Any, ...], int]:
        """Micro-dollars from an instant on, by account, user, QOS and partition."""
        by = ("account", "user", "qos", "partition")
        return self.history.spent(since=since, until=rollup.FOREVER, by=by)

    def _number(self) -> int:
        """The next entry's; they only grow."""
        self._last_entry = (self._last_entry or 0) + 1
        return self._last_entry

    def book_changes(self) -> Sequence[BookChanged]:
        """All that sacctmgr ever changed, in order."""
        return self.history.book_changes()

    def reservation_facts(self) -> Sequence[ReservationEvent]:
        """What ever became of reservations, in order."""
        return self.history.reservation_facts()

    def partition_facts(self) -> Sequence[PartitionEvent]:
        """What `scontrol update` made of partitions, in order."""
        return self.history.partition_facts()

    def boots_facts(self) -> Sequence[BootsEvent]:
        """Which kinds of machines came up, and which did not, in order."""
        return self.history.boots_facts()

    def volume_facts(self) -> Sequence[VolumeEvent]:
        """What ever became of volumes, in order."""
        return self.history.volume_facts()

    def close(self) -> None:
        self._readers.dispose()
        self._writer.dispose()


class SqlTx:
    """`broker.ports.Tx`: each call writes at once, within the transaction."""

    def __init__(
        self,
        cursor: Any,
        writes: do.Writes,
        *,
        shared: rows.Shared,
        now: int,
        number: Callable[[], int],
    ) -> None:
        self._cursor = cursor
        self._number = number
        self._do = writes
        self._shared = shared
        self._now = now

    def append(self, events: Sequence[tuple[int, Event]]) -> None:
        """Adds facts under their numbers."""
        self._write(
            self._do.add_events,
            [rows.event(seq, event, shared=self._shared) for seq, event in events],
        )

    def save_jobs(self, jobs: Iterable[Job], *, was: Mapping[JobId, Job | None] = UNKNOWN) -> None:
        """Makes or replaces the rows; of one that only goes on, just the columns that say so."""
        whole: list[rows.NewRow] = []
        moved: list[rows.NewRow] = []
        for job in jobs:
            if rows.goes_on(was.get(job.id), job):
                moved.append(rows.standing(job))
            else:
                whole.append(rows.job(job, self._shared))
        self._write(self._do.put_jobs, whole)
        self._write(self._do.move_jobs, moved)

    def save_runs(self, runs: Iterable[Run]) -> None:
        """Attempts that a requeue left behind."""
        self._write(self._do.put_runs, [rows.run(run.job, self._shared) for run in runs])

    def save_nodes(self, nodes: Iterable[Node], gone: Iterable[tuple[NodeName, int]]) -> None:
        """Makes or replaces the rows; those of `gone` machines are live no longer."""
        self._write(self._do.put_nodes, [rows.node(node) for node in nodes])
        self._write(self._do.part_node, [rows.gone(name, nth) for name, nth in gone])

    def post(self, entries: Sequence[Entry]) -> None:
        """Adds ledger entries whose keys are new."""
        self._write(self._do.add_entries, [rows.entry(entry, self._number()) for entry in entries])

    def save_charges(self, charges: Charges) -> None:
        """Makes or replaces what these parties have used."""
        self._write(self._do.put_charges, [rows.charge(*one) for one in charges.items()])

    def put_blobs(self, blobs: Mapping[Digest, bytes]) -> None:
        """Keeps bytes under their SHA-256."""
        self._write(self._do.add_blobs, self._shared.blobs(blobs))

    def remember_requests(self, requests: Mapping[str, str]) -> None:
        """The first reply to a request stands."""
        new = [{"id": name, "at": self._now, "reply": text} for name, text in requests.items()]
        self._write(self._do.add_requests, new)

    def set_counters(self, counters: Counters) -> None:
        now = {"next_job_id": counters.next_job_id, "last_event": counters.last_event}
        self._write(
            self._do.put_counters, [{"name": n, "value": value} for n, value in now.items()]
        )

    def _write(self, statement: do.Write, new: list[rows.NewRow]) -> None:
        """Specs that the rows refer to go first."""
        if specs := self._shared.unwritten():
            self._do.add_specs.run(self._cursor, specs)
        if new:
            statement.run(self._cursor, new)
