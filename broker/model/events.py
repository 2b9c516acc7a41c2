"""What happened to jobs: facts, each with time, actor and reason."""

from dataclasses import dataclass

from accounting.change import Change
from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.boots import BootsGone, BootsSet
from broker.model.facts import JobFact
from broker.model.ids import NodeName, StepId
from broker.model.job import (
    SUCCESS,
    ExitCode,
    Hold,
    Job,
    JobState,
    Notice,
    Part,
    PendingSignal,
    Share,
    Step,
    StepState,
    Usage,
)
from broker.model.nodeevents import NodeEvent
from broker.model.partition import PartitionGone, PartitionSet
from broker.model.recovery import ArtifactsStored, Checkpointed, Decided
from broker.model.reservation import ReservationGone, ReservationSet
from broker.model.spec import Dependency, Limit
from broker.model.stopping import Kept
from broker.model.volume import VolumeGone, VolumeSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(JobFact):
    """The record came to be: a submission, or an element split off an array."""

    record: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(JobFact):
    """An element left the array's record."""

    task: int
    element: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class BecameElement(JobFact):
    """The array's record turned into its own last element."""

    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementsDropped(JobFact):
    """Elements were cancelled while they still waited in the array's record."""

    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits(JobFact):
    """Why it is not running now, in Slurm's word, and in more words."""

    reason: str
    detail: str = ""
    eligible: int | None = None
    after: tuple[Dependency, ...] | None = None
    """Dependencies still open, where that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages(JobFact):
    """It grows older from an instant on, in its priority; None: not before others have started."""

    since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldSet(JobFact):
    hold: Hold | None
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(JobFact):
    """What `scontrol update` changed; None leaves as it is."""

    name: str | None = None
    priority: int | None = None
    nice: int | None = None
    time_limit: Limit | None = None
    limit_serial: int | None = None
    """The number under which its nodes are told of the limit, where it holds some."""
    partitions: tuple[str, ...] | None = None
    account: str | None = None
    qos: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    begin: int | None = None
    requeue: bool | None = None
    after: tuple[Dependency, ...] | None = None
    array_limit: int | None = None
    """0 takes the limit away."""
    patch: str = ""
    """What else was changed of the spec, as `broker.model.patch` writes it."""
    want: Tres | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(JobFact):
    """Shares of nodes were given to a new attempt."""

    partition: str
    shares: tuple[Share, ...]
    choice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized(JobFact):
    """Its shares turned out otherwise: it wants the whole of nodes whose size is known only now."""

    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(JobFact):
    """The node began to run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended(JobFact):
    """An operator stopped its processes; it keeps what it holds."""

    limit_serial: int = 0
    """Under which number its nodes are told that no limit runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(JobFact):
    """Its processes go on."""

    limit_serial: int = 0
    """Under which number its nodes are told of the limit, moved on by the time suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced(JobFact):
    """The nodes it was to have did not come; nothing ran."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(JobFact):
    """The outcome is certain; nodes may still be busy cleaning up."""

    state: JobState
    reason: str
    exit: ExitCode = SUCCESS
    kill_cause: str = ""
    """Not empty: the node has to end the attempt."""
    by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitSeen(JobFact):
    """The exit code of a job whose outcome was decided before its processes ended."""

    exit: ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued(JobFact):
    """Goes back to the queue under its id once its nodes are free."""

    hold: Hold | None = None
    not_before: int | None = None
    kill_cause: str = ""
    priority: int = 0
    region: str | None = None
    """Where a machine of it was lost."""
    failed: bool = False
    """Whether it counts as one of the failures after which it may start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(JobFact):
    """No process of the attempt is left; its nodes are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAdded(JobFact):
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlaced(JobFact):
    """It got its part of the allocation and may start."""

    step: StepId
    share: Share
    more: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDoomed(JobFact):
    """Its node has to end it."""

    step: StepId
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(JobFact):
    step: StepId


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart(JobFact):
    """A step of several nodes has begun on one of them, or ended there."""

    step: StepId
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCleared(JobFact):
    """Nothing of an attempt that ends is left on that node."""

    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(JobFact):
    step: StepId
    state: StepState
    exit: ExitCode
    usage: Usage = Usage()
    phase: str = ""
    tasks: tuple[ExitCode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalAsked(JobFact):
    signal: PendingSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSent(JobFact):
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeAsked(JobFact):
    """A text that the job's output is to have."""

    notice: Notice
    budget: str = ""
    """Which one it is that is used up, where the text says that it will end the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSent(JobFact):
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLimited(JobFact):
    """A step's own limit was changed; its node is told under the number."""

    step: StepId
    time_limit: int | None
    limit_serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitNear(JobFact):
    """It has run for so much of its time limit, of which its user wants to be told."""

    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTold(JobFact):
    """The job's node has the limit of this number; `step` where it is one step's own."""

    serial: int
    step: StepId | None = None


JobEvent = (
    Queued
    | Split
    | BecameElement
    | ElementsDropped
    | Waits
    | HoldSet
    | Changed
    | Placed
    | Resized
    | Started
    | Suspended
    | Resumed
    | Unplaced
    | Ended
    | ExitSeen
    | Requeued
    | Decided
    | Checkpointed
    | ArtifactsStored
    | Released
    | Kept
    | StepAdded
    | StepPlaced
    | StepDoomed
    | StepStarted
    | StepPart
    | StepEnded
    | NodeCleared
    | SignalAsked
    | SignalSent
    | NoticeAsked
    | NoticeSent
    | StepLimited
    | Ages
    | LimitTold
    | LimitNear
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChanged:
    """Accounts, associations, users or QOS are other ones from now; `by` is the user's name."""

    at: int
    actor: int
    by: str
    action: str
    change: Change
    where: str = ""
    info: str = ""


Event = (
    JobEvent
    | NodeEvent
    | BookChanged
    | ReservationSet
    | ReservationGone
    | VolumeSet
    | VolumeGone
    | PartitionSet
    | PartitionGone
    | BootsSet
    | BootsGone
)
