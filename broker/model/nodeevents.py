"""What happened to nodes: facts, each with time, actor and reason."""

from dataclasses import dataclass

from accounting.ledger import Meter
from accounting.tres import Tres
from broker.model.facts import NodeFact
from broker.model.node import Node
from broker.model.offer import Machine, Offer
from broker.model.stopping import NodeStarted, NodeStarting, NodeStopped, NodeStopping


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMade(NodeFact):
    """A declared node was read from the configuration, or a purchase was decided."""

    record: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRevised(NodeFact):
    """The configuration of a declared node changed."""

    record: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBought(NodeFact):
    machine: Machine
    offer: Offer
    whole: Tres
    """What the machine has for jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailed(NodeFact):
    """Every rung refused; nothing was bought."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBooted(NodeFact):
    """Its agent answers."""

    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDown(NodeFact):
    """It does not answer, or its machine vanished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdle(NodeFact):
    """Since when nothing runs on it; None when something does."""

    idle_since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrain(NodeFact):
    drain: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDoomed(NodeFact):
    """To be terminated."""

    failed_boot: bool = False
    """Whether it never came up by nobody's doing: that tells against others of its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGone(NodeFact):
    """The provider confirmed its end, or it never came to be."""

    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMetered(NodeFact):
    meter: Meter
    beside: tuple[Meter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRead(NodeFact):
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRemoved(NodeFact):
    """A declared node is configured no more."""


NodeEvent = (
    NodeMade
    | NodeRevised
    | MachineBought
    | LaunchFailed
    | NodeBooted
    | NodeDown
    | NodeIdle
    | NodeDrain
    | NodeDoomed
    | NodeGone
    | NodeMetered
    | JournalRead
    | NodeRemoved
    | NodeStopping
    | NodeStopped
    | NodeStarting
    | NodeStarted
)
