"""The variables that SkyPilot's users read, each under SKYPURZA_* too; in both kinds of job."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job
from gateway.translate.skypilot_managed import is_managed

DIALECTS = ("SKYPILOT", "SKYPURZA")


def sky_variables(
    job: Job,
    node: str,
    step: StepId,
    *,
    addresses: Mapping[NodeName, str],
    place: Mapping[str, str],
) -> dict[str, str | None]:
    """What a step on that node sees; `place` has cloud, region and zone."""
    names = [share.node for share in job.shares]
    gpus = str(_gpus(job, step))
    ips = "\n".join(addresses.get(name, name) for name in names)
    rank = str(names.index(NodeName(node)) if node in names else 0)
    own = {
        "CLUSTER_INFO": json.dumps({"cluster_name": _cluster(job), **place}),
        "NODE_IPS": ips,
        "NODE_RANK": rank,
        "NUM_GPUS_PER_NODE": gpus,
        "NUM_NODES": str(len(names)),
        "SETUP_NODE_IPS": ips,
        "SETUP_NODE_RANK": rank,
        "SETUP_NUM_GPUS_PER_NODE": gpus,
        "TASK_ID": task_id(job, step),
        "USER": job.owner.user,
        **_ranks(job),
        **_managed(job, step),
    }
    return {f"{dialect}_{name}": text for dialect in DIALECTS for name, text in own.items()}


def _gpus(job: Job, step: StepId) -> int:
    """Of each node: what the run asked for, else what the job has."""
    found = job.step(step)
    if found is not None and found.spec is not None and found.spec.gres is not None:
        return sum(one.count for one in found.spec.gres if one.name == "gpu")
    return max((len(share.gpu_ids) for share in job.shares), default=0)


def task_id(job: Job, step: StepId) -> str:
    """The same over all attempts of a job."""
    array = job.array
    base, rank = (array.base, array.task or 0) if array else (job.id, 0)
    if is_managed(job.spec):
        return f"sky-managed-{_moment(job.submitted)}_{job.spec.name}_{base}-{rank}"
    found = job.step(step) if step != BATCH else None
    if job.spec.cluster is None or found is None or not found.id.isdigit():
        return f"sky-{_moment(job.submitted)}_{_cluster(job)}_{job.id}"
    return f"sky-{_moment(found.asked or job.submitted)}_{_cluster(job)}_{int(found.id) + 1}"


def _cluster(job: Job) -> str:
    return job.spec.cluster or f"job-{job.id}"


def _ranks(job: Job) -> dict[str, str]:
    array = job.array
    return {
        "JOB_RANK": str(array.task if array and array.task is not None else 0),
        "NUM_JOBS": str(array.count if array else 1),
    }


def _managed(job: Job, step: StepId) -> dict[str, str]:
    if not is_managed(job.spec):
        return {}
    root = str(job.array.base if job.array else job.id)
    told = task_id(job, step)
    return {"MANAGED_JOB_ID": str(job.id), "ROOT_JOB_ID": root, "TASK_IDS": told}


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d-%H-%M-%S-%f")
