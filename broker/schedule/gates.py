"""Why a job may not start now, before anybody looks for room: Slurm's reasons, in Slurm's order."""

from collections.abc import Iterable

from accounting.ids import AccountName
from broker.model.errors import ACCESS_DENIED, USER_ID_MISSING, Denied
from broker.model.job import OF_HELD, Job, Owner
from broker.model.site import Partition, Site
from broker.model.spec import UNLIMITED, Limit
from broker.schedule.demand import Demand, wanted

ROOT = 0


def gate(job: Job, now: int) -> str | None:
    """The reason that does not depend on a partition, None if it may be placed."""
    if job.hold is not None:
        return job.reason if job.reason in OF_HELD else job.hold.value
    if job.after and not _only_elementwise(job):
        never = job.reason == "DependencyNeverSatisfied"
        return "DependencyNeverSatisfied" if never else "Dependency"
    return "BeginTime" if begin_of(job) > now else None


def begin_of(job: Job) -> int:
    """Not to be started before this instant: `--begin`, or the delay after a requeue."""
    begin, back = job.spec.begin, job.not_before
    return 0 if begin is None and back is None else max(begin or 0, back or 0)


def _only_elementwise(job: Job) -> bool:
    """An array with `aftercorr` alone is judged element by element."""
    return job.array is not None and all(wish.kind.value == "aftercorr" for wish in job.after)


def partition_gate(site: Site, job: Job, partition: Partition, *, nodes: int) -> str | None:
    """Why this partition will not start it as things are; `nodes` is the least it can do with.

    EnforcePartLimits=NO: such jobs were accepted and wait (Slurm 25.11). What a QOS lets its jobs
    pass by is no limit for them.
    """
    passes = _flags(site, job, partition)
    if partition.state == "DOWN":
        return "PartitionDown"
    if partition.state == "INACTIVE":
        return "PartitionInactive"
    if not _account_allowed(job, partition):
        return "AccountNotAllowed"
    if not _qos_allowed(job, partition):
        return "QOSNotAllowed"
    if _over(least_time(job), partition) and "PartitionTimeLimit" not in passes:
        return "PartitionTimeLimit"
    few = nodes < partition.min_nodes and "PartitionMinNodes" not in passes
    many = nodes > (partition.max_nodes or nodes) and "PartitionMaxNodes" not in passes
    return "PartitionNodeLimit" if few or many else None


def _flags(site: Site, job: Job, partition: Partition) -> frozenset[str]:
    """Of the job's QOS and the partition's."""
    own, wide = site.book.qos.get(job.qos), site.book.qos.get((partition.qos or "").lower())
    return frozenset[str]().union(*(one.flags for one in (own, wide) if one is not None))


def barred(site: Site, job: Job, partition: Partition, *, ask: Demand) -> str | None:
    """Either of the two: why this partition will not start it as things are."""
    gated = partition_gate(site, job, partition, nodes=ask.min_nodes)
    return gated or beyond(site, partition, ask)


def shut(site: Site, job: Job, asks: Iterable[tuple[Partition, Demand]]) -> str | None:
    """Why none of its partitions will, by the last of them; None if one might."""
    reasons = [barred(site, job, partition, ask=ask) for partition, ask in asks]
    return None if None in reasons else reasons[-1]


def beyond(site: Site, partition: Partition, ask: Demand) -> str | None:
    """`PartitionConfig` for more nodes or cpus than the partition could ever give together."""
    many = ask.min_nodes > capacity(partition) or too_many_cpus(site, partition, wanted(ask).cpu)
    return "PartitionConfig" if many else None


def too_many_cpus(site: Site, partition: Partition, wish: int) -> bool:
    """Whether its declared nodes have fewer together; there is no end of those to be bought."""
    if partition.elastic is not None:
        return False
    most = partition.max_cpus_per_node
    own = (node.whole.cpu for node in site.nodes if node.name in partition.members)
    return wish > (sum(own) if most is None else sum(min(cpu, most) for cpu in own))


def _account_allowed(job: Job, partition: Partition) -> bool:
    account = AccountName(job.account)
    if partition.allow_accounts is not None and account not in partition.allow_accounts:
        return False
    return account not in partition.deny_accounts


def _qos_allowed(job: Job, partition: Partition) -> bool:
    """Names of QOS are in lower case in the book and in partitions."""
    if partition.allow_qos is not None:
        return job.qos in partition.allow_qos
    return job.qos not in partition.deny_qos


def must_be_let_in(site: Site, partition: Partition, by: Owner, *, reservation: str | None) -> None:
    """Whether somebody may put a job there at all. Raises Denied (22.05)."""
    if partition.req_resv and not reservation:
        raise Denied(ACCESS_DENIED)
    if partition.root_only and by.uid not in site.admins:
        raise Denied(ACCESS_DENIED)
    if partition.disable_root_jobs and by.uid == ROOT:
        raise Denied(USER_ID_MISSING)
    if partition.state in QUEUES_NOTHING:
        raise Denied("Required partition not available (inactive or drain)")
    if not in_its_groups(site, partition, by):
        raise Denied("User's group not permitted to use this partition")


QUEUES_NOTHING = ("DRAIN", "INACTIVE")
"""States of partitions in which they take no new jobs; DRAIN starts those that wait."""


def in_its_groups(site: Site, partition: Partition, by: Owner) -> bool:
    """Whether AllowGroups lets them in, as it does root and who runs the service."""
    if partition.allow_groups is None or by.uid in {ROOT, site.service_uid}:
        return True
    return not partition.allowed_gids.isdisjoint((by.gid, *by.groups))


def least_time(job: Job) -> Limit:
    """Seconds that it has to be given: `--time-min`, else its limit."""
    return job.time_limit if job.spec.time_min is None else job.spec.time_min


def limit_there(site: Site, job: Job, partition: Partition) -> Limit:
    """Its limit where it starts: the least that it asked for, where its own is over (22.05)."""
    free = "PartitionTimeLimit" in _flags(site, job, partition)
    return job.time_limit if free or not _over(job.time_limit, partition) else least_time(job)


def _over(limit: Limit, partition: Partition) -> bool:
    if partition.max_time == UNLIMITED:
        return False
    return limit == UNLIMITED or limit > partition.max_time


def capacity(partition: Partition) -> int:
    """How many nodes the partition can have at most."""
    return len(partition.nodes) + (partition.elastic.max_nodes if partition.elastic else 0)


def limit_of(asked: Limit | None, partition: Partition) -> Limit:
    """The time limit: as asked, else DefaultTime, else MaxTime of the partition."""
    if asked is not None:
        return asked
    return partition.default_time if partition.default_time is not None else partition.max_time
