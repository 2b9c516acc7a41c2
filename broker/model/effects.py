"""What to do outside. Each has a token; doing one twice does nothing."""

from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.ids import NodeName, StepId, step_key
from broker.model.job import Job, Notice, PendingSignal, Step
from broker.model.node import Node
from broker.model.offer import Machine, Ranked
from broker.model.reports import Tried
from broker.model.volume import NamedVolume


@dataclass(frozen=True, slots=True)
class Launch:
    """Buy machines for these nodes (name, launch number), all or none, from the first good rung."""

    group: str
    nodes: tuple[tuple[NodeName, int], ...]
    rungs: tuple[Ranked, ...]
    tried: tuple[Tried, ...] = ()
    """Rungs that are not tried, and why."""

    @property
    def token(self) -> str:
        return _launch_token(self.group)


def _launch_token(group: str) -> str:
    return f"launch {group}"


@dataclass(frozen=True, slots=True)
class Prepare:
    """Wait for the machine and bring its agent up."""

    node: Node

    @property
    def token(self) -> str:
        return f"prepare {self.node.label}"


@dataclass(frozen=True, slots=True)
class StartStep:
    job: Job
    step: StepId
    node: Node
    gang: tuple[Job, ...] = ()
    """All components of a heterogeneous job."""
    kin: tuple[Node, ...] = ()
    """Nodes that are to let each other in before it begins."""

    @property
    def token(self) -> str:
        return f"start {_part_key(self.job, self.step, self.node)}"


def _part_key(job: Job, step: StepId, node: Node) -> str:
    """The step's key; behind it the node where that is not the step's only or first one."""
    found = job.step(step)
    key = step_key(job.id, job.attempt, step)
    first = found is None or found.share is None or found.share.node == node.name
    return key if first else f"{key}@{node.name}"


@dataclass(frozen=True, slots=True)
class KillStep:
    """End one step on a node of its; its end in the journal confirms it."""

    job: Job
    step: StepId
    node: Node

    @property
    def token(self) -> str:
        return f"kill {_part_key(self.job, self.step, self.node)}"


@dataclass(frozen=True, slots=True)
class Kill:
    """End every process of the attempt; the journal's `gone` confirms it."""

    job: Job
    nodes: tuple[Node, ...]

    @property
    def token(self) -> str:
        return f"kill {self.job.key}"


@dataclass(frozen=True, slots=True)
class SendSignal:
    job: JobId
    attempt: int
    signal: PendingSignal
    node: Node
    more: tuple[Node, ...] = ()
    """Further nodes of the step or job."""

    @property
    def token(self) -> str:
        return f"signal {self.job}/{self.attempt}/{self.signal.serial}"


@dataclass(frozen=True, slots=True)
class SendNotice:
    job: JobId
    attempt: int
    notice: Notice
    node: Node

    @property
    def token(self) -> str:
        return f"notify {self.job}/{self.attempt}/{self.notice.serial}"


@dataclass(frozen=True, slots=True)
class TellLimit:
    """The limit as it is now: the job's, or a step's own."""

    job: Job
    node: Node
    step: Step | None = None
    more: tuple[Node, ...] = ()
    """Further nodes of the step or job."""

    @property
    def serial(self) -> int:
        return self.job.limit_serial if self.step is None else self.step.limit_serial

    @property
    def token(self) -> str:
        return f"limit {self.job.key}/{self.step.id if self.step else ''}/{self.serial}"


@dataclass(frozen=True, slots=True)
class Follow:
    """Read the node's journal on from where the store stands."""

    node: Node
    check: bool = False
    """Also see that its agent lives, and start it again if not."""

    @property
    def token(self) -> str:
        return f"follow {self.node.label}"


@dataclass(frozen=True, slots=True)
class Terminate:
    node: NodeName
    launch: int
    machine: Machine | None
    group: str

    @property
    def token(self) -> str:
        return f"terminate {self.node}.{self.launch}"

    @property
    def after(self) -> str:
        """Token of the purchase: while that is under way it is not known what there is to end."""
        return _launch_token(self.group)


@dataclass(frozen=True, slots=True)
class StopMachine:
    """Stop the machine behind a node; its disks stay."""

    node: Node

    @property
    def token(self) -> str:
        return f"stop {self.node.label}"


@dataclass(frozen=True, slots=True)
class StartMachine:
    """Let a stopped machine run again, where it is."""

    node: Node

    @property
    def token(self) -> str:
        return f"start {self.node.label}"


OnNode = StartStep | KillStep | Kill | SendSignal | SendNotice | TellLimit | Follow
"""What an agent is asked for."""
Power = StopMachine | StartMachine


@dataclass(frozen=True, slots=True)
class MakeVolume:
    volume: NamedVolume

    @property
    def token(self) -> str:
        return f"make {self.volume.key}"


@dataclass(frozen=True, slots=True)
class DropVolume:
    volume: NamedVolume

    @property
    def token(self) -> str:
        return f"drop {self.volume.key}"


@dataclass(frozen=True, slots=True)
class AttachVolume:
    """Attach it to the machine of the job's first node, and mount it."""

    volume: NamedVolume
    path: str
    job: Job
    node: Node

    @property
    def token(self) -> str:
        return f"attach {self.volume.key} {self.job.key}"


@dataclass(frozen=True, slots=True)
class DetachVolume:
    """Take it off the node where it was; None where there is nothing left to unmount it from."""

    volume: NamedVolume
    node: Node | None

    @property
    def token(self) -> str:
        return f"detach {self.volume.key} {self.volume.host}.{self.volume.host_launch}"


OfVolume = MakeVolume | DropVolume | AttachVolume | DetachVolume
Effect = Launch | Prepare | OnNode | Power | Terminate | OfVolume
