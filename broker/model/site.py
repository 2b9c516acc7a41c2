"""What a site is configured with, as the broker sees it: partitions, declared nodes, limits."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import TypeVar

from accounting.assoc import Book, book
from accounting.change import ADMINISTRATOR, OPERATOR
from accounting.order import RANKING, Ranking
from accounting.tres import BillingMode, Tres, Weights, billing, parse_weights
from broker.model.ids import NodeName
from broker.model.offer import BuyPolicy
from broker.model.rates import PUBLISHED, Rates
from broker.model.spec import UNLIMITED, Limit

T = TypeVar("T")
MAX_JOB_ID = 0x03FF0000
"""MaxJobId as Slurm has it unless told otherwise."""


@dataclass(frozen=True, slots=True)
class DeclaredNode:
    """A node of the configuration that is always up and never bought."""

    name: NodeName
    whole: Tres
    features: tuple[str, ...] = ()
    weight: int = 1
    sockets: int = 1
    cores_per_socket: int = 1
    threads_per_core: int = 1
    gres_text: str = ""
    micro_usd_per_hour: int = 0
    instance_type: str = ""
    tmp_disk_mib: int = 0
    boards: int = 1


@dataclass(frozen=True, slots=True)
class Elastic:
    """The part of a partition that is bought when needed."""

    prefix: str
    max_nodes: int
    buy: BuyPolicy = BuyPolicy()
    idle_seconds: int | None = 300
    """None: as long as standing idle costs no more than a new start would."""
    boot_timeout: int = 900
    share_users: bool = False
    """Whether jobs of different users may be on one machine."""
    setup: str = ""
    """Lines that its machines run before the partition's own."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition with its limits and defaults; seconds and MiB."""

    name: str
    default: bool = False
    state: str = "UP"
    nodes: tuple[NodeName, ...] = ()
    """Declared ones, in order."""
    elastic: Elastic | None = None
    containers: bool = True
    """Whether its jobs may use them."""
    max_time: Limit = UNLIMITED
    default_time: Limit | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    def_mem_per_cpu_mib: int | None = None
    max_mem_per_cpu_mib: int | None = None
    """A job with more of it gets more cpus."""
    max_cpus_per_node: int | None = None
    """Cpus of each node that its jobs may hold together."""
    over_time: int | None = None
    """Seconds beyond their limits that its jobs may run; None: as the site says."""
    allow_accounts: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] | None = None
    deny_qos: tuple[str, ...] = ()
    allow_groups: tuple[str, ...] | None = None
    allowed_gids: frozenset[int] = frozenset()
    """Of those groups that this host has."""
    root_only: bool = False
    disable_root_jobs: bool = False
    req_resv: bool = False
    """Whether its jobs need a reservation."""
    whole_nodes: bool = False
    """Whether each job has its nodes alone (OverSubscribe=EXCLUSIVE)."""
    hidden: bool = False
    billing_weights: str = ""
    priority_job_factor: int = 1
    priority_tier: int = 1
    preempt_mode: str = "off"
    """What becomes of its jobs where partitions of a higher tier push them out."""
    grace_time: int = 0
    """Seconds between the warning and that."""
    exclusive_user: bool = False
    qos: str | None = None
    """The QOS whose limits hold for all of its jobs together."""
    setup: str | None = None
    """Lines for the shell that a node runs once, before its first job."""
    members: frozenset[NodeName] = field(init=False, repr=False, compare=False)
    """Its declared nodes, for who asks of one: a site may have thousands."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", frozenset(self.nodes))

    def setup_of(self, *, bought: bool) -> str | None:
        """What one of its nodes runs before its first job; None for nothing."""
        before = self.elastic.setup if bought and self.elastic is not None else ""
        return f"{before}{self.setup or ''}" or None


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that deciding needs to know of the configuration."""

    cluster: str = "skypurza"
    version: str = "25.11.7"
    first_job_id: int = 1
    max_job_id: int = MAX_JOB_ID
    max_job_count: int = 100_000
    max_array_size: int = 1001
    pass_interval: int = 10
    """Seconds after which the queue is looked through though nothing calls for it (bf_interval)."""
    max_job_test: int | None = None
    """Jobs that might start, of which one look takes in the first so many (bf_max_job_test)."""
    min_job_age: int = 300
    kill_wait: int = 30
    over_time: int = 0
    """Seconds beyond its limit that a job may run."""
    inactive_limit: int = 0
    """Seconds after which an allocation ends that its command left behind; 0: never."""
    complete_wait: int = 0
    """Seconds for which no job is started while one that has ended still leaves its nodes."""
    unkillable_timeout: int = 60
    """Seconds after SIGKILL when a node is drained on which processes are left all the same."""
    constrain_cores: bool = False
    """Whether nodes hold steps to their cpus."""
    constrain_memory: bool = False
    """Whether nodes hold steps to their memory."""
    containers: bool = False
    """Whether sbatch and srun know the options of containers."""
    kill_on_bad_exit: bool = False
    """Whether a failed task ends its step where srun does not say."""
    wait_time: int = 0
    """Seconds after a step's first task's end when the others are killed; 0: never."""
    gather_seconds: int = 30
    """Between samples of what steps use."""
    prolog: str | None = None
    """Program that nodes run before a job's first step there."""
    epilog: str | None = None
    """Program that nodes run when a job has left them."""
    tmpdir: str | None = None
    """Folder that each job has on its nodes (`%j` its id, `%u` its user)."""
    job_requeue: bool = True
    enforce: str = "NO"
    """Whether jobs beyond what partitions allow are refused: where ANY, or ALL, of theirs must."""
    max_step_count: int = 40_000
    """Steps of a job."""
    max_tasks_per_node: int = 512
    propagates_limits: bool = True
    """Whether jobs have their submitters' resource limits."""
    partitions: tuple[Partition, ...] = ()
    nodes: tuple[DeclaredNode, ...] = ()
    offered_features: frozenset[str] | None = None
    """Words in lower case that machines which can be bought may have; None: any word."""
    rates: Rates = PUBLISHED
    """Of what is billed beside machines."""
    max_bought: int | None = None
    """Most bought machines at a time, of all partitions together."""
    admins: frozenset[int] = frozenset({0})
    """uids that may do everything."""
    operators: frozenset[int] = frozenset()
    """uids that may change every job and the book, and make no administrators."""
    service_uid: int | None = None
    """In a user's own service: the only uid (beside root's) that may submit."""
    private: frozenset[str] = frozenset()
    """What is hidden from those whose it is not (PrivateData)."""
    requeue_delay: int = 120
    """Seconds that a requeued job waits before it may start again (Slurm 25.11)."""
    keep_refused_jobs: bool = False
    """Whether a request that no node could ever meet leaves a FAILED record, as Slurm does."""
    preempts: str = ""
    """By what jobs push others out: `qos`, `partition_prio`, or nothing (PreemptType)."""
    preempt_mode: str = "requeue"
    """How, where the QOS of who is pushed out does not say."""
    priority_flags: tuple[str, ...] = ()
    ranking: Ranking = RANKING
    """How waiting jobs are put in order, and how use fades."""
    book: Book = field(default_factory=book)
    """Accounts, associations and QOS."""

    @property
    def default_partition(self) -> Partition | None:
        return next((p for p in self.partitions if p.default), None)

    def partition(self, name: str) -> Partition | None:
        return next((p for p in self.partitions if p.name == name), None)

    def over_time_of(self, partition: str) -> int:
        """Seconds beyond their limits that jobs in a partition may run (OverTimeLimit)."""
        found = self.partition(partition)
        return self.over_time if found is None or found.over_time is None else found.over_time

    def is_run_by(self, uid: int) -> bool:
        """Whether they are an administrator, or it is their own service."""
        return uid in self.admins or uid == self.service_uid

    def operates(self, uid: int) -> bool:
        """Whether they do with every job what its owner may not (Slurm's operators)."""
        return uid in self.admins or uid in self.operators

    def dearest(self, partition: Partition) -> int:
        """Micro-dollars an hour of the dearest of the partition's own nodes; 0 without any."""
        own = set(partition.nodes)
        return max((n.micro_usd_per_hour for n in self.nodes if n.name in own), default=0)


def with_book(site: Site, known: Book) -> Site:
    """The site with another book; who is administrator or operator follows from it."""
    return replace(
        site,
        book=known,
        admins=frozenset({0}) | _uids(known, ADMINISTRATOR),
        operators=_uids(known, OPERATOR),
    )


def _uids(known: Book, level: str) -> frozenset[int]:
    people = known.people.values()
    return frozenset(one.uid for one in people if one.admin == level and one.uid is not None)


def units(site: Site, tres: Tres, partition: str) -> int:
    """Billing units of what runs in a partition, as its weights have it (Slurm 25.11)."""
    weights = _weights(site, partition)
    return billing(tres, weights, billing_mode(site.priority_flags))


def billing_mode(flags: tuple[str, ...]) -> BillingMode:
    named = (mode for mode in (BillingMode.MAX_TRES_GRES, BillingMode.MAX_TRES) if mode in flags)
    return next(named, BillingMode.SUM)


def _weights(site: Site, name: str) -> Weights | None:
    partition = site.partition(name)
    return _parsed(partition.billing_weights) if partition else None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Weights | None:
    return parse_weights(text)


def kept_for_site(make: Callable[[Site], T]) -> Callable[[Site], T]:
    """What a function made of the last site, as long as that is the same object.

    For what every request needs and nothing but the configuration changes. Of use to any thread.
    """
    last: tuple[Site, T] | None = None

    @wraps(make)
    def known(site: Site) -> T:
        nonlocal last
        found = last
        if found is None or found[0] is not site:
            last = found = site, make(site)
        return found[1]

    return known
