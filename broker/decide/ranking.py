"""Who may push whom out: by QOS that name others, or by partitions of a higher tier (25.11)."""

from dataclasses import dataclass

from accounting.assoc import Qos
from broker.model.job import Job
from broker.model.site import Partition, Site

BY_PARTITION = "partition_prio"
OFF = "off"
CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a running job is pushed out; times in seconds."""

    rank: int
    """Who has least goes first."""
    mode: str
    grace: int = 0
    exempt: int = 0
    """How long it runs before it may be pushed out."""


def terms(site: Site, job: Job) -> Terms:
    """Those of its partition, or of its QOS."""
    if site.preempts == BY_PARTITION:
        part = site.partition(job.partition) or Partition(job.partition)
        return Terms(part.priority_tier, part.preempt_mode, part.grace_time)
    grade = site.book.qos.get(job.qos) or Qos(name=job.qos)
    mode = site.preempt_mode if grade.preempt_mode == CLUSTER else grade.preempt_mode
    return Terms(grade.priority, mode, grade.grace_time, grade.exempt_time or 0)


def pushes(site: Site, job: Job) -> bool:
    """Whether the job may push out anybody."""
    if site.preempts == BY_PARTITION:
        return True
    grade = site.book.qos.get(job.qos)
    return grade is not None and bool(grade.preempt)


def outranks(site: Site, job: Job, partition: Partition, *, other: Job) -> bool:
    """Whether the job, in that partition, may push out the other."""
    if site.preempts == BY_PARTITION:
        theirs = terms(site, other)
        return partition.priority_tier > theirs.rank and theirs.mode != OFF
    return other.qos in {name.lower() for name in site.book.qos[job.qos].preempt}
