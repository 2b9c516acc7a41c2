"""What components of a heterogeneous job are told of each other: salloc's command, srun's tasks."""

from collections.abc import Iterable, Sequence

from accounting.ids import JobId
from broker.model.job import Job, Share
from broker.model.site import Site
from broker.model.spec import GangPart
from gateway.translate.allocenv import allocation_variables
from gateway.translate.jobenv import HET_WORDS, asked_tasks, runs
from sbatch_shim.grammar.hostlist import fold

OF_ALL = ("SLURM_CLUSTER_NAME", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST")
"""Alike in every component, and told once."""


def gang_allocation(jobs: Sequence[Job], site: Site, submit_host: str) -> dict[str, str]:
    """The variables of an allocation of several components, the leader first (22.05).

    How many tasks there are together is told where each component asks for a number: else a
    component's srun would take it for its own.
    """
    found = {"SLURM_JOB_ID": str(jobs[0].id)}
    tasks = [asked_tasks(job.spec) for job in jobs]
    if all(tasks):
        found |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(sum(filter(None, tasks))))
    found |= {f"SLURM_{word}_SIZE": str(len(jobs)) for word in HET_WORDS}
    for number, job in enumerate(jobs):
        own = allocation_variables(job, site, submit_host)
        found |= {name: own.pop(name) for name in OF_ALL if name in own}
        for name, text in own.items():
            found |= {f"{name}_{word}_GROUP_{number}": text for word in HET_WORDS}
    return found


def gang_parts(steps: Iterable[tuple[Job, Sequence[Share]]]) -> dict[JobId, GangPart]:
    """The place of each component's step, by the order of the components, in one over all."""
    rows = sorted(steps, key=lambda pair: pair[0].id)
    every = [share for _, shares in rows for share in shares]
    first = rows[0][0]
    whole = GangPart(
        leader=first.het.base if first.het else first.id,
        tasks=sum(share.tasks for share in every),
        nodes=tuple(str(share.node) for share in every),
        tasks_per_node=tuple(share.tasks for share in every),
    )
    found, rank, place = {}, 0, 0
    for job, shares in rows:
        found[job.id] = whole.model_copy(update={"first_rank": rank, "first_node": place})
        rank, place = rank + sum(share.tasks for share in shares), place + len(shares)
    return found


def gang_variables(part: GangPart, place: int) -> dict[str, str]:
    """What tasks on its step's node of that place see of all components together (22.05)."""
    tasks, nodes, names = str(part.tasks), str(len(part.nodes)), fold(part.nodes)
    per_node = runs(part.tasks_per_node)
    return {
        "SLURM_JOBID": str(part.leader),
        "SLURM_JOB_ID": str(part.leader),
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NNODES": nodes,
        "SLURM_NODEID": str(part.first_node + place),
        "SLURM_NODELIST": names,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": nodes,
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": per_node,
        "SLURM_TASKS_PER_NODE": per_node,
    }
