"""What a step could use of its job, and what was measured of it, as the ledger has it."""

from accounting.ledger import Sampled
from accounting.tres import Tres
from broker.model.ids import BATCH
from broker.model.job import Job, Step, Usage

KIB, MIB = 1 << 10, 1 << 20
NO_ENERGY = ("energy", 0)
"""Nothing measures it."""


def held_by(job: Job, step: Step) -> Tres:
    """The batch step has its node's part, others theirs, or all of the job (25.11)."""
    whole = job.alloc
    if step.id != BATCH and step.share is not None:
        return sum((share.tres for share in step.more), start=step.share.tres)
    if step.id != BATCH or whole.node <= 1:
        return whole
    if job.shares:
        return job.shares[0].tres
    return Tres(whole.cpu // whole.node, whole.mem_mib // whole.node, 1)


def sampled(usage: Usage) -> Sampled:
    """What a node told of a step; what nobody looked at is left out."""
    used = {"cpu": (usage.user_us + usage.system_us) // 1000, "mem": usage.max_rss_kib * KIB}
    written: tuple[tuple[str, int], ...] = (NO_ENERGY,)
    if usage.max_size_kib:
        used |= {"fs/disk": usage.read, "pages": usage.pages, "vmem": usage.max_size_kib * KIB}
        written = (NO_ENERGY, ("fs/disk", usage.written))
    if usage.gpu_util is not None:
        used |= {"gres/gpumem": usage.gpu_mem_mib * MIB, "gres/gpuutil": usage.gpu_util}
    return Sampled(tuple(sorted((NO_ENERGY, *used.items()))), written)
