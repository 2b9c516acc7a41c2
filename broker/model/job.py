"""Records of jobs, attempts' shares and steps, and the states they can be in (Slurm 25.11)."""

from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName, StepId, attempt_key
from broker.model.spec import Dependency, Limit, StepSpec, TaskSpec

SLUID_LETTERS = 13
BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class JobState(Enum):
    """Base states: label, squeue's code, whether it is an end, whether nodes are held."""

    PENDING = ("PENDING", "PD", False, False)
    RUNNING = ("RUNNING", "R", False, True)
    SUSPENDED = ("SUSPENDED", "S", False, True)
    COMPLETED = ("COMPLETED", "CD", True, False)
    CANCELLED = ("CANCELLED", "CA", True, False)
    FAILED = ("FAILED", "F", True, False)
    TIMEOUT = ("TIMEOUT", "TO", True, False)
    NODE_FAIL = ("NODE_FAIL", "NF", True, False)
    PREEMPTED = ("PREEMPTED", "PR", True, False)
    BOOT_FAIL = ("BOOT_FAIL", "BF", True, False)
    DEADLINE = ("DEADLINE", "DL", True, False)
    OUT_OF_MEMORY = ("OUT_OF_MEMORY", "OOM", True, False)

    def __init__(self, label: str, code: str, *facts: bool) -> None:
        self.label = label
        self.code = code
        self.final, self.holds_nodes = facts


class JobFlag(Flag):
    """Flags beside the base state; squeue shows them in place of it."""

    NONE = 0
    CONFIGURING = auto()
    COMPLETING = auto()
    REQUEUED = auto()
    """Goes back to PENDING when its nodes are free."""
    STOPPED = auto()
    """Was sent SIGSTOP by its user; it runs on for everybody else."""


PLAIN = JobFlag.NONE
"""Most jobs' flags: to know them by identity costs a tenth of a look into them."""


class Hold(StrEnum):
    USER = "JobHeldUser"
    ADMIN = "JobHeldAdmin"


REQUEUED_HELD = "job requeued in held state"
"""Why a job waits after `scontrol requeuehold` (25.11), until it is released."""
IMPOSSIBLE = "BadConstraints"
"""Why a job stays held that was released and that no node could ever run."""
OF_HELD = (REQUEUED_HELD, IMPOSSIBLE)
"""Reasons that a held job may have beside that of its hold."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who submitted, as the kernel or a signed token named them."""

    uid: int
    gid: int
    user: str
    group: str
    home: str = "/"
    shell: str = "/bin/sh"
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ExitCode:
    """Slurm's pair: what was returned, and the signal that ended it (0 for none)."""

    code: int = 0
    signal: int = 0

    def __str__(self) -> str:
        return f"{self.code}:{self.signal}"

    @property
    def status(self) -> int:
        """As a shell shows it."""
        return 128 + self.signal if self.signal else self.code


SUCCESS = ExitCode()
"""Of all that has not failed: the same object, which is known at a look."""


@dataclass(frozen=True, slots=True)
class Share:
    """What an attempt holds of one node."""

    node: NodeName
    launch: int
    """Launch number of the machine; 0 for declared nodes."""
    tres: Tres
    cpu_ids: tuple[int, ...] = ()
    gpu_ids: tuple[int, ...] = ()
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where a record stands in an array: the record that still holds elements, or one split off."""

    base: JobId
    task: int | None
    """Index of an element that was split off; None while the record holds `waiting`."""
    waiting: tuple[int, ...] = ()
    count: int = 1
    first: int = 0
    last: int = 0
    step: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class HetPlace:
    """Where a record stands in a heterogeneous job: its components have ids one after the other."""

    base: JobId
    """The leader's id, which names the whole; the batch script runs there."""
    offset: int
    size: int

    @property
    def ids(self) -> tuple[JobId, ...]:
        return tuple(JobId(self.base + offset) for offset in range(self.size))


class StepState(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    NODE_FAIL = "NODE_FAIL"

    @property
    def final(self) -> bool:
        return self not in (StepState.PENDING, StepState.RUNNING)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the node measured; microseconds and KiB."""

    user_us: int = 0
    system_us: int = 0
    max_rss_kib: int = 0
    max_size_kib: int = 0
    """Of the address space; 0 where nobody looked, and then nothing is known of what follows."""
    read: int = 0
    """Bytes."""
    written: int = 0
    pages: int = 0
    """Page faults for which something had to be read."""
    gpu_util: int | None = None
    """Mean percent of use, summed over devices; None where no node could tell."""
    gpu_util_max: int = 0
    gpu_mem_mib: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """How a step of several nodes stands on one of them, once it has begun there."""

    node: NodeName
    ended: bool = False
    cause: str = ""
    """Why it ended there, as the node's journal has it."""
    exit: ExitCode = SUCCESS
    usage: Usage = Usage()
    tasks: tuple[ExitCode, ...] = ()
    """By place among the node's tasks; empty where all ended as the part did."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of an attempt: `batch`, or a numbered run in the allocation."""

    id: StepId
    name: str
    state: StepState = StepState.PENDING
    spec: StepSpec | None = None
    """None for the batch step, whose spec the job has."""
    asked: int = 0
    started: int | None = None
    ended: int | None = None
    stood: int = 0
    """Seconds for which its job had been suspended when it started."""
    exit: ExitCode = SUCCESS
    usage: Usage = Usage()
    phase: str = ""
    """The phase it ended in (`setup`, `run`)."""
    share: Share | None = None
    """What of the allocation it uses; None while it waits for it. Of several nodes the first."""
    more: tuple[Share, ...] = ()
    """What it uses of further nodes."""
    parts: tuple[Part, ...] = ()
    """Where it has begun, and how it ended there; empty for a step of one node."""
    kill_cause: str = ""
    """Why the node is told to end it."""
    limit_serial: int = 0
    """Number of the change of its own limit that its node is not known to have; 0: none."""
    tasks: tuple[ExitCode, ...] = ()
    """How each task ended, by rank; empty where all ended as the step did."""

    @property
    def numbered(self) -> bool:
        """Whether it is one of srun's or spz's, and not the batch step."""
        return self.id.isdigit()

    @property
    def run(self) -> bool:
        """Whether it is a run of a cluster, and not one of srun's."""
        return self.numbered and self.spec is not None and not self.spec.interactive

    @property
    def shares(self) -> tuple[Share, ...]:
        """Of all of its nodes, in the order of the allocation; empty while it waits."""
        return () if self.share is None else (self.share, *self.more)

    def part(self, node: NodeName) -> Part | None:
        """How it stands on a node; None where it has not begun."""
        return next((part for part in self.parts if part.node == node), None)


@dataclass(frozen=True, slots=True)
class PendingSignal:
    """A signal asked for by scancel -s that the node has not confirmed yet."""

    number: int
    scope: str
    """`steps`, `batch` or `full`."""
    serial: int
    step: StepId | None = None
    """The one step it is for; None for all that the scope has."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A text for the job's user that the node has not confirmed yet (scontrol notify)."""

    text: str
    serial: int


@dataclass(frozen=True, slots=True)
class Job:
    """A submitted TaskSpec: identity, state, the present attempt; instants in whole seconds UTC."""

    id: JobId
    spec: TaskSpec
    owner: Owner
    account: str
    qos: str
    partitions: tuple[str, ...]
    """In the order asked for; the one it runs in stands alone once placed."""
    submitted: int
    time_limit: Limit
    want: Tres
    """What the whole job asks for at least, as it was judged at submission (ReqTRES)."""
    state: JobState = JobState.PENDING
    flags: JobFlag = JobFlag.NONE
    reason: str = "None"
    detail: str = ""
    """What a place that refused said, in words, for scontrol and `spz why`."""
    priority: int = 0
    """0 while held."""
    hold: Hold | None = None
    array: ArrayPlace | None = None
    after: tuple[Dependency, ...] = ()
    """Dependencies still open."""
    eligible: int | None = None
    idles: bool = False
    """Whether it waits without growing older, because a limit lets only so many do so."""
    ages_since: int | None = None
    """Since when it does, where it had to wait for its turn."""
    attempt: int = 0
    shares: tuple[Share, ...] = ()
    started: int | None = None
    """When nodes were given to it (Slurm's StartTime)."""
    ended: int | None = None
    steps: tuple[Step, ...] = ()
    exit: ExitCode = SUCCESS
    derived: ExitCode = SUCCESS
    ended_by: int | None = None
    """uid of who cancelled it."""
    kill_cause: str = ""
    """Why the node is told to end the attempt (`cancelled`, ...), while COMPLETING."""
    cleared: tuple[NodeName, ...] = ()
    """Nodes on which nothing of the attempt is left, while COMPLETING."""
    suspended_at: int | None = None
    suspended_for: int = 0
    """Seconds that the present attempt was suspended, before it is again."""
    restarts: int = 0
    failures: int = 0
    """After how many failures of its own it started again."""
    lost_regions: tuple[str, ...] = ()
    """Where machines of it were lost, the latest at the end."""
    lost_machine: str = ""
    """Name and launch number of the last one that was lost, not taken back."""
    lost_at: int | None = None
    not_before: int | None = None
    """A requeue's delay."""
    signals: tuple[PendingSignal, ...] = ()
    notices: tuple[Notice, ...] = ()
    warned: tuple[str, int] | None = None
    """Which budget it was told of that it is used up, and when."""
    limit_percent: int = 0
    """How much of its limit was reached when its user was last told so."""
    limit_serial: int = 0
    """Number of the change of its limit, or of its being suspended, that its nodes are not known
    to have; 0: they have all."""
    comment: str | None = None
    admin_comment: str | None = None
    system_comment: str | None = None
    version: int = 0
    """Number of the event that made this record."""
    last_node_names: tuple[str, ...] = ()
    """Nodes of the latest attempt, kept after they were released."""
    alloc: Tres = Tres()
    """What the latest attempt held in all, kept after it was released (AllocTRES)."""
    kept: tuple[Share, ...] = ()
    """What it holds of machines that are stopped and wait for it: it starts there or nowhere."""
    het: HetPlace | None = None
    choice: str = ""
    """Why this place: one line per rung, as the optimizer gave them, for `spz why`."""

    @property
    def key(self) -> str:
        """Token of the live attempt."""
        return attempt_key(self.id, self.attempt)

    @property
    def partition(self) -> str:
        return ",".join(self.partitions)

    @property
    def waited(self) -> int:
        """Seconds from when it could have started until it did; of a later attempt 0.

        What came before that one was partly its earlier ones' run.
        """
        if self.started is None or self.eligible is None or self.attempt > 1:
            return 0
        return max(0, self.started - self.eligible)

    def ran(self, now: int) -> int:
        """Seconds of its limit that are used up by then.

        They stand still while its machines are made ready, and while it is suspended.
        """
        if self.started is None or self.configuring:
            return 0
        until = self.ended or now if self.suspended_at is None else self.suspended_at
        return max(0, until - self.started - self.suspended_for)

    def stood(self, now: int) -> int:
        """Seconds for which it was suspended in all."""
        return self.suspended_for + (0 if self.suspended_at is None else now - self.suspended_at)

    def used_until(self, now: int) -> int:
        """Where its use ends if that is told in one stretch, without the time suspended."""
        return (self.started or now) + self.ran(now)

    @property
    def completing(self) -> bool:
        return self.flags is not PLAIN and JobFlag.COMPLETING in self.flags

    @property
    def configuring(self) -> bool:
        return self.flags is not PLAIN and JobFlag.CONFIGURING in self.flags

    @property
    def shown_state(self) -> str:
        """The long word that squeue shows: a flag hides the base."""
        if self.completing:
            return "COMPLETING"
        if JobFlag.STOPPED in self.flags:
            return "STOPPED"
        return "CONFIGURING" if self.configuring else self.state.label

    @property
    def in_containers(self) -> bool:
        """Whether anything of it runs, or ran, in a container."""
        specs = (self.spec.batch, *(step.spec for step in self.steps))
        return any(spec is not None and spec.container is not None for spec in specs)

    @property
    def runs_batch(self) -> bool:
        """Whether a script runs in it: of a heterogeneous job's components only in the first."""
        return self.spec.batch is not None and (self.het is None or self.het.offset == 0)

    @property
    def over(self) -> bool:
        """Ended, and its nodes free."""
        return self.state.final and not self.completing

    @property
    def sluid(self) -> str:
        """An id that is unique over all clusters and times: `s` and 13 of base 32 (25.11)."""
        number = self.submitted << 32 | self.id
        letters = []
        for _ in range(SLUID_LETTERS):
            number, letter = divmod(number, len(BASE32))
            letters.append(BASE32[letter])
        return "s" + "".join(reversed(letters))

    @property
    def past_runs(self) -> tuple[Step, ...]:
        """Those of a job whose disks are kept, and their texts with them; of others none."""
        if not self.kept:
            return ()
        return tuple(step for step in self.steps if step.numbered and step.state.final)

    def step(self, step_id: StepId) -> Step | None:
        return next((step for step in self.steps if step.id == step_id), None)


@dataclass(frozen=True, slots=True)
class Run:
    """A finished attempt that was followed by a requeue, as `sacct -D` lists it."""

    job: Job
    """The record as it was when that attempt was over."""
