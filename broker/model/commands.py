"""What is asked of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from accounting.assoc import Book
from accounting.change import Change
from accounting.ids import JobId
from accounting.ledger import Entry
from broker.model.boots import BuyAgain
from broker.model.ids import Digest, NodeName, StepId
from broker.model.job import ExitCode, Hold, Owner
from broker.model.partition import SetPartition
from broker.model.rates import Rates
from broker.model.reservation import DropReservation, SetReservation
from broker.model.site import Site
from broker.model.spec import Dependency, Limit, StepSpec, TaskSpec
from broker.model.stopping import ClusterPower
from broker.model.volume import VolumeOrder


class Target(NamedTuple):
    """A job as commands name it: `123`, `123_4`, `123_[1-3]`."""

    job: JobId
    tasks: tuple[int, ...] | None = None
    """None: the job itself, or all of the array."""
    alone: bool = False
    """Of a heterogeneous job this component and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Reply: the job's id. The same `request` asked again gets the same id and makes nothing."""

    spec: TaskSpec
    owner: Owner
    request: str
    blobs: Mapping[Digest, bytes] = field(default_factory=dict)
    more: tuple[TaskSpec, ...] = ()
    """Further components of a heterogeneous job; the reply is the first one's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSubmit:
    """Reply: a `StartEstimate`; nothing is kept."""

    __test__ = False  # not a test class, whatever its name
    spec: TaskSpec
    owner: Owner


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """What `--test-only` prints; `start` in seconds UTC."""

    job: JobId
    start: int
    cpus: int
    nodes: str
    partition: str
    micro_usd: int = 0
    """What it costs until its time limit at the prices of now."""
    most_micro_usd: int = 0
    """What it may come to until it is ended, as budgets count it."""
    old_price: str = ""
    """What is to be said of the price that this is reckoned with, if it is old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Reply: None. Raises Unknown, Denied, Conflict (already over)."""

    target: Target
    by: Owner
    alone: bool = False
    """A component of a heterogeneous job by itself, which has to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAll:
    """Ends jobs, each as `Cancel` of its id would in turn, all by one decision.

    Reply: for each the SpzError that refused it, or None.
    """

    jobs: tuple[JobId, ...]
    by: Owner


@dataclass(frozen=True, slots=True)
class Many:
    """Commands of one caller that are done in turn and committed together.

    Reply: a list with the reply to each, or the SpzError that refused it.
    """

    commands: "tuple[Command, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Sends a signal to a running job's processes; scope `steps`, `batch` or `full`."""

    target: Target
    by: Owner
    number: int
    scope: str = "steps"
    step: StepId | None = None
    """One step alone, all of its processes; the scope then says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """A text into the standard error of a job's batch script (`scontrol notify`). Reply: None.

    Raises Unknown, Denied, Conflict for a job that does not run.
    """

    target: Target
    by: Owner
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTop:
    """`scontrol top`: the user's own pending jobs, in this order, before all others of theirs.

    Reply: None. Raises Unknown, Denied (somebody else's), Conflict (not pending, or held).
    """

    jobs: tuple[JobId, ...]
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHold:
    """`scontrol hold` and `uhold`; hold None releases."""

    target: Target
    by: Owner
    hold: Hold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """`scontrol suspend` and `resume`; administrators only. Raises Denied, Conflict, Unknown."""

    target: Target
    by: Owner
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    target: Target
    by: Owner
    hold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """`scontrol update job`; None leaves as it is."""

    target: Target
    by: Owner
    name: str | None = None
    priority: int | None = None
    nice: int | None = None
    time_limit: Limit | None = None
    partitions: tuple[str, ...] | None = None
    account: str | None = None
    qos: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    begin: int | None = None
    requeue: bool | None = None
    after: tuple[Dependency, ...] | None = None
    array_limit: int | None = None
    """Tasks of the array that may run at a time; 0 takes the limit away."""
    spec: tuple[tuple[str, object], ...] = ()
    """Fields of the spec by dotted name (`resources.min_nodes`, `options.gres`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddStep:
    """A run in an allocation that is kept open. Reply: the step's id."""

    job: JobId
    by: Owner
    step: StepSpec
    request: str
    blobs: Mapping[Digest, bytes] = field(default_factory=dict)
    immediate: bool = False
    """Refused where others have what it needs, rather than waiting for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep:
    """`scontrol update StepId`: another time limit, in seconds; None is none of its own.

    Reply: None. Raises Unknown, Denied, Conflict (already over).
    """

    job: JobId
    step: StepId
    by: Owner
    time_limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """`scancel JOB.STEP`. Reply: None. Raises Unknown, Denied, Conflict (already over)."""

    job: JobId
    step: StepId
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishAllocation:
    """Who holds a kept-open allocation is done with it, with this exit code. Reply: None.

    Raises Unknown, Denied, Conflict (it has a batch step, does not run, or is over).
    """

    job: JobId
    by: Owner
    exit: ExitCode = ExitCode()
    abandoned: bool = False
    """Its command went away and did not come again (InactiveLimit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNode:
    """`scontrol update node`: drain, resume, down, powered down. Administrators only."""

    node: NodeName
    by: Owner
    state: str
    """`drain`, `down`, `resume`, `undrain`; `reason` alone; `power_down`, `power_down_asap`."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBook:
    """`sacctmgr`: other accounts, associations, users, QOS. Reply: None.

    Raises Denied, and Conflict where the book is not the one that it was made for any more.
    """

    change: Change
    basis: Book = field(repr=False, compare=False)
    by: Owner
    action: str
    """What `sacctmgr show transaction` calls it: `Add Users`."""
    where: str = ""
    info: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostEntries:
    """Corrections from the provider's bill into the ledger. Reply: None. Raises Denied."""

    entries: tuple[Entry, ...]
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconfigure:
    """The site is another one from now; changes by sacctmgr stand over it, those of partitions end.

    Reply: None. Raises Denied.
    """

    site: Site = field(repr=False)
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeFigures:
    """Another catalogue counts from now; what is billed already keeps its rates.

    Reply: None. Raises Denied.
    """

    rates: Rates = field(repr=False)
    words: frozenset[str] = field(repr=False)
    """What a constraint can name."""
    by: Owner


Repeated = (
    Signal | Notify | ToTop | SetHold | Suspend | Requeue | Update | SetReservation | UpdateStep
)
"""What is the same when it is asked again, and so may be sent again."""
Order = (
    Repeated
    | Submit
    | TestSubmit
    | Cancel
    | CancelAll
    | AddStep
    | CancelStep
    | FinishAllocation
    | SetNode
    | SetPartition
    | BuyAgain
    | ChangeBook
    | PostEntries
    | DropReservation
    | Reconfigure
    | TakeFigures
    | ClusterPower
    | VolumeOrder
)
"""What is decided by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """The command, done once however often it is asked for under this request, and its reply."""

    request: str
    command: Repeated


ASKED, ENDED = "asked ", "ended "
"""Before the id of a request that takes its time: what it is to come to, and what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Text that is kept under a request's name. Reply: the first that was ever told."""

    request: str
    text: str


Command = Order | Once | Remember
