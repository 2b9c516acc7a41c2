"""Clusters whose machines are stopped, their disks kept, and started again: words for all of it."""

from dataclasses import dataclass

from accounting.ids import JobId
from accounting.ledger import Payer
from broker.model.errors import Refusal, Width
from broker.model.facts import JobFact, NodeFact
from broker.model.ids import NodeName
from broker.model.job import Owner
from broker.model.offer import Machine

STOPPED = "stopped"
"""Why a node is told to end an attempt whose machines are kept."""


# --- asked


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCluster:
    """Ends what runs in a kept-open allocation and stops its machines."""

    job: JobId
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCluster:
    """The same machines, where they are, and nothing else."""

    job: JobId
    by: Owner


# --- seen outside


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStopped:
    """The provider says so for certain."""

    node: NodeName
    launch: int
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStarted:
    """It runs, and is billed; what is on it may not answer yet."""

    node: NodeName
    launch: int
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNotStarted:
    """There is no room for it now, or its provider will not have it."""

    node: NodeName
    launch: int
    machine: Machine
    refusal: Refusal
    width: Width
    message: str


# --- facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(JobFact):
    """The machines that it holds are stopped, and wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopping(NodeFact):
    """Its machine is to be stopped, its disks are kept for a job."""

    keeper: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopped(NodeFact):
    """The provider confirmed it: only what is kept is billed."""

    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarting(NodeFact):
    """Its machine is to run again, for that attempt."""

    cause: Payer
    boot_deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(NodeFact):
    """The machine runs again; its agent does not answer yet."""

    machine: Machine


ClusterPower = StopCluster | StartCluster
PowerSeen = MachineStopped | MachineStarted | MachineNotStarted
