"""What was seen outside, as workers report it to the engine."""

from collections.abc import Mapping
from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName, StepId
from broker.model.offer import Machine, Offer
from broker.model.recovery import ArtifactsDone, CheckpointDone
from broker.model.stopping import PowerSeen
from broker.model.volume import VolumeSeen


@dataclass(frozen=True, slots=True)
class Tried:
    """An offer that was refused on the way."""

    offer: Offer
    refusal: Refusal
    width: Width
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """Machines were bought, in the order of the group's nodes; `tried` refused before."""

    group: str
    machines: tuple[Machine, ...]
    offer: Offer | None = None
    """Which one worked; None where they were bought before this walk."""
    tried: tuple[Tried, ...] = ()

    @property
    def nodes(self) -> int:
        return len(self.machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLaunched:
    """Every rung refused."""

    group: str
    tried: tuple[Tried, ...]
    nodes: int = 1
    """How many were wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booted:
    """The node's agent answers; `machine` as the provider shows it now."""

    node: NodeName
    launch: int
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBooted:
    node: NodeName
    launch: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken:
    """The agent took a step in charge (its journal tells the rest)."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRefused:
    """The agent would not start it, ever."""

    key: str
    message: str
    node: NodeName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTrouble:
    """A node is in no state to take jobs, in words; empty once it is well again."""

    node: NodeName
    launch: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDone:
    job: JobId
    attempt: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeDone:
    job: JobId
    attempt: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitDone:
    """The node has this change of the job's limit, or of the step's own."""

    job: JobId
    attempt: int
    serial: int
    step: StepId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Lines of a node's journal from where the store stands; `position` is the byte behind them."""

    node: NodeName
    launch: int
    start: int
    position: int
    records: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLost:
    """A node's journal is shorter than what was read of it: it began anew, and has these lines."""

    node: NodeName
    launch: int
    records: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """The provider says so for certain; None if it has no trace of it."""

    node: NodeName
    launch: int
    machine: Machine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A machine ended that we did not end; `machine` as last seen."""

    node: NodeName
    launch: int
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repriced:
    """The pool of a machine that runs has another price than was known; `machine` as last seen."""

    node: NodeName
    launch: int
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Nothing but the passing of time."""


OfNodes = (
    Launched
    | NotLaunched
    | Booted
    | NotBooted
    | StepTaken
    | StepRefused
    | NodeTrouble
    | SignalDone
    | NoticeDone
    | LimitDone
    | CheckpointDone
    | ArtifactsDone
    | Journal
    | JournalLost
    | Terminated
    | Vanished
    | Repriced
    | PowerSeen
    | Tick
)
"""Of jobs and of the nodes on which they run."""
Report = OfNodes | VolumeSeen
