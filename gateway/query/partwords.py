"""Words about partitions that scontrol and sinfo both have."""

from broker.model.site import Partition
from broker.model.spec import UNLIMITED

MINUTE = 60


def groups(part: Partition) -> str:
    """Those whose users it lets in, as scontrol has them."""
    return "ALL" if part.allow_groups is None else ",".join(part.allow_groups)


def groups_in_short(part: Partition) -> str:
    """The same as sinfo has it."""
    return "all" if part.allow_groups is None else ",".join(part.allow_groups)


def sharing(part: Partition) -> str:
    """OverSubscribe."""
    return "EXCLUSIVE" if part.whole_nodes else "NO"


def most_cpus(part: Partition) -> str:
    """MaxCPUsPerNode."""
    return str(part.max_cpus_per_node or UNLIMITED)


def over_time(part: Partition) -> str:
    """OverTimeLimit, in minutes."""
    return "NONE" if part.over_time is None else str(part.over_time // MINUTE)


def preempt_mode(part: Partition) -> str:
    """What happens to its jobs where others push them out."""
    return part.preempt_mode.upper()


def most_memory(part: Partition) -> str:
    """What a job may ask for at most: by cpu, or no limit."""
    if part.max_mem_per_cpu_mib is not None:
        return f"MaxMemPerCPU={part.max_mem_per_cpu_mib}"
    return "MaxMemPerNode=UNLIMITED"


def qos_let_in(part: Partition) -> str:
    """AllowQos, or DenyQos where some are kept out."""
    if part.deny_qos and part.allow_qos is None:
        return f"DenyQos={','.join(part.deny_qos)}"
    return f"AllowQos={'ALL' if part.allow_qos is None else ','.join(part.allow_qos)}"


def root_only(part: Partition) -> str:
    """As sinfo has it."""
    return "yes" if part.root_only else "no"


def job_factor(part: Partition) -> int:
    """PriorityJobFactor."""
    return part.priority_job_factor
