"""A store in memory that keeps everything it is told, for the simulation and engine tests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from accounting import rollup
from accounting.ids import JobId
from accounting.ledger import Entry
from broker.model import events as ev
from broker.model.boots import BootsEvent
from broker.model.errors import Busy, LostLease, Unknown
from broker.model.ids import Digest, NodeName
from broker.model.job import Job, Run
from broker.model.node import Node
from broker.model.partition import PartitionEvent
from broker.model.reservation import ReservationEvent
from broker.model.tally import Charge, Charges, Party
from broker.model.volume import VolumeEvent
from broker.ports import UNKNOWN, Counters


@dataclass
class MemoryStore:
    """`broker.ports.Store`; `full` makes transactions fail like a full disk."""

    jobs: dict[JobId, Job] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    past_nodes: list[tuple[NodeName, int]] = field(default_factory=list)
    events: list[tuple[int, ev.Event]] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    blobs: dict[Digest, bytes] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    used: dict[Party, Charge] = field(default_factory=dict)
    told: Counters | None = None
    epoch: int = 1
    full: bool = False

    @contextmanager
    def transaction(self, *, epoch: int) -> Iterator["MemoryTx"]:
        if epoch < self.epoch:
            raise LostLease(f"epoch {epoch} is over")
        if self.full:
            raise Busy("no space left on device")
        tx = MemoryTx(self)
        yield tx
        tx.commit()

    def kept_charges(self) -> Charges:
        return dict(self.used)

    def counters(self) -> Counters | None:
        return self.told

    def live_jobs(self, *, ended_after: int) -> Sequence[Job]:
        return [j for j in self.jobs.values() if not j.over or (j.ended or 0) >= ended_after]

    def jobs_named(self, jobs: Sequence[JobId]) -> Sequence[Job]:
        ids = set(jobs)
        return [j for j in self.jobs.values() if j.id in ids or (j.array and j.array.base in ids)]

    def live_nodes(self) -> Sequence[Node]:
        return list(self.nodes.values())

    def blob(self, digest: Digest) -> bytes:
        if digest not in self.blobs:
            raise Unknown(f"no blob {digest}")
        return self.blobs[digest]

    def replies(self, since: int) -> Mapping[str, str]:
        del since
        return dict(self.requests)

    def charges(
        self, since: int, *, span: int = rollup.DAY, until: int = 2**40
    ) -> Sequence[tuple[Party, str, int, int]]:
        found = rollup.used(self.entries.values())
        return [
            (Party(cell.user, cell.account, cell.qos, cell.partition), cell.tres, cell.start, n)
            for cell, n in found.items()
            if cell.span == span and cell.start + span > since and cell.start < until
        ]

    def spent(self, since: int) -> Mapping[tuple[str, str, str, str], int]:
        found: dict[tuple[str, str, str, str], int] = {}
        for entry in self.entries.values():
            key = entry.account, entry.user, entry.qos, entry.partition
            found[key] = found.get(key, 0) + (entry.cost if entry.since >= since else 0)
        return found

    def book_changes(self) -> Sequence[ev.BookChanged]:
        return [fact for _, fact in self.events if isinstance(fact, ev.BookChanged)]

    def reservation_facts(self) -> Sequence[ReservationEvent]:
        return [fact for _, fact in self.events if isinstance(fact, ReservationEvent)]

    def partition_facts(self) -> Sequence[PartitionEvent]:
        return [fact for _, fact in self.events if isinstance(fact, PartitionEvent)]

    def boots_facts(self) -> Sequence[BootsEvent]:
        return [fact for _, fact in self.events if isinstance(fact, BootsEvent)]

    def volume_facts(self) -> Sequence[VolumeEvent]:
        return [fact for _, fact in self.events if isinstance(fact, VolumeEvent)]


class MemoryTx:
    """Collects, then writes everything at once."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._counters: Counters | None = None
        self._events: list[tuple[int, ev.Event]] = []
        self._jobs: list[Job] = []
        self._runs: list[Run] = []
        self._nodes: list[Node] = []
        self._gone: list[tuple[NodeName, int]] = []
        self._entries: list[Entry] = []
        self._blobs: dict[Digest, bytes] = {}
        self._requests: dict[str, str] = {}
        self._used: Charges = {}

    def append(self, events: Sequence[tuple[int, ev.Event]]) -> None:
        self._events = list(events)

    def save_jobs(self, jobs: Iterable[Job], *, was: Mapping[JobId, Job | None] = UNKNOWN) -> None:
        has = self._store.jobs
        wrong = {number for number, job in was.items() if has.get(number, job) is not job}
        assert not wrong, f"the store has other records of {wrong}"
        self._jobs = list(jobs)

    def save_runs(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    def save_nodes(self, nodes: Iterable[Node], gone: Iterable[tuple[NodeName, int]]) -> None:
        self._nodes, self._gone = list(nodes), list(gone)

    def post(self, entries: Sequence[Entry]) -> None:
        self._entries = list(entries)

    def save_charges(self, charges: Charges) -> None:
        self._used = charges

    def put_blobs(self, blobs: Mapping[Digest, bytes]) -> None:
        self._blobs = dict(blobs)

    def remember_requests(self, requests: Mapping[str, str]) -> None:
        self._requests = dict(requests)

    def set_counters(self, counters: Counters) -> None:
        self._counters = counters

    def commit(self) -> None:
        store = self._store
        store.events += self._events
        store.jobs.update({job.id: job for job in self._jobs})
        store.runs += self._runs
        gone = set(self._gone)
        for node in self._nodes:
            if node.identity not in gone:
                store.nodes[node.name] = node
        for name, launch in self._gone:
            if name in store.nodes and store.nodes[name].launch == launch:
                del store.nodes[name]
        store.past_nodes += self._gone
        for entry in self._entries:
            store.entries.setdefault(entry.key, entry)
        store.used.update(self._used)
        store.blobs.update(self._blobs)
        store.requests.update(self._requests)
        store.told = self._counters
