"""The variables of each kind of step, whole: the batch step's, srun's and those of their tasks."""

from collections.abc import Mapping, Sequence

from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job, Share, Step
from broker.schedule.ranks import ranks
from gateway.translate.environment import pack, unpack
from gateway.translate.gangenv import gang_variables
from gateway.translate.jobenv import (
    STEP_PARTS,
    Surroundings,
    login_variables,
    runs,
    variables,
)
from sbatch_shim.grammar.hostlist import fold


def batch_environment(
    job: Job, around: Surroundings, *, given: bytes = b"", extra: bytes = b""
) -> bytes:
    """The whole environment of a step as entries separated by NUL.

    `given` are the submitter's variables, `extra` those of the step's own; ours win over both, a
    login environment lies below them.
    """
    if is_interactive(job, around.step):
        own = unpack(extra)
        return pack({**own, **task_variables(job, around), **_kept_counts(job, around, own)})
    ours = variables(job, around)
    if around.step != BATCH:
        ours |= {**step_variables(job, around), **_rank_of_node(job, around)}
        ours |= _gpus_of_part(job, around)
    theirs = {**unpack(given), **unpack(extra)}
    return pack({**_lowest(job), **theirs, **ours})


def _lowest(job: Job) -> dict[str, str]:
    login = login_variables(job) if job.spec.login_environment else {}
    return {"TMPDIR": "/tmp", **login}


def login_names(job: Job, around: Surroundings, given: bytes) -> tuple[str, ...]:
    """Variables of the batch step that its node takes from a login shell of the owner's.

    None where no login environment is asked for: of `--export=NONE`, a list and `--get-user-env`.
    """
    if around.step != BATCH or not job.spec.login_environment:
        return ()
    theirs = unpack(given)
    return tuple(name for name in _lowest(job) if name not in theirs)


def _gpus_of_part(job: Job, around: Surroundings) -> dict[str, str]:
    """The devices of a run that asked for a part of its cluster's."""
    step = job.step(around.step)
    if step is None or step.spec is None or not step.spec.gres:
        return {}
    share = share_here(step, around.node)
    return _gpu_variables(share.gpu_ids if share else ())


def is_interactive(job: Job, step_id: StepId) -> bool:
    """Whether it is one of srun's, which brings all of its variables along."""
    step = job.step(step_id)
    return step is not None and step.spec is not None and step.spec.interactive


COUNTS = (
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_TASKS_PER_NODE",
)


def _kept_counts(job: Job, around: Surroundings, own: Mapping[str, str]) -> dict[str, str]:
    """With `--preserve-env` the caller's counts win over those of the step."""
    step = job.step(around.step)
    if step is None or step.spec is None or not step.spec.keep_counts:
        return {}
    return {name: own[name] for name in COUNTS if name in own}


LAUNCHER = {
    "SLURMD_DEBUG": "2",
    "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
    "SLURM_SRUN_COMM_HOST": "127.0.0.1",
    "SLURM_SRUN_COMM_PORT": "0",
    "SLURM_STEP_LAUNCHER_PORT": "0",
}
"""What MPI libraries look for; nobody listens there, for nothing but plain starts is offered."""
NOT_OF_STEPS = ("ENVIRONMENT", "SLURM_RESTART_COUNT")


def task_variables(job: Job, around: Surroundings) -> dict[str, str]:
    """What every task of an interactive step gets over srun's own variables (25.11)."""
    step = job.step(around.step)
    if step is None or step.spec is None:
        return {}
    found: dict[str, str | None] = {}
    for part in STEP_PARTS:
        found |= part(job, around)
    tasks, names = str(step.spec.tasks), [share.node for share in step.shares]
    place = names.index(NodeName(around.node)) if around.node in names else 0
    share = step.shares[place] if names else None
    per_node = runs([share.tasks for share in step.shares]) or tasks
    found |= {
        **LAUNCHER,
        **step_variables(job, around),
        "SLURM_CPUS_ON_NODE": str(share.tres.cpu) if share else found["SLURM_CPUS_ON_NODE"],
        "SLURM_JOB_GROUP": job.owner.group,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_OOM_KILL_STEP": job.spec.option("oom-kill-step") or "0",
        "SLURM_NNODES": str(len(names) or 1),
        "SLURM_NODEID": str(place),
        "SLURM_STEP_NODELIST": fold(names) or around.node,
        "SLURM_STEP_NUM_NODES": str(len(names) or 1),
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": per_node,
        "SLURM_TASKS_PER_NODE": per_node,
        **_gpu_variables(share.gpu_ids if share else ()),
        **_window(step.spec.pty),
        **(gang_variables(step.spec.gang, place) if step.spec.gang else {}),
    }
    left_out = {*NOT_OF_STEPS, *RANKED}
    return {name: text for name, text in found.items() if text is not None and name not in left_out}


def _window(pty: tuple[int, int] | None) -> dict[str, str]:
    """Rows and columns of srun's terminal as the step began, for a step on one of its own."""
    if pty is None:
        return {}
    rows, columns = map(str, pty)
    return {"SLURM_PTY_PORT": "0", "SLURM_PTY_WIN_COL": columns, "SLURM_PTY_WIN_ROW": rows}


RANKED = ("SLURM_GTIDS", "SLURM_LOCALID", "SLURM_PROCID", "SLURM_TASK_PID")


def rank_variables(job: Job, around: Surroundings) -> list[dict[str, str]]:
    """What each task of an interactive step on that node sees beside those, by rank."""
    step = job.step(around.step)
    if step is None or step.spec is None:
        return []
    ranks, share = ranks_here(step, around.node), share_here(step, around.node)
    ids = share.gpu_ids if share else ()
    each = step.spec.gpus_per_task
    first = step.spec.gang.first_rank if step.spec.gang else 0
    every = ",".join(str(first + rank) for rank in ranks)
    return [
        {
            "SLURM_GTIDS": every,
            "SLURM_LOCALID": str(place),
            "SLURM_PROCID": str(first + rank),
            "SLURM_TASK_PID": "",  # filled in on the node
            **(_gpu_variables(ids[place * each : (place + 1) * each]) if each else {}),
        }
        for place, rank in enumerate(ranks)
    ]


def share_here(step: Step, node: str) -> Share | None:
    """What the step uses of a node; of a node that it has not, what of its first."""
    return next((share for share in step.shares if share.node == node), step.share)


def ranks_here(step: Step, node: str) -> tuple[int, ...]:
    """The tasks that are on a node, all of them where only one node has any."""
    here = {share.node: own for share, own in zip(step.shares, ranks(step), strict=True)}
    tasks = step.spec.tasks if step.spec is not None else 1
    return here.get(NodeName(node), ()) if step.more else tuple(range(tasks))


def _gpu_variables(ids: Sequence[int]) -> dict[str, str]:
    if not ids:
        return {}
    text = ",".join(map(str, ids))
    names = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES")
    counted = {"SLURM_GPUS_ON_NODE": str(len(ids)), "SLURM_STEP_GPUS": text}
    return {**counted, **dict.fromkeys(names, text)}


def _rank_of_node(job: Job, around: Surroundings) -> dict[str, str]:
    """Of a step that runs once on each of several nodes."""
    step = job.step(around.step)
    own = ranks_here(step, around.node) if step is not None and step.more else ()
    if step is None or step.spec is None or not own:
        return {}
    tasks = str(step.spec.tasks)
    return {
        "SLURM_GTIDS": ",".join(map(str, own)),
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_PROCID": str(own[0]),
    }


def step_variables(job: Job, around: Surroundings) -> dict[str, str]:
    """What a step that is not the batch step has beside those."""
    names = fold(share.node for share in job.shares)
    return {
        "SLURM_STEPID": str(around.step),
        "SLURM_STEP_ID": str(around.step),
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_NUM_NODES": str(len(job.shares)),
        "SLURM_STEP_NUM_TASKS": str(len(job.shares)),
        "SLURM_STEP_TASKS_PER_NODE": runs([1] * len(job.shares)),
        "SLURM_UMASK": f"{job.spec.umask:04o}",
    }
