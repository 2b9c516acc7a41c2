"""Settings of accounting: accounts, users, QOS, limits, priority."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from accounting.assoc import DEFAULT_ACCOUNT, ENFORCED
from gateway.config.fields import (
    Age,
    Count,
    FiniteTime,
    Name,
    Names,
    Positive,
    Seconds,
    Settings,
    Time,
    TresAmounts,
    TresNames,
    TresWeights,
    any_of,
    one_of,
)

ADMIN_LEVELS = ("None", "Operator", "Administrator")
STORE_FLAGS = ("job_comment", "job_env", "job_extra", "job_script")
QOS_FLAGS = (
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoReserve",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "OverPartQOS",
    "PartitionTimeLimit",
    "RequiresReservation",
    "NoDecay",
    "UsageFactorSafe",
)
"""In the order in which sacctmgr lists them."""
PRIORITY_FLAGS = (
    "ACCRUE_ALWAYS",
    "FAIR_TREE",
    "MAX_TRES",
    "MAX_TRES_GRES",
    "NO_NORMAL_ALL",
    "NO_NORMAL_ASSOC",
    "NO_NORMAL_PART",
    "NO_NORMAL_QOS",
    "NO_NORMAL_TRES",
    "SMALL_RELATIVE_TO_TIME",
)
DEFAULT_TRES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu")


class Limits(Settings):
    """What an association or a QOS allows; absent means no limit."""

    grp_jobs: Count | None = Field(None, description="Running jobs of the group at a time.")
    grp_submit_jobs: Count | None = Field(
        None, description="Waiting and running jobs of the group; each array task counts."
    )
    grp_tres: TresAmounts = Field({}, description="Sum over the group's running jobs.")
    grp_tres_mins: TresAmounts = Field({}, description="TRES-minutes the group may have used.")
    grp_tres_run_mins: TresAmounts = Field(
        {}, description="TRES-minutes that the group's running jobs may still use."
    )
    grp_wall: Time | None = Field(None, description="Wall time the group may have used.")
    max_tres_per_job: TresAmounts = Field({}, description="Most that one job may ask for.")
    max_tres_per_node: TresAmounts = Field({}, description="Most on each node of a job.")
    max_tres_mins_per_job: TresAmounts = Field({}, description="TRES times time limit of one job.")
    max_wall: Time | None = Field(None, description="Longest time limit of one job.")
    priority: Count = Field(0, description="Feeds the priority formula.")


class AssociationLimits(Limits):
    """Limits and shares of an account, or of a user in one."""

    fairshare: Count = Field(1, description="Shares among the parent's children.")
    max_jobs: Count | None = Field(None, description="Running jobs of a user at a time.")
    max_submit_jobs: Count | None = Field(None, description="Waiting and running jobs of a user.")
    qos: Names | None = Field(
        None, description="QOS that may be asked for; absent: those of the account above."
    )
    default_qos: Name | None = Field(None, description="QOS of a job that asks for none.")


class Account(AssociationLimits):
    """An account that jobs are charged to."""

    name: Name = Field(description="Name of the account.")
    parent: Name = Field("root", description="Account above it.")
    description: str = Field("", description="What it is for.")
    organization: str = Field("", description="Who it belongs to.")


class Association(AssociationLimits):
    """A user's place in one account."""

    account: Name = Field(description="The account.")
    partition: Name | None = Field(None, description="Holds in this partition only.")


class User(Settings):
    """Somebody who may submit."""

    name: str = Field(min_length=1, description="Unix user name.")
    admin_level: Annotated[str, one_of(*ADMIN_LEVELS)] = Field(
        "None", description="Administrators see and change every job, operators almost all."
    )
    default_account: Name | None = Field(
        None, description="Account of a job that asks for none; else the first association's."
    )
    associations: tuple[Association, ...] = Field((), description="The accounts of the user.")


class Qos(Limits):
    """A quality of service: a priority with limits."""

    name: Name = Field(description="Name of the QOS.")
    description: str = Field("", description="What it is for; the name where absent.")
    flags: Annotated[tuple[str, ...], any_of(*QOS_FLAGS)] = Field(
        (), description="What else holds for its jobs."
    )
    max_jobs_per_user: Count | None = Field(None, description="Running jobs of one user.")
    max_jobs_per_account: Count | None = Field(None, description="Running jobs of one account.")
    max_submit_jobs_per_user: Count | None = Field(
        None, description="Waiting and running jobs of one user."
    )
    max_submit_jobs_per_account: Count | None = Field(
        None, description="Waiting and running jobs of one account."
    )
    max_tres_per_user: TresAmounts = Field({}, description="Sum of one user's running jobs.")
    max_tres_per_account: TresAmounts = Field({}, description="Sum of one account's running jobs.")
    min_tres_per_job: TresAmounts = Field({}, description="Least that a job must ask for.")
    usage_factor: Decimal = Field(Decimal(1), ge=0, description="Multiplies charged usage.")
    limit_factor: Decimal | None = Field(
        None, ge=0, description="Multiplies the association's TRES limits."
    )
    usage_threshold: Decimal | None = Field(
        None, ge=0, description="Fair share below which the QOS cannot be used."
    )
    preempt: Names = Field((), description="QOS whose jobs may be pushed out.")
    preempt_mode: Annotated[str, one_of("CLUSTER", "CANCEL", "REQUEUE", "SUSPEND")] = Field(
        "CLUSTER", description="How they are pushed out; CLUSTER is as the cluster has it."
    )
    grace_time: Seconds = Field(0, description="Warning before being pushed out.")


PRIVATE_KINDS = (
    "accounts", "cloud", "events", "jobs", "nodes", "partitions", "reservations", "usage", "users",
)  # fmt: skip
"""What `private_data` may name; `cloud` hides nothing: names that no machine has are shown."""


class AccountingSettings(Settings):
    """What is counted, kept and enforced."""

    enforce: Annotated[tuple[str, ...], any_of(*ENFORCED)] = Field(
        (),
        description="AccountingStorageEnforce; empty enforces nothing.",
    )
    tres: TresNames = Field(DEFAULT_TRES, description="AccountingStorageTRES: what is counted.")
    store_flags: Annotated[tuple[str, ...], any_of(*STORE_FLAGS)] = Field(
        ("job_comment", "job_env", "job_script"),
        description="AccountingStoreFlags: what sacct can show later.",
    )
    gather_seconds: Seconds = Field(
        30, description="JobAcctGatherFrequency: how often a job's use is sampled."
    )
    default_account: Name = Field(
        DEFAULT_ACCOUNT,
        description="Account of a user without an association, where that is allowed.",
    )
    archive_dir: str | None = Field(
        None,
        description="ArchiveDir: folder for what is purged; absent: it is not kept.",
    )
    purge_job_after: Age | None = Field(
        None, description="PurgeJobAfter: since when ended jobs go; absent: never."
    )
    purge_step_after: Age | None = Field(
        None, description="PurgeStepAfter: steps of jobs that ended then; the jobs stay."
    )
    purge_event_after: Age | None = Field(
        None, description="PurgeEventAfter: the same of what happened to machines."
    )
    purge_usage_after: Age | None = Field(
        None, description="PurgeUsageAfter: sums of use by hour and day; those of money stay."
    )
    purge_resv_after: Age | None = Field(
        None, description="PurgeResvAfter: what became of reservations that are over."
    )
    purge_txn_after: Age | None = Field(
        None, description="PurgeTXNAfter: who changed accounts; what they changed stays."
    )
    purge_ledger_after: Age | None = Field(
        None, description="The same of the ledger's entries; sums for reports stay."
    )


class PriorityWeights(Settings):
    """Weights of the multifactor priority."""

    age: Count = Field(0, description="PriorityWeightAge.")
    assoc: Count = Field(0, description="PriorityWeightAssoc.")
    fairshare: Count = Field(0, description="PriorityWeightFairShare.")
    job_size: Count = Field(0, description="PriorityWeightJobSize.")
    partition: Count = Field(0, description="PriorityWeightPartition.")
    qos: Count = Field(0, description="PriorityWeightQOS.")
    tres: TresWeights = Field("", description="PriorityWeightTRES, as CPU=100,GRES/gpu=300.")


class PrioritySettings(Settings):
    """How waiting jobs are put in order."""

    type: Annotated[str, one_of("multifactor", "basic")] = Field(
        "multifactor",
        description="PriorityType; with all weights 0, as with basic, first come first served.",
    )
    weights: PriorityWeights = Field(PriorityWeights(), description="Weights of the factors.")
    decay_half_life: FiniteTime = Field(
        7 * 86400, description="PriorityDecayHalfLife: when past usage counts half."
    )
    max_age: FiniteTime = Field(
        7 * 86400, description="PriorityMaxAge: waiting time at which the age factor is full."
    )
    calc_period: FiniteTime = Field(300, description="PriorityCalcPeriod: how often usage decays.")
    usage_reset_period: Annotated[
        str, one_of("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
    ] = Field("NONE", description="PriorityUsageResetPeriod.")
    favor_small: bool = Field(False, description="PriorityFavorSmall: small jobs first.")
    flags: Annotated[tuple[str, ...], any_of(*PRIORITY_FLAGS)] = Field(
        (), description="PriorityFlags. Fair share is always Fair Tree's."
    )


class SchedulingSettings(Settings):
    """When the queue is looked through."""

    interval: Positive = Field(
        10,
        description="bf_interval: seconds after which the queue is looked through though nothing "
        "calls for it; what makes room or is submitted does so at once.",
    )
    max_job_test: Positive | None = Field(
        None,
        description="bf_max_job_test: how many jobs that might start are looked at in one pass, "
        "the most important first; absent: all.",
    )
    requeue_delay: Seconds = Field(
        120, description="How long a requeued job waits before it may start again."
    )
