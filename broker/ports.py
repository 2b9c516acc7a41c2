"""What the broker asks of the outside, as small Protocols; promises are in words."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from accounting.ids import JobId
from accounting.ledger import Entry
from accounting.rollup import DAY
from broker.model.boots import BootsEvent
from broker.model.events import BookChanged, Event
from broker.model.ids import Digest, NodeName
from broker.model.job import Job, Run
from broker.model.node import Node
from broker.model.offer import Machine, Offer
from broker.model.partition import PartitionEvent
from broker.model.reservation import ReservationEvent
from broker.model.tally import Charges, Party
from broker.model.volume import NamedVolume, VolumeEvent


class Clock(Protocol):
    def now(self) -> int:
        """Whole seconds UTC; never goes back within one process."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which jobs of the past are wanted; None and empty mean any. Instants in whole seconds UTC."""

    jobs: tuple[JobId, ...] = ()
    """Ids; an array's base id finds all of its elements, a leader's all components of its job."""
    since: int | None = None
    until: int | None = None
    """Jobs that were in the queue or running at any moment of [since, until]."""
    uids: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """Names and partitions in small letters: those of jobs may have others."""
    states: tuple[str, ...] = ()
    held: Collection[JobId] = ()
    """Jobs that the asker has at hand: they may be left out, which saves reading them."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What must not go back after a restart."""

    next_job_id: int
    last_event: int


UNKNOWN: Mapping[JobId, Job | None] = MappingProxyType({})
"""Nothing is known of what the store has."""


class Tx(Protocol):
    """Writes of one step; they stand together or not at all."""

    def append(self, events: Sequence[tuple[int, Event]]) -> None:
        """Adds facts under their numbers, which the engine gives out and which never repeat."""
        ...

    def save_jobs(self, jobs: Iterable[Job], *, was: Mapping[JobId, Job | None] = UNKNOWN) -> None:
        """Makes or replaces them; `was`: the records that the store has, as far as that is known,
        None for what it has not."""
        ...

    def save_runs(self, runs: Iterable[Run]) -> None:
        """Attempts that a requeue left behind, for `sacct -D`."""
        ...

    def save_nodes(self, nodes: Iterable[Node], gone: Iterable[tuple[NodeName, int]]) -> None:
        """Upserts `nodes`; `gone` machines are kept as history and no longer live."""
        ...

    def post(self, entries: Sequence[Entry]) -> None:
        """Adds ledger entries; an entry whose key stands already is left as it is."""
        ...

    def save_charges(self, charges: Charges) -> None:
        """Makes or replaces what these parties have used."""
        ...

    def put_blobs(self, blobs: Mapping[Digest, bytes]) -> None:
        """Keeps bytes under their SHA-256; putting the same twice is putting it once."""
        ...

    def remember_requests(self, requests: Mapping[str, str]) -> None:
        """Request id to the reply that was given, so that a retry gets the same. Kept for a day."""
        ...

    def set_counters(self, counters: Counters) -> None: ...


class Sums(Protocol):
    """Where what was used is summed up."""

    def charges(
        self, since: int, *, span: int = DAY, until: int = 2**40
    ) -> Sequence[tuple[Party, str, int, int]]:
        """What was used in whole spans, of a day or an hour: whose, the TRES, the span's begin,
        TRES-seconds."""
        ...


class Store(Sums, Protocol):
    def transaction(self, *, epoch: int) -> AbstractContextManager[Tx]:
        """All or nothing, durable when left without an error.

        Raises LostLease if another gateway has a later epoch, Busy if the disk is full or the
        database does not take writes now; nothing is written then.
        """
        ...

    def kept_charges(self) -> Charges:
        """What everybody has used, as it was saved last."""
        ...

    def counters(self) -> Counters | None:
        """None in a new store."""
        ...

    def live_jobs(self, *, ended_after: int) -> Sequence[Job]:
        """Jobs that are not over, and those that ended at `ended_after` or later; by id."""
        ...

    def jobs_named(self, jobs: Sequence[JobId]) -> Sequence[Job]:
        """Records of these ids, and every element of the arrays that bear them, over or not."""
        ...

    def live_nodes(self) -> Sequence[Node]: ...
    def blob(self, digest: Digest) -> bytes:
        """Raises Unknown."""
        ...

    def reservation_facts(self) -> Sequence[ReservationEvent]:
        """What ever became of reservations, in order."""
        ...

    def volume_facts(self) -> Sequence[VolumeEvent]:
        """What ever became of volumes, in order."""
        ...

    def partition_facts(self) -> Sequence[PartitionEvent]:
        """What `scontrol update` made of partitions, in order."""
        ...

    def boots_facts(self) -> Sequence[BootsEvent]:
        """Which kinds of machines came up, and which did not, in order."""
        ...

    def replies(self, since: int) -> Mapping[str, str]:
        """Remembered requests."""
        ...

    def book_changes(self) -> Sequence[BookChanged]:
        """All that sacctmgr ever changed, in order; it stands over the configuration's book."""
        ...

    def spent(self, since: int) -> Mapping[tuple[Any, ...], int]:
        """Micro-dollars from an instant on, by account, user, QOS and partition."""
        ...


class History(Protocol):
    """Reads of what is no longer in memory; safe from several threads."""

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        """By id; read in pieces, so that a long answer holds nothing up."""
        ...

    def runs(self, job: JobId) -> Sequence[Run]: ...
    def events(self, job: JobId) -> Sequence[Event]: ...
    def costs(self, jobs: Sequence[JobId]) -> Mapping[JobId, int]:
        """Micro-dollars posted to each job; absent means none."""
        ...

    def reply(self, request: str) -> str | None:
        """What a submission (`4711`) or a further step (`4711.3`) was answered with before."""
        ...

    def open_requests(self) -> Sequence[str]:
        """What is remembered as asked and has no end yet, in order."""
        ...

    def entries(self, *, since: int, until: int, user: str | None = None) -> Iterator[Entry]:
        """Those of [since, until), by time and key; of one user, or of all."""
        ...

    def entries_of(self, job: JobId) -> Sequence[Entry]:
        """Those of a job, by time and key."""
        ...

    def blob(self, digest: Digest) -> bytes: ...
    def book_changes(self) -> Sequence[BookChanged]:
        """All that sacctmgr ever changed, in order."""
        ...

    def reservation_facts(self) -> Sequence[ReservationEvent]:
        """What ever became of reservations, in order."""
        ...

    def billed(self) -> Mapping[str, str]:
        """Our names of machines, volumes and addresses (`ec2-17.3/volume`) by the provider's ids;
        those of the past too."""
        ...

    def used(
        self, *, since: int, until: int, by: Sequence[str], tres: Sequence[str] = ()
    ) -> Mapping[tuple[Any, ...], int]:
        """TRES-seconds in whole hours of [since, until) by `account`, `user`, `qos`, `partition`,
        `wckey`, `reservation`, `size` (cpus of the job), `tres`, `start` (of the hour or day)."""
        ...

    def first_use(self) -> int | None:
        """The hour of the first use that was summed up; None before that."""
        ...

    def spent(
        self, *, since: int, until: int, by: Sequence[str], span: int | None = None
    ) -> Mapping[tuple[Any, ...], int]:
        """Micro-dollars likewise, by `account`, `user`, `qos`, `partition`, `instance_type`,
        `region`, `market`, `why`, `start`."""
        ...


class Provider(Protocol):
    """Where machines come from. Never runs jobs."""

    name: str

    def offers(self) -> Iterable[Offer]: ...
    def launch(
        self, offer: Offer, nodes: Sequence[tuple[NodeName, int]], *, token: str
    ) -> list[Machine]:
        """All nodes (name, launch number) or none, in their order; the same token never buys twice.

        Raises ProviderError.
        """
        ...

    def machines(self) -> list[Machine]:
        """Everything of ours that exists, also what is pending or lately terminated."""
        ...

    def terminate(self, machines: Sequence[Machine]) -> None:
        """Safe to repeat. The end is certain only when `machines` says terminated."""
        ...

    def stop(self, machines: Sequence[Machine]) -> None:
        """Ends what runs on them and keeps their disks; certain only when `machines` says stopped.

        Safe to repeat.
        """
        ...

    def start(self, machines: Sequence[Machine]) -> None:
        """Lets stopped ones run again where they are. Safe to repeat. Raises ProviderError."""
        ...


class Volumes(Protocol):
    """Disks that outlive machines; every call may be repeated and may block.

    Raises ProviderError for what will not change by itself, OSError for what may.
    """

    def make(self, volume: NamedVolume) -> str:
        """Its id; the same volume is never made twice."""
        ...

    def drop(self, volume: NamedVolume) -> None:
        """Gone when this returns."""
        ...

    def attach(self, volume: NamedVolume, machine: Machine) -> None:
        """Attached when this returns, though the machine may not show it yet."""
        ...

    def detach(self, volume: NamedVolume) -> None:
        """Off every machine when this returns."""
        ...

    def paths(self, volume: NamedVolume) -> Sequence[str]:
        """Under which of these it appears on a machine."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """How a command on a node ended."""

    code: int
    out: bytes
    err: bytes


class Channel(Protocol):
    """The way to one node; every call raises OSError if the node cannot be reached."""

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done: ...
    def put(self, data: bytes, path: str, mode: int) -> None:
        """The file is whole or not there; folders above it are made."""
        ...

    def read(self, path: str, offset: int) -> bytes:
        """All bytes from `offset`; empty if there is no such file."""
        ...

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        """One line to the Unix socket at `path` on the node, one line back."""
        ...


class Pipe(Protocol):
    """A program that runs on a node as long as somebody listens to it."""

    def fileno(self) -> int:
        """Can be read from when `read` has something to say."""
        ...

    def read(self, most: int) -> bytes | None:
        """What it has said; None: nothing now; empty: nothing will come any more."""
        ...

    def write(self, data: bytes) -> None:
        """All of it; may block. Raises OSError."""
        ...

    def close(self, *, lost: bool = False) -> None:
        """Ends it; where the node is `lost`, who is blocked in `write` is let go."""
        ...


@runtime_checkable
class Opens(Protocol):
    """A way to a node on which programs may stay."""

    def open(self, argv: Sequence[str], *, timeout: float) -> Pipe:
        """Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Push:
    """Where a node's agent posts its journal over HTTPS, and by what each knows the other."""

    url: str
    pin: str
    """SHA-256 of the service's certificate, in hexadecimal; empty where `ca` says who may be it."""
    ca: str
    """Certificates of authorities, as PEM."""
    token: str = field(repr=False)
    """Signed for this launch of the node, and good for its reports alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node's agent lives: the way there, its folder, the Python to run it with."""

    channel: Channel
    folder: str
    python: str = "/usr/bin/python3"
    options: tuple[str, ...] = ()
    """Further words for the agent's `serve`, such as whom to wake."""
    shared: bool = True
    """Whether the node sees the login node's own files; else they are brought and fetched."""

    push: Push | None = None
    """Where its agent posts its journal; None: that is read over the channel alone."""
    stream: Callable[[Sequence[str]], list[str] | None] = lambda argv: None
    """A command of this host that runs another there, with its streams; None where there is no
    quicker way than the channel."""

    @property
    def calls(self) -> bool:
        """Whether its agent can say that there is news."""
        return "--wake" in self.options

    @property
    def asks(self) -> bool:
        """Whether commands of jobs are there, which cannot reach the service's socket."""
        return "--commands" in self.options

    @property
    def archive(self) -> str:
        """The agent's program on the node."""
        return f"{self.folder}/agent.pyz"


class Reach(Protocol):
    """From a node to its place."""

    def place(self, node: Node) -> Place:
        """Raises Unknown if its machine is not known yet."""
        ...


@dataclass(frozen=True, slots=True)
class EndSeen:
    """A step, or all that is left of an attempt, that ended on a node by its journal."""

    job: JobId
    attempt: int
    well: bool
    """Whether it ended by itself, with code 0."""


class Files(Protocol):
    """Files of jobs on nodes, also on those that share them; every call may block."""

    def bring(self, job: Job, node: Node, place: Place) -> None:
        """Before a step begins; safe to repeat. Raises Refused, OSError."""
        ...

    def pass_on(self, node: Node, place: Place) -> None:
        """What the outputs of jobs there have grown by, and what is due now and then.

        Raises OSError.
        """
        ...

    def fetch(self, ended: Iterable[EndSeen], node: Node, place: Place) -> None:
        """Results of jobs of which something ended there. Raises OSError."""
        ...

    def hasten(self, node: NodeName) -> None:
        """The machine will be taken back: what is due now and then is due at once."""
        ...
