"""The variables that salloc's command sees, where it was typed."""

from broker.model.job import Job
from broker.model.site import Site
from broker.model.spec import ALL, Memory
from gateway.translate.jobenv import (
    DISTRIBUTION,
    PLANE_SIZE,
    TASK_OPTIONS,
    Surroundings,
    variables,
)

OF_ALLOCATION = frozenset(
    (
        "SLURM_CLUSTER_NAME",
        "SLURM_CPUS_PER_TASK",
        "SLURM_JOBID",
        "SLURM_JOB_ACCOUNT",
        "SLURM_JOB_CPUS_PER_NODE",
        "SLURM_JOB_ID",
        "SLURM_JOB_NAME",
        "SLURM_JOB_NODELIST",
        "SLURM_JOB_NUM_NODES",
        "SLURM_JOB_PARTITION",
        "SLURM_JOB_QOS",
        "SLURM_NNODES",
        "SLURM_NODELIST",
        "SLURM_NPROCS",
        "SLURM_NTASKS",
        "SLURM_OVERCOMMIT",
        "SLURM_SUBMIT_DIR",
        "SLURM_SUBMIT_HOST",
        "SLURM_TASKS_PER_NODE",
        "SLURM_TRES_BIND",
        "SLURM_TRES_PER_TASK",
    )
)


def allocation_variables(job: Job, site: Site, submit_host: str) -> dict[str, str]:
    """Of a job's variables those that hold without a node (25.11)."""
    around = Surroundings(site, submit_host, job.shares[0].node if job.shares else "")
    names = OF_ALLOCATION | {DISTRIBUTION, PLANE_SIZE, *TASK_OPTIONS.values()}
    found = {name: text for name, text in variables(job, around).items() if name in names}
    asked = job.spec.resources
    return {
        **found,
        **_memory("SLURM_MEM_PER_CPU", asked.mem_per_cpu_mib),
        **_memory("SLURM_MEM_PER_NODE", asked.mem_per_node_mib),
    }


def _memory(name: str, amount: Memory | None) -> dict[str, str]:
    """Only what was asked for: what the partition gives is not told."""
    return {} if amount in (None, ALL) else {name: str(amount)}
