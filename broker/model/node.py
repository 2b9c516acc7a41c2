"""Records of nodes: declared ones that are always there, elastic ones that are bought by name."""

from dataclasses import dataclass
from enum import Enum

from accounting.ids import JobId
from accounting.ledger import NOBODY, Meter, Payer
from accounting.tres import Tres
from broker.model.build import Build
from broker.model.ids import NodeName
from broker.model.offer import Machine, Ranked


class NodeState(Enum):
    """Life of the machine behind a name: label, whether it takes work, whether we may be paying."""

    POWERED_DOWN = ("POWERED_DOWN", False, False)
    """Elastic and unused: `idle~`; no record is kept for it."""
    LAUNCHING = ("LAUNCHING", False, True)
    """The purchase is recorded; the provider may or may not have it yet, nor is its size known."""
    BOOTING = ("BOOTING", True, True)
    UP = ("UP", True, True)
    DOWN = ("DOWN", False, True)
    TERMINATING = ("TERMINATING", False, True)
    STOPPING = ("STOPPING", False, True)
    """Its machine is to be stopped: nothing runs there any more."""
    STOPPED = ("STOPPED", False, True)
    STARTING = ("STARTING", False, True)
    """Its machine is to run again; its provider may not have the room."""

    def __init__(self, label: str, takes_work: bool, paid: bool) -> None:
        self.label = label
        self.takes_work = takes_work
        self.paid = paid


@dataclass(frozen=True, slots=True)
class Node:
    """A machine we pay for, or a declared one; resources are those that jobs may take."""

    name: NodeName
    launch: int
    """Launch number: no other machine ever bears it with this name; 0 for declared nodes."""
    state: NodeState
    whole: Tres
    """What it has for jobs."""
    partitions: tuple[str, ...]
    declared: bool = False
    features: tuple[str, ...] = ()
    weight: int = 1
    sockets: int = 1
    cores_per_socket: int = 1
    threads_per_core: int = 1
    boards: int = 1
    real_memory_mib: int = 0
    tmp_disk_mib: int = 0
    """Of a declared node; for those bought it was judged at the purchase."""
    gres_text: str = ""
    """As Slurm's Gres= has it: `gpu:a10g:2`."""
    rungs: tuple[Ranked, ...] = ()
    """Offers to try in turn, while LAUNCHING; the one that it is, while BOOTING."""
    group: str = ""
    """Token of the purchase; nodes bought together share it."""
    after: str = ""
    """The purchase that has to be had before this one is made; "" for the first."""
    is_second: bool = False
    """Whether it was bought in place of another: it is not replaced once more."""
    machine: Machine | None = None
    cause: Payer = NOBODY
    """The attempt for which it was bought."""
    meter: Meter | None = None
    """Runs while somebody bills us for it."""
    beside: tuple[Meter, ...] = ()
    """Those of what is billed by itself: its volume, its address."""
    micro_usd_per_hour: int = 0
    dearest: int = 0
    """Micro-dollars an hour that it may come to, with what is beside it; 0: as it costs now."""
    since: int = 0
    """When the present state began."""
    idle_since: int | None = None
    booted: int | None = None
    drain: bool = False
    out_since: int | None = None
    """Since when it is down or drained."""
    reason: str = ""
    reason_at: int | None = None
    reason_uid: int | None = None
    journal: int = 0
    """Bytes of the agent's journal that are already in the store."""
    boot_deadline: int | None = None
    idle_seconds: int | None = None
    """How long it may stand idle before it is let go; None keeps it."""
    keeper: JobId | None = None
    """The job for which its machine is stopped and its disks are kept, until it is up again."""
    build: Build | None = None
    """What it was made of for one job; None: as the site has it, and anybody's."""

    @property
    def label(self) -> str:
        """Name and launch number, `ec2-17.3`, as the ledger calls its machine."""
        return f"{self.name}.{self.launch}"

    @property
    def identity(self) -> tuple[NodeName, int]:
        return self.name, self.launch
