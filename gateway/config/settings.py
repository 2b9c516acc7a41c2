"""The configuration: what a site says about its cluster, in Slurm's words."""

from typing import Annotated

from pydantic import Field

from broker.model.site import MAX_JOB_ID
from gateway.config.accounts import (
    PRIVATE_KINDS,
    Account,
    AccountingSettings,
    PrioritySettings,
    Qos,
    SchedulingSettings,
    User,
)
from gateway.config.aws import AwsSettings
from gateway.config.fields import (
    Count,
    Dollars,
    GresAmounts,
    Hosts,
    Memory,
    MountLine,
    Name,
    Names,
    NamesOrAll,
    Positive,
    Seconds,
    Settings,
    Time,
    TresWeights,
    any_of,
    one_of,
)
from gateway.config.service import (
    Ceiling,
    DatabaseSettings,
    HttpSettings,
    LogSettings,
    PassthroughSettings,
    ProviderSettings,
    PushSettings,
    SmtpSettings,
)
from sbatch_shim.grammar.hostlist import MOST_NAMES

PROVIDERS = ("local", "ec2")


class Elastic(Settings):
    """Machines that are bought when jobs need them and let go when idle."""

    provider: Annotated[str, one_of(*PROVIDERS)] = Field(
        "local", description="Where they come from."
    )
    max_nodes: Annotated[Positive, Field(le=MOST_NAMES)] = Field(
        64, description=f"How many at a time, at most {MOST_NAMES}."
    )
    name_prefix: Name = Field(
        "ec2-", description="Node names are this and a number from 1; the lowest free one is taken."
    )
    arch: Annotated[str, one_of("x86_64", "arm64")] = Field(
        "x86_64", description="Architecture of the image."
    )
    image: str | None = Field(
        None, description="AMI, or SSM parameter that names it; absent: as aws.images says."
    )
    spot: bool = Field(False, description="Also the spot market.")
    burstable: bool = Field(False, description="Also burstable types, such as t3.")
    opt_in_regions: bool = Field(False, description="Also regions that have to be opted into.")
    gpu_fractions: bool = Field(False, description="Also types with a fraction of a GPU.")
    regions: Names = Field((), description="These regions only; empty: all.")
    instance_types: Names = Field((), description="These types only; empty: all.")
    families: Names = Field((), description="These families only, such as g5; empty: all.")
    features: Names = Field((), description="Features that all of them have, for --constraint.")
    reservations: Names = Field(
        (),
        description="Ids of targeted capacity reservations and of capacity blocks that its jobs "
        "may use, or ALL; open reservations are used anyway.",
    )
    prefer: Annotated[str, one_of("cost", "time")] = Field(
        "cost", description="What is weighed first when machines are chosen."
    )
    efa_percent: Count = Field(
        10, description="For several nodes a type with EFA may cost so much more, in percent."
    )
    max_usd_per_hour: Dollars | None = Field(None, description="Dearest machine that is bought.")
    memory_share: int = Field(
        95, ge=50, le=100, description="Percent of a type's memory that jobs may have."
    )
    idle_seconds: Seconds | None = Field(
        None,
        description="SuspendTime: how long an idle one is kept before it is let go; "
        "absent: as long as that costs no more than a new start.",
    )
    share_users: bool = Field(
        False, description="Whether jobs of different users may be on one machine."
    )
    files: Annotated[str, one_of("sync", "s3", "shared")] = Field(
        "sync",
        description="sync: submit directories are brought to machines and changes fetched; "
        "s3: the same through the bucket of `objects`; shared: machines have mounted what the "
        "login node has.",
    )
    mounts: tuple[MountLine, ...] = Field(
        (),
        description="What machines mount before anything runs there, as lines of fstab: "
        "SOURCE TARGET TYPE OPTIONS.",
    )
    fetch_seconds: Seconds = Field(
        300,
        description="sync: how often changes are fetched while a job runs; 0: only at its end.",
    )
    boot_seconds: Seconds = Field(60, description="Expected time to come up, for expected cost.")
    spot_price_seconds: Positive = Field(
        3600,
        description="A spot machine costs for so long what its pool costs when that time begins.",
    )
    old_days: Count = Field(30, description="Prices older than so many days are said to be old.")
    boot_timeout: Positive = Field(
        900, description="ResumeTimeout: seconds after which one that has not come up is given up."
    )


class Node(Settings):
    """Declared nodes: always up, never bought."""

    names: Hosts = Field(description="Their names; all are alike.")
    cpus: Positive | None = Field(None, description="CPUs; absent: sockets x cores x threads.")
    boards: Positive = Field(1, description="Boards, over which the sockets are spread evenly.")
    sockets: Positive | None = Field(None, description="Sockets; absent: as many as CPUs need.")
    cores_per_socket: Positive = Field(1, description="Cores of a socket.")
    threads_per_core: Positive = Field(1, description="Threads of a core.")
    real_memory: Memory = Field(1, description="Memory that jobs may have.")
    tmp_disk: Memory = Field(0, description="Size of the temporary file system.")
    gres: GresAmounts = Field((), description="Generic resources.")
    features: Names = Field((), description="What --constraint can ask for.")
    weight: Positive = Field(1, description="The lowest weight is filled first.")
    instance_type: Name | None = Field(
        None, description="Prices them like this EC2 type; absent, without usd_per_hour: free."
    )
    usd_per_hour: Dollars | None = Field(None, description="Price of one of them.")

    def shape(self) -> tuple[int, int]:
        """Sockets and cpus of one node, with what is absent worked out."""
        threads = self.cores_per_socket * self.threads_per_core
        sockets = self.sockets or max(1, (self.cpus or threads) // threads)
        return sockets, self.cpus or sockets * threads


class Partition(Settings):
    """A queue with its nodes, limits and defaults."""

    name: Name = Field(description="Name of the partition.")
    default: bool = Field(False, description="Where jobs go that name none.")
    state: Annotated[str, one_of("UP", "DOWN", "DRAIN", "INACTIVE")] = Field(
        "UP",
        description="DOWN queues but does not start, DRAIN starts but does not queue, "
        "INACTIVE neither.",
    )
    nodes: Hosts | None = Field(None, description="Declared nodes in it, or ALL.")
    elastic: Elastic | None = Field(None, description="Nodes that are bought for it.")
    reports: Annotated[str, one_of("ssh", "push")] = Field(
        "ssh",
        description="push: agents of its nodes post over HTTPS what happens there, as `push` says; "
        "ssh: that is read over their connections, as it is where nothing is posted for a while.",
    )
    containers: bool | None = Field(
        None,
        description="Whether its jobs may use --container-image and its kin; absent: as the "
        "site's `containers` says.",
    )
    max_time: Time = Field("UNLIMITED", description="Longest time limit of a job.")
    default_time: Time | None = Field(None, description="Of a job that has none; absent: max_time.")
    over_time_limit: Count | None = Field(
        None, description="Minutes beyond it before jobs are ended."
    )
    def_mem_per_cpu: Memory | None = Field(
        None, description="Of a job that asks for no memory; absent: all of the node's."
    )
    max_mem_per_cpu: Memory | None = Field(
        None, description="A job that asks for more memory per CPU gets more CPUs."
    )
    min_nodes: Count = Field(0, description="Least number of nodes of a job.")
    max_nodes: Count | None = Field(None, description="Most nodes of a job; absent: no limit.")
    max_cpus_per_node: Positive | None = Field(
        None, description="CPUs of a node that its jobs may hold together."
    )
    allow_accounts: NamesOrAll = Field(None, description="Accounts that may use it.")
    deny_accounts: Names = Field((), description="Accounts that may not.")
    allow_groups: NamesOrAll = Field(None, description="Unix groups that may use it.")
    allow_qos: NamesOrAll = Field(None, description="QOS that may be used in it.")
    deny_qos: Names = Field((), description="QOS that may not.")
    qos: Name | None = Field(None, description="QOS whose limits hold for the whole partition.")
    root_only: bool = Field(False, description="Only root may submit to it.")
    disable_root_jobs: bool = Field(False, description="root may not.")
    hidden: bool = Field(False, description="Shown only with --all.")
    req_resv: bool = Field(False, description="Only for jobs with a reservation.")
    exclusive_user: bool = Field(False, description="A node serves one user at a time.")
    oversubscribe: Annotated[str, one_of("NO", "EXCLUSIVE", "YES", "FORCE")] = Field(
        "NO",
        description="EXCLUSIVE gives each job its nodes alone. YES and FORCE are refused: a cpu is "
        "given to one job at a time.",
    )
    preempt_mode: Annotated[str, one_of("OFF", "CANCEL", "REQUEUE", "SUSPEND")] = Field(
        "OFF", description="What happens to jobs that are pushed out."
    )
    grace_time: Seconds = Field(0, description="Warning before being pushed out.")
    priority_job_factor: int = Field(1, ge=0, le=65533, description="Feeds the priority formula.")
    priority_tier: int = Field(1, ge=0, le=65533, description="A higher tier is served first.")
    setup: str | None = Field(
        None,
        description="Lines that /bin/sh runs once on each of its nodes, as the agent's user, "
        "before a node's first job; changed lines run again. A job whose node fails at them fails.",
    )
    tres_billing_weights: TresWeights = Field("", description="What a job's TRES weigh.")


DEFAULT_PARTITION = Partition(name="ec2", default=True, def_mem_per_cpu=1024, elastic=Elastic())


class Config(Settings):
    """Everything. Without a file: one elastic partition on the local provider, nothing enforced."""

    cluster: Name = Field("skypurza", max_length=40, description="ClusterName.")
    slurm_version: str = Field(
        "25.11.7",
        pattern=r"^\d+\.\d+\.\d+\S*$",
        description="Version that is shown; changes nothing else.",
    )
    submit_host: Name | None = Field(
        None, description="Shown as the controller; absent: this host."
    )
    first_job_id: int = Field(1, ge=1, lt=MAX_JOB_ID, description="FirstJobId.")
    max_job_id: int = Field(
        MAX_JOB_ID,
        ge=1,
        le=MAX_JOB_ID,
        description="MaxJobId: the last one. None is given twice: then no more jobs are taken.",
    )
    max_job_count: Positive = Field(100_000, description="MaxJobCount: jobs in memory.")
    max_array_size: int = Field(
        1001, ge=0, le=4_000_001, description="MaxArraySize: one more than the highest index."
    )
    max_step_count: Positive = Field(40_000, description="MaxStepCount: steps of a job.")
    max_tasks_per_node: Positive = Field(512, description="MaxTasksPerNode.")
    min_job_age: Seconds = Field(
        300, description="MinJobAge: how long an ended job stays in squeue."
    )
    kill_wait: Seconds = Field(30, description="KillWait: from SIGTERM to SIGKILL.")
    over_time_limit: Count = Field(0, description="OverTimeLimit: minutes beyond the time limit.")
    inactive_limit: Seconds = Field(
        0,
        description="InactiveLimit: how long an allocation of salloc or srun waits for its command "
        "to come again after the connection was lost; 0: it ends with it.",
    )
    wait_time: Seconds = Field(0, description="WaitTime: after a step's first task ended; 0: none.")
    kill_on_bad_exit: bool = Field(False, description="KillOnBadExit: a failed task ends its step.")
    complete_wait: Seconds = Field(
        0,
        description="CompleteWait: no job is started while one that ended a shorter time ago still "
        "leaves its nodes.",
    )
    unkillable_step_timeout: Positive = Field(
        60,
        description="UnkillableStepTimeout: so long after SIGKILL a node is drained on which "
        "processes are left all the same.",
    )
    job_requeue: bool = Field(
        True, description="JobRequeue: jobs may be requeued unless they say no."
    )
    keep_refused_jobs: bool = Field(
        False,
        description="Whether a job that no node could ever run stays as FAILED, as Slurm has it.",
    )
    enforce_part_limits: Annotated[str, one_of("NO", "ANY", "ALL")] = Field(
        "NO",
        description="EnforcePartLimits: NO keeps jobs beyond a partition's limits waiting, ANY "
        "refuses those that none of their partitions takes, ALL those that not all take.",
    )
    prolog: str | None = Field(
        None,
        description="Prolog: a program that nodes run, as the agent's user, before a job's first "
        "step there; if it fails, so does the job.",
    )
    epilog: str | None = Field(
        None, description="Epilog: a program that nodes run when a job has left them."
    )
    tmpdir: str | None = Field(
        None,
        description="Folder that a job has on each of its nodes while it runs, told as "
        "SLURM_TMPDIR; %j is its id, %u its user, such as /tmp/slurm.%j. Machines of EC2 that have "
        "disks of their own have it there (with aws.write_etc).",
    )
    objects: str | None = Field(
        None,
        description="Where checkpoints lie: s3://BUCKET/PREFIX, or a folder of this host; absent: "
        "below the state directory.",
    )
    buckets: tuple[str, ...] = Field(
        (),
        description="What #SPZ lines may read and write, with the service's rights: BUCKET or "
        "BUCKET/PREFIX, where %u is the user's name.",
    )
    checkpoint_days: Positive = Field(
        30, description="How long checkpoints of jobs are kept that did not complete."
    )
    constrain_cores: bool = Field(
        False,
        description="ConstrainCores: a step's processes run on its cpus alone, which are all that "
        "nproc and OpenMP see; not for nodes that are folders of one host.",
    )
    containers: bool = Field(
        False,
        description="Whether sbatch and srun take --container-image and its kin, as Slurm does "
        "where the pyxis plugin is; nodes need apptainer, enroot, podman or docker.",
    )
    constrain_memory: bool = Field(
        False, description="ConstrainRAMSpace: a job beyond its memory ends OUT_OF_MEMORY."
    )
    propagate_resource_limits: Annotated[str, one_of("ALL", "NONE")] = Field(
        "ALL", description="PropagateResourceLimits: whether jobs have the submitter's limits."
    )
    mail_prog: str = Field(
        "/bin/mail",
        description="MailProg: run as `PROGRAM -s SUBJECT USER`, a sendmail with headers as its "
        "input; none, or a program that is not there: no mail is sent, and sbatch says so.",
    )
    mail_domain: str | None = Field(
        None, description="MailDomain: behind the names of users who gave no --mail-user."
    )
    preempt_type: Annotated[str, one_of("none", "partition_prio", "qos")] = Field(
        "none", description="PreemptType."
    )
    private_data: Annotated[tuple[str, ...], any_of(*PRIVATE_KINDS)] = Field(
        (),
        description="PrivateData, slurmdbd's too: what users see of others only where they "
        "coordinate the account; operators see all.",
    )
    warn_ignored: bool = Field(
        True, description="Whether sbatch warns of options that have no effect here."
    )
    nodes: tuple[Node, ...] = Field((), description="Declared nodes.")
    partitions: tuple[Partition, ...] = Field(
        (DEFAULT_PARTITION,), description="Partitions, in the order they are shown."
    )
    accounts: tuple[Account, ...] = Field((), description="The account tree below root.")
    users: tuple[User, ...] = Field((), description="Users and the accounts they belong to.")
    qos: tuple[Qos, ...] = Field(
        (Qos(name="normal", description="Normal QOS default"),), description="QOS."
    )
    accounting: AccountingSettings = Field(AccountingSettings(), description="Counting.")
    priority: PrioritySettings = Field(PrioritySettings(), description="The order of the queue.")
    scheduling: SchedulingSettings = Field(SchedulingSettings(), description="The scheduler.")
    ceiling: Ceiling = Field(Ceiling(), description="Limits of the whole site.")
    aws: AwsSettings = Field(AwsSettings(), description="EC2.")
    providers: ProviderSettings = Field(ProviderSettings(), description="Providers' own settings.")
    database: DatabaseSettings = Field(DatabaseSettings(), description="The database.")
    log: LogSettings = Field(LogSettings(), description="The log.")
    http: HttpSettings = Field(HttpSettings(), description="TCP, beside the socket.")
    push: PushSettings = Field(PushSettings(), description="What nodes post.")
    smtp: SmtpSettings | None = Field(
        None, description="A mail server; absent: mails go by mail_prog."
    )
    passthrough: PassthroughSettings | None = Field(
        None, description="A Slurm of the site's own; absent: there is none."
    )
