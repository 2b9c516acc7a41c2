"""TaskSpec: what a user wants, wherever it was written. Pure data without an identity."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from broker.model.build import Build
from broker.model.ids import Digest

UNLIMITED: Literal["UNLIMITED"] = "UNLIMITED"
ALL: Literal["ALL"] = "ALL"

SSH = "ssh"
"""Name of the steps that are sessions of `ssh NAME`."""
Limit = int | Literal["UNLIMITED"]
"""Seconds, or no limit."""
Memory = int | Literal["ALL"]
"""MiB, or all that a node has (`--mem=0`)."""


class Value(BaseModel):
    """A frozen value that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_post_init(self, _: object) -> None:
        """Forgets which fields were given: nobody asks, and every pending job would keep 4 KiB."""
        self.__pydantic_fields_set__.clear()


class Gres(Value):
    """One generic resource as asked for: `gpu:a10g:2`; the type as typed."""

    name: str
    type: str | None = None
    count: int = 1

    def label(self) -> str:
        """Slurm's name without the count: `gpu` or `gpu:a10g`."""
        return f"{self.name}:{self.type}" if self.type else self.name


class Where(Value):
    """One acceptable alternative of SkyPilot's `any_of` and `ordered`; empty means any."""

    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    market: Literal["on-demand", "spot"] | None = None
    gpu: Gres | None = None
    max_micro_usd_per_hour: int | None = None


class Resources(Value):
    """What each node must give and how tasks spread; None means not asked."""

    min_nodes: int | None = None
    max_nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    min_cpus_per_node: int | None = None
    sockets: int | None = None
    """At least so many on each node (`--sockets-per-node`, `-B`)."""
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    tasks_per_socket: int | None = None
    """At most so many."""
    tasks_per_core: int | None = None
    cpus_exactly: int | None = None
    """vCPUs that the machine itself must have (SkyPilot's `cpus: 4`, without the plus)."""
    mem_per_node_mib: Memory | None = None
    mem_per_cpu_mib: Memory | None = None
    mem_per_gpu_mib: Memory | None = None
    tmp_mib: int | None = None
    gres: tuple[Gres, ...] = ()
    """Per node: `--gres` and `--gpus-per-node`."""
    gpus: tuple[Gres, ...] = ()
    """In the whole job: `--gpus`."""
    gpus_per_task: tuple[Gres, ...] = ()
    cpus_per_gpu: int | None = None
    constraint: str | None = None
    prefer: str | None = None
    nodelist: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    exclusive: bool = False
    contiguous: bool = False
    any_of: tuple[Where, ...] = ()
    ordered: bool = False
    data_gib: int | None = None
    """Data that has to be brought to where the job runs (SkyPilot's `inputs`)."""
    data_region: str | None = None
    """The region where that lies."""
    build: Build | None = None
    """What its machines are made of; None: as the site has it."""


class DependencyKind(StrEnum):
    AFTER = "after"
    AFTERANY = "afterany"
    AFTEROK = "afterok"
    AFTERNOTOK = "afternotok"
    AFTERCORR = "aftercorr"
    AFTERBURSTBUFFER = "afterburstbuffer"
    SINGLETON = "singleton"


class Dependency(Value):
    """One condition on another job: `afterok:12_3`; `delay` in seconds (only with `after`)."""

    kind: DependencyKind
    job: int | None = None
    task: int | None = None
    whole_array: bool = False
    """Written `12_*`."""
    delay: int = 0


class ArraySpec(Value):
    """The elements of an array, sorted and without repeats, and how many may run at a time."""

    tasks: tuple[int, ...]
    limit: int | None = None
    step: int = 1
    """1 where the list was not one regular range (SLURM_ARRAY_TASK_STEP)."""


class SignalSpec(Value):
    """`--signal=[B:|R:]sig[@seconds]`."""

    number: int
    before: int = 60
    batch: bool = False
    reservation: bool = False
    text: str = ""


class Phase(Value):
    """One thing to run in a step; None in `argv` stands for the path of the blob `script` there."""

    name: Literal["setup", "run"] = "run"
    script: Digest | None = None
    argv: tuple[str | None, ...] = (None,)
    inside: int | None = 0
    """From which word of `argv` on it runs in the step's container, where it has one; None: not."""


class Output(Value):
    """Where text goes; patterns as typed, None where not given."""

    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    open_mode: Literal["append", "truncate"] | None = None
    shared_from: str | None = None
    """Where names of files begin that all tasks of a step share; None: where the step runs."""


class CpuBind(Value):
    """Which of its node's cpus each task is held to; with no kind, none."""

    kind: str = ""
    """As Slurm spells it: `cores`, `mask_cpu`, `none`."""
    items: tuple[str, ...] = ()
    """Cpus, or masks in hexadecimal, by the place of tasks on their node."""
    verbose: bool = False
    """Whether each task begins with a line about it."""


class GangPart(Value):
    """Where a step stands in one over several components of a heterogeneous job."""

    leader: int
    first_rank: int = 0
    """Tasks of the components before it, and below it their nodes."""
    first_node: int = 0
    tasks: int
    """Of all components together, as `nodes` and `tasks_per_node` are."""
    nodes: tuple[str, ...]
    tasks_per_node: tuple[int, ...]


class Program(Value):
    """A line of `srun --multi-prog`: which tasks run what."""

    ranks: tuple[int, ...]
    argv: tuple[str, ...]
    """`%t` stands for the rank, `%o` for its place in the line, `%%` for `%`."""
    rest: bool = False
    """Whether these are all that no line before named: of these the place is the rank."""


class Container(Value):
    """What a step's programs run in."""

    image: str | None = None
    """As pyxis has it: `[USER@][REGISTRY#]IMAGE[:TAG]`, or a file's path; None: by its name."""
    mounts: tuple[tuple[str, str, str], ...] = ()
    """Source (a path, or `tmpfs`), destination, flags joined by `+`."""
    workdir: str | None = None
    """None: the step's own, which then is seen there."""
    home: bool = False
    """Whether the user's home is seen there, and the step's folder whatever the workdir is."""
    name: str | None = None
    """By which it is kept on its node, for as long as the job."""
    reuse: Literal["auto", "create", "exec"] = "auto"
    """Whether one of that name may, must not, or must be there already."""
    save: str | None = None
    """Path of a file that it becomes at the step's end."""
    root: bool = False
    """Whether the user is root in it."""
    entrypoint: bool = False
    """Whether the image's own program comes first."""
    writable: bool | None = None
    """None: as the runtime has it."""
    env: tuple[str, ...] = ()
    """Variables of the step that win over the image's."""
    credentials: tuple[str, str, str] | None = None
    """Variables that say by which name and secret its registry is entered, and which that is."""
    options: tuple[str, ...] = ()
    """Further words of `docker run`, which podman takes too."""


class StepSpec(Value):
    """A run inside an allocation: phases, one after the other, or one command as several tasks."""

    name: str
    phases: tuple[Phase, ...] = ()
    environment: Digest | None = None
    """NUL-separated NAME=value bytes laid over the job's own."""
    tasks: int = 1
    """On all of its nodes."""
    nodes: int = 1
    tasks_per_node: int | None = None
    """At most so many on each."""
    nodelist: tuple[str, ...] = ()
    """Nodes that it must have."""
    exclude: tuple[str, ...] = ()
    relative: int = 0
    """Place in the allocation of the first node that it may have (`-r`)."""
    distribution: str = ""
    """`block`, `cyclic`, `plane=N`, `arbitrary`, with what follows there; empty: Slurm's choice."""
    hosts: tuple[str, ...] = ()
    """The node of each task, by rank, for `arbitrary`."""
    programs: tuple[Program, ...] = ()
    """What the tasks run where that differs; else all run the last phase's."""
    cpus_per_task: int | None = None
    cpu_bind: CpuBind | None = None
    """None: nothing was said, and tasks are not told of it either."""
    gres: tuple[Gres, ...] | None = None
    """Per node; None: all that the allocation has, empty: none of it."""
    gpus_per_task: int | None = None
    """Each task sees its own."""
    gres_per_task: tuple[Gres, ...] = ()
    """For each task, beside `gres`."""
    mem_per_node_mib: Memory | None = None
    """0 and ALL: what the allocation has, shared with other steps."""
    mem_per_cpu_mib: Memory | None = None
    overlap: bool = False
    """Shares what it uses with other steps and waits for none."""
    exact: bool = False
    """Only the cpus that its tasks need (`--exact`, `--exclusive`, `-c`); else the node's all."""
    overcommit: bool = False
    whole: bool = False
    """`--whole`: all cpus, whatever else is said."""
    interactive: bool = False
    """What it reads and writes passes through the node's io file where `output` names no file."""
    output: Output | None = None
    """None: as the job's own, unless `interactive`; patterns may name the task."""
    cwd: str | None = None
    time_limit: int | None = None
    """Seconds."""
    signal: SignalSpec | None = None
    """Before its own limit, or its job's if that is sooner; None: its job's holds."""
    input_rank: int | None = None
    """The one task that reads what is sent; None: every task does."""
    pty: tuple[int, int] | None = None
    """Rows and columns of the terminal that the first task gets."""
    label: bool = False
    unbuffered: bool = False
    kill_on_bad_exit: bool = False
    keep_counts: bool = False
    """Tasks see the caller's own counts of nodes and tasks (`--preserve-env`)."""
    commit: str | None = None
    """Of the repository from which it was sent, for listings."""
    wait: int | None = None
    """Seconds between the first task's end and that of the step; None or 0 is no limit."""
    submit_line: str = ""
    container: Container | None = None
    """None: the node itself."""
    gang: GangPart | None = None

    @property
    def is_login(self) -> bool:
        """A session of `ssh NAME`: a step of srun's of that name, no run of its user's."""
        return self.name == SSH and self.overlap and self.interactive


class Mount(Value):
    """A file or folder that travels; full paths, or `s3://BUCKET/KEY` on one side."""

    source: str
    target: str


class OwnBucket(Value):
    """A bucket that a task has by name: made where there is none."""

    name: str
    persistent: bool = True
    """Whether it outlives the cluster."""


class Attached(Value):
    """A volume by name, and the full path at which a job's first node has it."""

    volume: str
    path: str


class Checkpoint(Value):
    """A folder that the job fills, and that a next attempt finds again."""

    folder: str
    """Full path, the same on every node; with the patterns of output files."""
    every: int | None = None
    """Seconds between two copies; None: only when the job is interrupted or ends."""


class Managed(Value):
    """A job that is over when its run is, and how it goes on until then (SkyPilot's managed jobs).

    A pipeline or group has several: `tasks` names them all, `number` tells which this one is.
    """

    eager: bool = True
    """After a loss first to other regions (EAGER_NEXT_REGION), else to the same (FAILOVER)."""
    max_restarts: int = 0
    """How often a failed run starts again."""
    exit_codes: tuple[int, ...] = ()
    """After these it starts again however often."""
    kind: Literal["task", "pipeline", "group"] = "task"
    name: str = ""
    """Of the whole."""
    number: int = 0
    tasks: tuple[str, ...] = ()
    root: int | None = None
    """The job that was submitted first for it; None: this one."""
    at: int = 0
    """When the whole was submitted."""
    outlives: tuple[int, ...] = ()
    """Jobs after whose end this one ends too: the primary tasks of its group. In a submission of
    several components their places in it."""
    delay: int = 0
    """Seconds that it may go on then, if all of them succeeded."""
    callback: Digest | None = None
    """A script that is told of each change of its state."""


class TaskSpec(Value):
    """What a user wants: resources per node, number of nodes, what to run, where its text goes."""

    name: str
    partitions: tuple[str, ...] = ()
    """Empty means the default partition."""
    account: str | None = None
    qos: str | None = None
    resources: Resources = Resources()
    batch: StepSpec | None = None
    """The batch step; None where the allocation is only kept open (a SkyPilot cluster, salloc)."""
    steps: tuple[StepSpec, ...] = ()
    """Runs to start in the allocation as soon as it stands (SkyPilot's `run`)."""
    environment: Digest | None = None
    """The submitter's variables, NUL-separated bytes."""
    login_environment: bool = False
    """`--export=NONE` and `--get-user-env`: a fresh login environment is loaded first."""
    cwd: str = "/"
    umask: int = 0o022
    rlimits: tuple[tuple[str, int, int], ...] = ()
    nice_process: int = 0
    output: Output = Output()
    files: tuple[Mount, ...] = ()
    """Brought before the first step beside the working directory."""
    results: tuple[Mount, ...] = ()
    """Fetched at the job's end beside it."""
    checkpoint: Checkpoint | None = None
    time_limit: Limit | None = None
    time_min: int | None = None
    begin: int | None = None
    """Instant."""
    deadline: int | None = None
    hold: bool = False
    requeue: bool | None = None
    """None: as the site has it (JobRequeue)."""
    nice: int = 0
    priority: int | None = None
    """As an administrator asked for it; None: in the order of submission."""
    array: ArraySpec | None = None
    after: tuple[Dependency, ...] = ()
    after_any: bool = False
    """Whether one met dependency is enough (`?`)."""
    kill_on_invalid_dep: bool | None = None
    signal: SignalSpec | None = None
    comment: str | None = None
    mail_types: tuple[str, ...] = ()
    mail_user: str | None = None
    licenses: str | None = None
    reservation: str | None = None
    wckey: str | None = None
    command: str | None = None
    """Path of the script as scontrol shows it; None for `--wrap`."""
    submit_line: str = ""
    submit_host: str = ""
    submit_dir: str = "/"
    allocator: Literal["salloc", "srun"] | None = None
    """Which program holds a kept-open allocation; when it is gone, so is the job."""
    keeper: StepSpec | None = None
    """What holds a kept-open allocation where that does more than wait: SkyPilot's hooks."""
    hook_seconds: int = 0
    """How long these may take at the end, beyond KillWait."""
    idle_seconds: int | None = None
    """A kept-open allocation in which nothing has run for so long ends (SkyPilot's autostop)."""
    idle_from: int | None = None
    """When that was last asked for: the time counts anew from there."""
    idle_past_logins: bool = False
    """Sessions of `ssh NAME` do not hold it off (`wait_for: jobs`)."""
    buckets: tuple[OwnBucket, ...] = ()
    """SkyPilot's storages, for `spz storage`."""
    volumes: tuple[Attached, ...] = ()
    """Disks of their own, as `spz volumes` knows them."""
    idle_stops: bool = False
    """Its machines are stopped then, where they can be, and not let go."""
    managed: Managed | None = None
    cluster: str | None = None
    """Name under which a kept-open allocation is known (SkyPilot's cluster)."""
    options: tuple[tuple[str, str], ...] = ()
    """Every option given, by long name, as text: for scontrol's lines and SLURM_* of options."""

    def option(self, long: str) -> str | None:
        """The text of an option as given, None if it was not."""
        return next((text for name, text in self.options if name == long), None)
