"""The variables that a job's steps see: SLURM_* and SKYPILOT_* over the submitter's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job, Share
from broker.model.naming import checkpoint_folder
from broker.model.site import Site
from broker.model.spec import ALL, UNLIMITED, Memory, TaskSpec
from gateway.translate.skypilot_env import sky_variables
from sbatch_shim.grammar.hostlist import fold

YEAR = 365 * 86400
"""How far ahead Slurm puts the end of a job without a limit."""
LOGIN_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
"""PATH of a fresh login of a plain user (Debian's)."""
TASK_OPTIONS = {
    "ntasks-per-core": "SLURM_NTASKS_PER_CORE",
    "ntasks-per-gpu": "SLURM_NTASKS_PER_GPU",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
    "ntasks-per-socket": "SLURM_NTASKS_PER_SOCKET",
    "threads-per-core": "SLURM_THREADS_PER_CORE",
    "cpus-per-gpu": "SLURM_CPUS_PER_GPU",
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-socket": "SLURM_GPUS_PER_SOCKET",
    "gpu-bind": "SLURM_GPU_BIND",
    "gpu-freq": "SLURM_GPU_FREQ",
    "hint": "SLURM_HINT",
    "network": "SLURM_NETWORK",
    "profile": "SLURM_PROFILE",
    "container": "SLURM_CONTAINER",
    "container-id": "SLURM_CONTAINER_ID",
    "reservation": "SLURM_JOB_RESERVATION",
    "licenses": "SLURM_JOB_LICENSES",
    "dependency": "SLURM_JOB_DEPENDENCY",
    "segment": "SLURM_JOB_SEGMENT_SIZE",
}
"""Options whose text a job sees as it was given."""


HET_WORDS = ("HET", "PACK")
"""The word for heterogeneous jobs, and its older form, which is still set."""
PER_COMPONENT = (
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_TASKS_PER_NODE",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a step runs and for which site."""

    site: Site
    submit_host: str
    node: str
    step: StepId = BATCH
    addresses: Mapping[NodeName, str] = field(default_factory=dict)
    """Internal addresses of nodes, where known."""
    gang: tuple[Job, ...] = ()
    """All components, of a heterogeneous job."""
    zone: str = ""
    region: str = ""


def login_variables(job: Job) -> dict[str, str]:
    """What a fresh login of the owner has."""
    owner = job.owner
    return {
        "HOME": owner.home,
        "LOGNAME": owner.user,
        "PATH": LOGIN_PATH,
        "SHELL": owner.shell,
        "USER": owner.user,
    }


def variables(job: Job, around: Surroundings) -> dict[str, str]:
    """SLURM_* of the batch step (25.11) and SKYPILOT_*; the node fills in SLURM_TASK_PID."""
    found: dict[str, str | None] = {}
    for part in PARTS:
        found |= part(job, around)
    own = {name: text for name, text in found.items() if text is not None}
    return own | _of_components(around)


def _of_components(around: Surroundings) -> dict[str, str]:
    """What a heterogeneous job's steps are told of each component, under both names (25.11)."""
    found: dict[str, str] = {}
    for number, job in enumerate(around.gang):
        own = variables(job, replace(around, gang=()))
        told = {name: own[name] for name in PER_COMPONENT if name in own}
        for name, text in told.items():
            found |= {f"{name}_{word}_GROUP_{number}": text for word in HET_WORDS}
    if around.gang:
        found |= {f"SLURM_{word}_SIZE": str(len(around.gang)) for word in HET_WORDS}
    return found


def _identity(job: Job, around: Surroundings) -> dict[str, str | None]:
    spec, owner, kept = job.spec, job.owner, job.spec.checkpoint
    return {
        "ENVIRONMENT": "BATCH",
        "SLURM_CLUSTER_NAME": around.site.cluster,
        "SLURM_JOBID": str(job.id),
        "SLURM_JOB_ACCOUNT": job.account or None,
        "SLURM_JOB_GID": str(owner.gid),
        "SLURM_JOB_ID": str(job.id),
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_QOS": job.qos or None,
        "SLURM_JOB_UID": str(owner.uid),
        "SLURM_JOB_USER": owner.user,
        "SLURM_PRIO_PROCESS": str(spec.nice_process),
        "SLURM_RESTART_COUNT": str(job.restarts) if job.restarts else None,
        "SPZ_CHECKPOINT_DIR": checkpoint_folder(job, kept) if kept else None,
        "SPZ_RESTART_COUNT": str(job.restarts) if job.restarts or kept else None,
        "SLURM_SUBMIT_DIR": spec.submit_dir,
        "SLURM_SUBMIT_HOST": spec.submit_host or around.submit_host,
        "SLURM_TASK_PID": "",  # filled in on the node
        "SLURM_TMPDIR": tmpdir(job, around.site),
    }


def tmpdir(job: Job, site: Site) -> str | None:
    """The job's own folder on each of its nodes (`%j`, `%u`); None where the site gives none."""
    if site.tmpdir is None:
        return None
    return site.tmpdir.replace("%j", str(job.id)).replace("%u", job.owner.user)


def _times(job: Job, _around: Surroundings) -> dict[str, str | None]:
    if job.started is None:
        return {}
    seconds = YEAR if job.time_limit == UNLIMITED else int(job.time_limit)
    return {
        "SLURM_JOB_START_TIME": str(job.started),
        "SLURM_JOB_END_TIME": str(job.started + seconds),
    }


def _nodes(job: Job, around: Surroundings) -> dict[str, str | None]:
    names = [share.node for share in job.shares]
    place = names.index(NodeName(around.node)) if around.node in names else 0
    nodelist = fold(names)
    here = job.shares[place] if job.shares else None
    return {
        "SLURMD_NODENAME": around.node,
        "SLURM_CPUS_ON_NODE": str(here.tres.cpu) if here else None,
        "SLURM_GTIDS": "0",
        "SLURM_JOB_CPUS_PER_NODE": runs([share.tres.cpu for share in job.shares]),
        "SLURM_JOB_NODELIST": nodelist,
        "SLURM_JOB_NUM_NODES": str(len(names)),
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": str(len(names)),
        "SLURM_NODEID": str(place),
        "SLURM_NODELIST": nodelist,
        "SLURM_PROCID": "0",
        "SLURM_TASKS_PER_NODE": runs([tasks_on(job.spec, share) for share in job.shares]),
        "SLURM_TOPOLOGY_ADDR": around.node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }


def runs(numbers: Sequence[int]) -> str:
    """`4(x2),2`: equal numbers that follow one another are counted."""
    counted = [(number, len(list(same))) for number, same in groupby(numbers)]
    return ",".join(
        f"{number}(x{times})" if times > 1 else str(number) for number, times in counted
    )


def tasks_on(spec: TaskSpec, share: Share) -> int:
    """Tasks of a node; where none were asked for, as many as its cpus have room for."""
    if asked_tasks(spec) is not None:
        return share.tasks
    return max(1, share.tres.cpu // (spec.resources.cpus_per_task or 1))


def asked_tasks(spec: TaskSpec) -> int | None:
    """How many tasks were asked for, outright or by a figure per node."""
    asked = spec.resources
    if asked.tasks is not None or asked.tasks_per_node is None:
        return asked.tasks
    return asked.tasks_per_node * (asked.min_nodes or 1)


def _tasks(job: Job, _around: Surroundings) -> dict[str, str | None]:
    asked, spec = job.spec.resources, job.spec
    tasks = asked_tasks(spec)
    if asked.tasks is None and tasks is not None:
        tasks = (asked.tasks_per_node or 1) * max(1, len(job.shares))
    count = None if tasks is None else str(tasks)
    each = []
    if asked.cpus_per_task is not None:
        each.append(f"cpu={asked.cpus_per_task}")
    each += [f"gres/{gpu.label()}={gpu.count}" for gpu in asked.gpus_per_task]
    by_task = sum(gpu.count for gpu in asked.gpus_per_task)
    cpus = asked.cpus_per_task
    return {
        "SLURM_CPUS_PER_TASK": None if cpus is None else str(cpus),
        "SLURM_NPROCS": count,
        "SLURM_NTASKS": count,
        "SLURM_OOM_KILL_STEP": spec.option("oom-kill-step") or "0",
        "SLURM_OVERCOMMIT": "1" if spec.option("overcommit") else None,
        "SLURM_TRES_BIND": f"gres/gpu:per_task:{by_task}" if by_task else spec.option("tres-bind"),
        "SLURM_TRES_PER_TASK": spec.option("tres-per-task") or ",".join(each) or None,
    }


def _memory(job: Job, around: Surroundings) -> dict[str, str | None]:
    asked = job.spec.resources
    partition = around.site.partition(job.partition)
    found = {
        "SLURM_MEM_PER_NODE": asked.mem_per_node_mib,
        "SLURM_MEM_PER_CPU": asked.mem_per_cpu_mib,
        "SLURM_MEM_PER_GPU": asked.mem_per_gpu_mib,
    }
    if not any(amount is not None for amount in found.values()) and partition:
        found["SLURM_MEM_PER_CPU"] = partition.def_mem_per_cpu_mib
    return {name: _mib(amount) for name, amount in found.items()}


def _mib(amount: Memory | None) -> str | None:
    """All of a node's memory is not told (25.11)."""
    return None if amount in (None, ALL) else str(amount)


def _gpus(job: Job, around: Surroundings) -> dict[str, str | None]:
    here = next((share for share in job.shares if share.node == around.node), None)
    if here is None or not here.gpu_ids:
        return {}
    ids = ",".join(map(str, here.gpu_ids))
    names = ("SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES")
    return {"SLURM_GPUS_ON_NODE": str(len(here.gpu_ids)), **dict.fromkeys(names, ids)}


def _array(job: Job, _around: Surroundings) -> dict[str, str | None]:
    array = job.array
    if array is None or array.task is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": str(array.base),
        "SLURM_ARRAY_TASK_COUNT": str(array.count),
        "SLURM_ARRAY_TASK_ID": str(array.task),
        "SLURM_ARRAY_TASK_MAX": str(array.last),
        "SLURM_ARRAY_TASK_MIN": str(array.first),
        "SLURM_ARRAY_TASK_STEP": str(array.step),
    }


DISTRIBUTION, PLANE_SIZE = "SLURM_DISTRIBUTION", "SLURM_DIST_PLANESIZE"


def distribution(text: str) -> dict[str, str]:
    """What tells of it, if any was asked for; a plane's size stands alone (22.05)."""
    kind, _, size = text.partition("=")
    sized = {PLANE_SIZE: size.partition(",")[0]} if size else {}
    return {DISTRIBUTION: kind, **sized} if text else {}


def _options(job: Job, _around: Surroundings) -> dict[str, str | None]:
    spec = job.spec
    found = {name: spec.option(long) or None for long, name in TASK_OPTIONS.items()}
    found |= distribution(spec.option("distribution") or "")
    export = spec.option("export")
    if export is not None and export.upper() != "ALL":
        found["SLURM_EXPORT_ENV"] = export
    if spec.output.open_mode:
        found["SLURM_OPEN_MODE"] = spec.output.open_mode[:1]
    if spec.login_environment:
        found["SLURM_GET_USER_ENV"] = "1"
    if found.get("SLURM_HINT") == "nomultithread":
        found["SLURM_THREADS_PER_CORE"] = "1"
    return found


def _skypilot(job: Job, around: Surroundings) -> dict[str, str | None]:
    cloud = "AWS" if around.region else around.site.cluster
    return sky_variables(
        job,
        around.node,
        around.step,
        addresses=around.addresses,
        place={"cloud": cloud, "region": around.region, "zone": around.zone},
    )


Part = Callable[[Job, Surroundings], dict[str, str | None]]
PARTS: tuple[Part, ...] = (
    _identity,
    _times,
    _nodes,
    _tasks,
    _memory,
    _gpus,
    _array,
    _options,
    _skypilot,
)
STEP_PARTS = (_identity, _times, _nodes, _array)
"""Of the batch step's variables those that tasks of srun get anew; the others they inherit."""
