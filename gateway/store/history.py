"""Reads of what is no longer in memory, in pieces, on connections that cannot write."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Engine, Executable

from accounting.ids import JobId
from accounting.ledger import Entry
from broker.model.boots import BootsEvent
from broker.model.errors import Unknown
from broker.model.events import BookChanged, Event
from broker.model.ids import Digest
from broker.model.job import Job, Run
from broker.model.partition import PartitionEvent
from broker.model.reservation import ReservationEvent
from broker.model.volume import VolumeEvent, VolumeSet
from broker.ports import HistoryQuery
from gateway.store import records
from gateway.store import statements as do
from gateway.store.faults import told
from gateway.store.gangs import LEADERS, components
from gateway.store.kept import (
    BOOK_FACTS,
    BOOTS_FACTS,
    PARTITION_FACTS,
    RESERVATION_FACTS,
    VOLUME_FACTS,
)
from gateway.store.rollup import Sums
from gateway.store.tables import jobs
from gateway.store.windows import in_window, window

PAGE = 250
"""Rows read at a time; no lock is held in between."""
IDS = 500
"""Ids named in one statement."""
MOST_KEPT = 12_000
"""Jobs that windows which are asked for again and again do not read each time."""
IN_WINDOW = in_window(jobs)
HIGHEST = 2**31 - 1
"""No job id is above; the database cannot even be asked for one that is."""


class SqlHistory(Sums):
    """`broker.ports.History` over a pool of readers."""

    def __init__(self, readers: Engine, name: str) -> None:
        self._readers = readers
        self._name = name
        self._kept: dict[JobId, Job] = {}
        """Of jobs that are over, what was read last of a window; of use to several threads."""

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        """By id; each piece is as of the moment it is read. Raises Busy."""
        for page in self._pages(query):
            yield from (job for job in page if _fits(job, query))

    def runs(self, job: JobId) -> Sequence[Run]:
        """By attempt; without the present one."""
        rows = self.read(do.RUNS, {"job": job})
        return [Run(records.job(doc, spec)) for doc, spec in rows]

    def events(self, job: JobId) -> Sequence[Event]:
        """In the order they happened."""
        rows = self.read(do.EVENTS, {"job": job})
        return [records.event(kind, doc, spec) for kind, doc, spec in rows]

    def costs(self, jobs: Sequence[JobId]) -> Mapping[JobId, int]:
        """Micro-dollars posted to each job; absent means none was posted."""
        rows = [row for some in _pieces(jobs) for row in self.read(do.COSTS, {"jobs": some})]
        return {JobId(job): cost for job, cost in rows}

    def reply(self, request: str) -> str | None:
        """What a submission (`4711`) or a further step (`4711.3`) was answered with before."""
        rows = self.read(do.REPLY, {"request": request})
        return str(rows[0][0]) if rows else None

    def open_requests(self) -> Sequence[str]:
        """What is remembered of those that take their time and have not come to an end."""
        return [str(text) for (text,) in self.read(do.OPEN_REQUESTS, {})]

    def entries(self, *, since: int, until: int, user: str | None = None) -> Iterator[Entry]:
        """Those of [since, until), by time and key; of one user, or of all. Raises Busy."""
        asked = do.ENTRIES if user is None else do.ENTRIES_OF_USER
        whose = {} if user is None else {"user": user}
        last: dict[str, object] = {"since": since, "key": ""}
        while page := self.read(asked, {**whose, **last, "until": until, "page": PAGE}):
            yield from (records.entry(doc) for _, _, doc in page)
            last = {"since": page[-1][0], "key": page[-1][1]}

    def entries_of(self, job: JobId) -> list[Entry]:
        """Those of a job, by time and key. Raises Busy."""
        return [records.entry(doc) for (doc,) in self.read(do.ENTRIES_OF_JOB, {"job": job})]

    def book_changes(self) -> Sequence[BookChanged]:
        """All that sacctmgr ever changed, in order."""
        return [fact for fact in self._facts(BOOK_FACTS) if isinstance(fact, BookChanged)]

    def reservation_facts(self) -> Sequence[ReservationEvent]:
        """What ever became of reservations, in order."""
        found = self._facts(RESERVATION_FACTS)
        return [fact for fact in found if isinstance(fact, ReservationEvent)]

    def partition_facts(self) -> Sequence[PartitionEvent]:
        """What `scontrol update` made of partitions, in order."""
        return [fact for fact in self._facts(PARTITION_FACTS) if isinstance(fact, PartitionEvent)]

    def boots_facts(self) -> Sequence[BootsEvent]:
        """Which kinds of machines came up, and which did not, in order."""
        return [fact for fact in self._facts(BOOTS_FACTS) if isinstance(fact, BootsEvent)]

    def volume_facts(self) -> Sequence[VolumeEvent]:
        """What ever became of volumes, in order."""
        return [fact for fact in self._facts(VOLUME_FACTS) if isinstance(fact, VolumeEvent)]

    def billed(self) -> dict[str, str]:
        """Our names of all that a provider bills, as the ledger has them, by the provider's ids."""
        facts = (fact for fact in self.volume_facts() if isinstance(fact, VolumeSet))
        volumes = {one.record.id: one.record.meter for one in facts}
        own = {id: meter.machine for id, meter in volumes.items() if id and meter is not None}
        return self.machines() | own

    def blob(self, digest: Digest) -> bytes:
        """Raises Unknown."""
        rows = self.read(do.BLOB, {"digest": digest})
        if not rows:
            raise Unknown(f"no bytes are stored under {digest}")
        return bytes(rows[0][0])

    def read(self, statement: Executable, values: Mapping[str, object]) -> Sequence[Any]:
        """All rows of one statement. Raises Busy."""
        with told(self._name), self._readers.connect() as connection:
            return connection.execute(statement, values).all()

    def _facts(self, statement: Executable) -> Iterator[Event]:
        rows = self.read(statement, {})
        return (records.event(kind, doc, None) for kind, doc in rows)

    def _pages(self, query: HistoryQuery) -> Iterator[list[Job]]:
        if query.jobs:
            return self._by_id(query)
        return self._by_page(query) if query.since is None else self._by_window(query)

    def _by_id(self, query: HistoryQuery) -> Iterator[list[Job]]:
        ids = set(query.jobs)
        for some in _pieces(query.jobs):
            ids |= {element for (element,) in self.read(do.ELEMENTS, {"jobs": some})}
            ids |= components(doc for (doc,) in self.read(LEADERS, {"jobs": some}))
        yield from self._named(query, sorted(ids))

    def _named(self, query: HistoryQuery, ids: Sequence[JobId]) -> Iterator[list[Job]]:
        statement = do.jobs_by_id(query)
        for some in _pieces([one for one in ids if one not in query.held]):
            yield [records.job(doc, spec) for _, doc, spec in self.read(statement, {"jobs": some})]

    def _by_window(self, query: HistoryQuery) -> Iterator[list[Job]]:
        """Those that were read lately in the version they have are not read again."""
        found = self.read(IN_WINDOW, window(query.since or 0, query.until, query.held))
        there = {JobId(job): version for job, version in found if job not in query.held}
        kept, wanted = self._kept, replace(query, since=None, until=None)
        ids = sorted(there)
        for first in range(0, len(ids), IDS):
            some = ids[first : first + IDS]
            known = [one for job in some if (one := kept.get(job)) is not None]
            known = [one for one in known if one.version >= there[one.id]]
            at_hand = {one.id for one in known}
            page = [one for one in known if _wants(one, query)]
            for read in self._named(wanted, [job for job in some if job not in at_hand]):
                self._keep(read)
                page += read
            yield sorted(page, key=lambda job: job.id)

    def _keep(self, jobs: Sequence[Job]) -> None:
        """The oldest of what is kept goes first."""
        kept = self._kept
        for job in jobs:
            if job.over:
                kept[job.id] = job
        for old in list(islice(kept, max(0, len(kept) - MOST_KEPT))):
            kept.pop(old, None)

    def _by_page(self, query: HistoryQuery) -> Iterator[list[Job]]:
        statement = do.jobs_after(query)
        last = -1
        while page := self.read(statement, {"last": last, "page": PAGE}):
            yield [records.job(doc, spec) for job, doc, spec in page if job not in query.held]
            last = page[-1][0]


def _fits(job: Job, query: HistoryQuery) -> bool:
    """A pending job may be in several partitions, which the database does not tell apart."""
    own = (name.lower() for name in job.partitions)
    return not query.partitions or not set(query.partitions).isdisjoint(own)


def _wants(job: Job, query: HistoryQuery) -> bool:
    """What the database would filter on, for records that are at hand."""
    return all(
        not chosen or value in chosen
        for chosen, value in (
            (query.uids, job.owner.uid),
            (query.accounts, job.account),
            (query.names, job.spec.name.lower()),
            (query.states, job.state.label),
        )
    )


def _pieces(ids: Sequence[JobId]) -> Iterator[list[JobId]]:
    rest = (one for one in ids if one <= HIGHEST)
    while some := list(islice(rest, IDS)):
        yield some
