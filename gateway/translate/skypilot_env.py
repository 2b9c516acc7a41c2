"""The variables that SkyPilot's users read, each under SKYPURZA_* too; in both kinds of job."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job
from broker.model.spec import Managed

DIALECTS = ("SKYPILOT", "SKYPURZA")
OLDER = {
    "SKY_NODE_IPS": "NODE_IPS",
    "SKY_NODE_RANK": "NODE_RANK",
    "SKY_NUM_GPUS_PER_NODE": "NUM_GPUS_PER_NODE",
    "SKYPILOT_JOB_ID": "TASK_ID",
    "SKYPILOT_RUN_ID": "TASK_ID",
}
"""Names of SkyPilot before 0.5, which scripts still read."""


def sky_variables(
    job: Job,
    node: str,
    step: StepId,
    *,
    addresses: Mapping[NodeName, str],
    place: Mapping[str, str],
) -> dict[str, str | None]:
    """What a step on that node sees; `place` has cloud, region and zone."""
    all_nodes, names = [share.node for share in job.shares], _nodes(job, step)
    gpus = str(_gpus(job, step))
    own = {
        "CLUSTER_INFO": json.dumps({"cluster_name": _cluster(job), **place}),
        "NODE_IPS": "\n".join(addresses.get(name, name) for name in names),
        "NODE_RANK": _rank(node, names),
        "NUM_GPUS_PER_NODE": gpus,
        "NUM_NODES": str(len(names)),
        "SETUP_NODE_IPS": "\n".join(addresses.get(name, name) for name in all_nodes),
        "SETUP_NODE_RANK": _rank(node, all_nodes),
        "SETUP_NUM_GPUS_PER_NODE": gpus,
        "TASK_ID": task_id(job, step),
        "USER": job.owner.user,
        **_ranks(job),
        **_managed(job),
    }
    told: dict[str, str | None] = {old: own[name] for old, name in OLDER.items()}
    return told | {f"{d}_{name}": text for d in DIALECTS for name, text in own.items()}


def _nodes(job: Job, step: StepId) -> list[NodeName]:
    """Those of a run in a cluster, which may have more; else the job's."""
    found = job.step(step)
    own = found.shares if found is not None and found.run else ()
    return [share.node for share in own or job.shares]


def _rank(node: str, names: Sequence[NodeName]) -> str:
    return str(names.index(NodeName(node)) if node in names else 0)


def _gpus(job: Job, step: StepId) -> int:
    """Of each node: what the run asked for, else what the job has."""
    found = job.step(step)
    if found is not None and found.spec is not None and found.spec.gres is not None:
        return sum(one.count for one in found.spec.gres if one.name == "gpu")
    return max((len(share.gpu_ids) for share in job.shares), default=0)


def task_id(job: Job, step: StepId) -> str:
    """The same over all attempts of a job."""
    if job.spec.managed is not None:
        return _managed_id(job, job.spec.managed, job.spec.managed.number)
    found = job.step(step) if step != BATCH else None
    if job.spec.cluster is None or found is None or not found.id.isdigit():
        return f"sky-{_moment(job.submitted)}_{_cluster(job)}_{job.id}"
    return f"sky-{_moment(found.asked or job.submitted)}_{_cluster(job)}_{int(found.id) + 1}"


def _managed_id(job: Job, asked: Managed, number: int) -> str:
    """Of one task of the whole that the job belongs to; an array's elements count as tasks."""
    array = job.array
    root, rank = (array.base, array.task or 0) if array else (_root(job), number)
    several = len(asked.tasks) > 1
    name = f"{asked.name}_{asked.tasks[number]}" if several else job.spec.name
    return f"sky-managed-{_moment(asked.at or job.submitted)}_{name}_{root}-{rank}"


def _root(job: Job) -> int:
    """The managed job that the user knows: the first of a pipeline or group."""
    asked = job.spec.managed
    return job.id if asked is None or asked.root is None else asked.root


def _cluster(job: Job) -> str:
    if job.spec.managed is not None:
        return f"{job.spec.name}-{_root(job)}"
    return job.spec.cluster or f"job-{job.id}"


def _ranks(job: Job) -> dict[str, str]:
    array = job.array
    return {
        "JOB_RANK": str(array.task if array and array.task is not None else 0),
        "NUM_JOBS": str(array.count if array else 1),
    }


def _managed(job: Job) -> dict[str, str]:
    asked = job.spec.managed
    if asked is None:
        return {}
    count = range(max(1, len(asked.tasks)))
    return {
        "MANAGED_JOB_ID": str(_root(job)),
        "ROOT_JOB_ID": str(job.array.base if job.array else _root(job)),
        "TASK_IDS": "\n".join(_managed_id(job, asked, number) for number in count),
        **({"JOBGROUP_NAME": asked.name} if asked.kind == "group" else {}),
    }


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d-%H-%M-%S-%f")
