"""What a job asks for and holds: getters of the column table. None means not set."""

from dataclasses import replace

from accounting.tres import Tres, Weights, billing
from broker.model.job import Job, JobState
from broker.model.spec import Gres, Memory, Resources
from gateway.query.context import Context, PartFacts
from gateway.query.job import NO_FLAG, REASON_IN_NODES, reason, waits
from sbatch_shim.grammar.hostlist import fold

IMPOSSIBLE = "BadConstraints"
"""Reason of a job that was refused and kept: no node could ever run it."""

# ---------------------------------------------------------------- nodes


def nodes(job: Job, _: Context) -> tuple[str, ...] | None:
    return None if waits(job) else job.last_node_names or None


def node_text(job: Job, ctx: Context) -> str:
    held = nodes(job, ctx) or ()
    return held[0] if len(held) == 1 else fold(held)


def nodes_or_reason(job: Job, ctx: Context) -> str:
    """Pending or failed: the reason in parentheses; else the nodes."""
    if job.state in REASON_IN_NODES and (job.flags is NO_FLAG or not job.completing):
        return f"({reason(job, ctx)})"
    return node_text(job, ctx)


def batch_host(job: Job, ctx: Context) -> str | None:
    held = nodes(job, ctx)
    return held[0] if held else None


def wanted_nodes(job: Job, _: Context) -> tuple[str, ...] | None:
    return job.spec.resources.nodelist or None


def excluded_nodes(job: Job, _: Context) -> tuple[str, ...] | None:
    return job.spec.resources.exclude or None


def node_count(job: Job, ctx: Context) -> int:
    """Nodes held, or the least number that can do."""
    if waits(job) or not job.last_node_names:
        return least_nodes(job, ctx)
    return len(job.last_node_names)


def least_nodes(job: Job, ctx: Context) -> int:
    """What was asked for, or what the tasks and GPUs need on the partition's largest node."""
    want, asked = job.want, job.spec.resources
    if asked.max_nodes == 0:
        return 0
    if asked.tasks and asked.tasks_per_node:
        return max(want.node, -(-asked.tasks // asked.tasks_per_node))
    gpus = sum(gpu.count for gpu in asked.gpus)
    least = want.node or 1
    if max(asked.tasks or 1, want.cpu, gpus) <= 1 or job.reason == IMPOSSIBLE:
        return least
    part = _part(job, ctx)
    if part is None or not part.largest_cpus or (asked.max_nodes is not None and not gpus):
        return least
    together = max(1, part.largest_cpus // cpus_per_task(job, ctx))
    by_gpus = -(-gpus // part.largest_gpus) if part.largest_gpus and not job.hold else 1
    return max(-(-tasks(job, ctx) // together), by_gpus, least)


def node_range(job: Job, ctx: Context) -> str:
    """scontrol's NumNodes: a range while pending, if one was asked for or none was (25.11)."""
    least = node_count(job, ctx)
    if job.state is not JobState.PENDING:
        return str(least)
    asked = job.spec.resources
    if asked.min_nodes is None and least == 1 and not job.hold:
        return "1"
    return f"{least}-{max(_most_nodes(asked) or least, least)}"


def _most_nodes(asked: Resources) -> int | None:
    """No more of a range than there are tasks and GPUs (22.05)."""
    gpus = sum(gpu.count for gpu in asked.gpus)
    limits = (asked.max_nodes, asked.tasks, gpus)
    return min(filter(None, limits)) if asked.max_nodes else None


def most_nodes(job: Job, _: Context) -> int:
    return job.spec.resources.max_nodes or 0


def cpu_count(job: Job, _: Context) -> int:
    return job.want.cpu if job.state is JobState.PENDING else job.alloc.cpu or job.want.cpu


def tasks(job: Job, ctx: Context) -> int:
    """Tasks asked for, or one on each node."""
    asked = job.spec.resources
    if asked.tasks is not None:
        return asked.tasks
    held = 0 if waits(job) else len(job.last_node_names)
    return max(held or job.want.node, 1) * (asked.tasks_per_node or 1)


def task_text(job: Job, ctx: Context) -> str:
    """scontrol's NumTasks: not worked out for what was refused or never started (25.11)."""
    asked = job.spec.resources
    never_ran = job.state.final and job.alloc == Tres()
    if never_ran and asked.tasks is None and asked.tasks_per_node is None:
        return "N/A"
    return str(tasks(job, ctx))


def cpus_per_task(job: Job, _: Context) -> int:
    return job.spec.resources.cpus_per_task or 1


def least_cpus(job: Job, _: Context) -> int:
    """MinCPUsNode: what each node must have free."""
    asked = job.spec.resources
    if job.spec.option("overcommit") is not None:
        return asked.min_cpus_per_node or 1
    by_tasks = (asked.tasks_per_node or 1) * (asked.cpus_per_task or 1)
    return max(asked.min_cpus_per_node or 1, by_tasks)


# ---------------------------------------------------------------- memory and other resources


def _part(job: Job, ctx: Context) -> PartFacts | None:
    return ctx.parts.get(job.partitions[0]) if job.partitions else None


def memory_per_cpu(job: Job, ctx: Context) -> Memory | None:
    """`--mem-per-cpu`, or what the partition gave by default when it was submitted.

    None when memory was asked for otherwise, or all of the node is meant.
    """
    asked, want = job.spec.resources, job.want
    if asked.mem_per_node_mib is not None:
        return None
    if asked.mem_per_cpu_mib is not None:
        return asked.mem_per_cpu_mib
    if asked.max_nodes == 0 and asked.mem_per_gpu_mib is None:
        part = ctx.site.partition(job.partitions[0]) if job.partitions else None
        return part.def_mem_per_cpu_mib if part else None
    return want.mem_mib // want.cpu if want.mem_mib and want.cpu else None


def memory(job: Job, ctx: Context) -> Memory:
    """What squeue calls MIN_MEMORY, per node or per cpu; 0 is all of the node."""
    per_cpu = memory_per_cpu(job, ctx)
    if per_cpu is not None:
        return per_cpu
    return job.spec.resources.mem_per_node_mib or 0


def line_memory_per_gpu(job: Job, _: Context) -> Memory | None:
    """scontrol shows one of the three: per GPU, per cpu, per node."""
    return job.spec.resources.mem_per_gpu_mib


def line_memory_per_cpu(job: Job, ctx: Context) -> Memory | None:
    per_gpu = job.spec.resources.mem_per_gpu_mib
    return memory_per_cpu(job, ctx) if per_gpu is None else None


def line_memory_per_node(job: Job, ctx: Context) -> Memory | None:
    others = job.spec.resources.mem_per_gpu_mib, memory_per_cpu(job, ctx)
    return memory(job, ctx) if others == (None, None) else None


def temporary_disk(job: Job, _: Context) -> Memory:
    return job.spec.resources.tmp_mib or 0


def _weights(job: Job, ctx: Context) -> Weights | None:
    part = _part(job, ctx)
    return part.weights if part else None


def wanted_tres(job: Job, ctx: Context) -> tuple[Tres, int | None] | None:
    """What it asks for at least, with its billing units; None for a job without nodes."""
    if job.spec.resources.max_nodes == 0:
        return None
    want = job.want if job.want.mem_mib else replace(job.want, mem_mib=wanted_memory(job, ctx))
    return want, billing(want, _weights(job, ctx))


def wanted_memory(job: Job, ctx: Context) -> int:
    """MiB of the whole job; all memory of a node counts as that of the largest there is."""
    if job.want.mem_mib:
        return job.want.mem_mib
    part = _part(job, ctx)
    return (part.largest_mem_mib if part else 0) * max(job.want.node, 1)


def held_tres(job: Job, ctx: Context) -> tuple[Tres, int | None] | None:
    """What it holds or held; None for a job that never started."""
    if job.state is JobState.PENDING or job.alloc == Tres():
        return None
    return job.alloc, billing(job.alloc, _weights(job, ctx))


def tres_in_use(job: Job, ctx: Context) -> tuple[Tres, int | None] | None:
    """What it holds, or asks for while it waits."""
    return held_tres(job, ctx) or wanted_tres(job, ctx)


def features(job: Job, _: Context) -> str | None:
    """The constraint, also an empty one; once it runs by what it preferred, that."""
    asked = job.spec.resources
    if asked.prefer is not None and job.state is not JobState.PENDING:
        return asked.prefer
    return job.spec.option("constraint") if asked.constraint is None else asked.constraint


def preferred(job: Job, _: Context) -> str | None:
    return None if job.state is not JobState.PENDING else job.spec.resources.prefer


def gres_text(items: tuple[Gres, ...], counted: bool = True, mark: str = ":") -> str | None:
    """`gres/gpu:a10g:2`, or without counts; None for none (25.11)."""
    texts = [f"gres/{one.label()}{f'{mark}{one.count}' if counted else ''}" for one in items]
    return ",".join(texts) or None


def _typed(text: str | None) -> str | None:
    """GRES as typed, each with its kind in front: `gpu:2` is `gres/gpu:2` (25.11)."""
    if not text or text.lower() == "none":
        return None
    return ",".join(w if w.startswith("gres/") else f"gres/{w}" for w in text.split(","))


def _gpus(text: str | None) -> str | None:
    """GPU counts as typed, `2` or `a10g:2`, as GRES."""
    words = [word for word in (text or "").split(",") if word]
    return ",".join(f"gres/gpu:{word}" for word in words) or None


def tres_per_node(job: Job, _: Context) -> str | None:
    option = job.spec.option
    parts = [_gpus(option("gpus-per-node")), _typed(option("gres"))]
    texts = [part for part in parts if part]
    if job.spec.options:
        return ",".join(texts) or None
    return gres_text(job.spec.resources.gres)


def tres_per_job(job: Job, _: Context) -> str | None:
    if job.spec.options:
        return _gpus(job.spec.option("gpus"))
    return gres_text(job.spec.resources.gpus)


def tres_per_socket(job: Job, _: Context) -> str | None:
    return _gpus(job.spec.option("gpus-per-socket"))


def tres_per_task(job: Job, _: Context) -> str | None:
    """`-c 2` is `cpu=2`, `--gpus-per-task=1` is `gres/gpu=1` (25.11)."""
    cpus = job.spec.option("cpus-per-task")
    parts = [
        job.spec.option("tres-per-task"),
        f"cpu={job.spec.resources.cpus_per_task}" if cpus else None,
        gres_text(job.spec.resources.gpus_per_task, mark="="),
    ]
    return ",".join(part for part in parts if part) or None


def cpus_per_tres(job: Job, _: Context) -> str | None:
    count = job.spec.resources.cpus_per_gpu
    return None if count is None else f"gres/gpu:{count}"


def memory_per_tres(job: Job, _: Context) -> str | None:
    per_gpu = job.spec.resources.mem_per_gpu_mib
    return None if per_gpu is None else f"gres/gpu:{per_gpu}"


def tres_bind(job: Job, _: Context) -> str | None:
    given, of_gpus = job.spec.option("tres-bind"), job.spec.option("gpu-bind")
    per_task = job.spec.resources.gpus_per_task
    if given is None and of_gpus:
        return f"gres/gpu:{of_gpus}"
    if given is not None or not per_task:
        return given
    return f"gres/gpu:per_task:{per_task[0].count}"


def tres_freq(job: Job, _: Context) -> str | None:
    given = job.spec.option("gpu-freq")
    return f"gpu:{given}" if given else None


# ---------------------------------------------------------------- layout of tasks


def sockets(job: Job, _: Context) -> str:
    return str(job.spec.resources.sockets or "*")


def cores(job: Job, _: Context) -> str:
    return str(job.spec.resources.cores_per_socket or "*")


def threads(job: Job, _: Context) -> str:
    return str(job.spec.resources.threads_per_core or "*")


def geometry(job: Job, ctx: Context) -> str:
    return f"{sockets(job, ctx)}:{cores(job, ctx)}:{threads(job, ctx)}"


def request_geometry(job: Job, ctx: Context) -> str:
    """ReqB:S:C:T."""
    return f"0:0:{cores(job, ctx)}:{threads(job, ctx)}"


def tasks_per_node(job: Job, _: Context) -> int:
    return job.spec.resources.tasks_per_node or 0


def tasks_per_tres(job: Job, _: Context) -> str | None:
    return job.spec.option("ntasks-per-gpu") or job.spec.option("ntasks-per-tres")


def task_layout(job: Job, ctx: Context) -> str:
    """NtasksPerN:B:S:C."""
    socket = job.spec.option("ntasks-per-socket") or "*"
    core = job.spec.option("ntasks-per-core") or "*"
    return f"{tasks_per_node(job, ctx)}:0:{socket}:{core}"


def sharing(job: Job, ctx: Context) -> str:
    """OverSubscribe: how nodes are shared with others."""
    exclusive = job.spec.option("exclusive")
    if job.spec.resources.exclusive or exclusive is not None:
        return EXCLUSIVE.get((exclusive or "").lower(), "NO")
    if job.spec.option("oversubscribe") is not None:
        return "YES"
    part = ctx.site.partition(job.partitions[0]) if job.partitions else None
    if part is not None and part.exclusive_user:
        return "USER"
    return "NO" if part is not None and part.whole_nodes else "OK"


EXCLUSIVE = {"user": "USER", "mcs": "MCS", "topo": "TOPO"}


def contiguous(job: Job, _: Context) -> bool:
    return job.spec.resources.contiguous
