"""What slurmrestd's job record tells otherwise than squeue: getters of its leaves (25.11.7)."""

from typing import Any

from accounting.tres import parse_weights
from broker.model.job import ExitCode, Job, JobState, Share
from broker.model.spec import ALL
from gateway.query import job as of
from gateway.query import resources as res
from gateway.query import texts
from gateway.query.column import JobGetter
from gateway.query.context import Context
from gateway.query.fields import BY_KEY
from gateway.query.job import NO_FLAG
from gateway.query.shape import number, unset
from gateway.query.showjob import gres_text
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import UNLIMITED

SIGNALS = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    6: "Aborted",
    9: "Killed",
    10: "User defined signal 1",
    11: "Segmentation fault",
    12: "User defined signal 2",
    15: "Terminated",
}


def column(key: str) -> JobGetter:
    """The value of a column of squeue or scontrol."""
    return BY_KEY[key].get


def minutes(job: Job, _: Context) -> int | str:
    limit = job.time_limit
    return limit if isinstance(limit, str) else -(-limit // 60)


def least_minutes(job: Job, _: Context) -> int:
    return (job.spec.time_min or 0) // 60


def exit_record(value: ExitCode, ended: bool = True) -> dict[str, Any]:
    """An exit code with its signal in words."""
    status = "SIGNALED" if value.signal else "ERROR" if value.code else "SUCCESS"
    return {
        "status": [status if ended else "PENDING"],
        "return_code": number(value.code),
        "signal": {
            "id": number(value.signal) if value.signal else unset(),
            "name": SIGNALS.get(value.signal, str(value.signal)) if value.signal else "",
        },
    }


CLEAN = exit_record(ExitCode())
"""Shared by all that ended so; nobody changes it."""


def exit_code(job: Job, _: Context) -> dict[str, Any]:
    return exit_record(job.exit) if job.exit.code or job.exit.signal else CLEAN


def derived_exit_code(job: Job, _: Context) -> dict[str, Any]:
    return exit_record(job.derived) if job.derived.code or job.derived.signal else CLEAN


def states(job: Job, ctx: Context) -> list[str]:
    """The base state, then what stands beside it."""
    if job.flags is NO_FLAG:
        return [job.state.label]
    beside = [("CONFIGURING", job.configuring), ("COMPLETING", job.completing)]
    return [job.state.label, *(word for word, there in beside if there)]


def billable(job: Job, ctx: Context) -> float | None:
    """Billing units with their fraction; None while it holds nothing."""
    if job.state is JobState.PENDING or not job.alloc.cpu:
        return None
    part = ctx.site.partition(job.partition)
    weights = parse_weights(part.billing_weights) if part else None
    if weights is None:
        return float(job.alloc.cpu)
    have = dict(job.alloc.gres)
    plain = job.alloc.cpu * weights.cpu + job.alloc.mem_mib * weights.mem_mib
    return plain + job.alloc.node * weights.node + sum(have.get(k, 0) * w for k, w in weights.gres)


def billable_record(job: Job, ctx: Context) -> dict[str, Any]:
    units = billable(job, ctx)
    return {**unset(), "number": 0.0} if units is None else number(float(units))


def memory_per_cpu(job: Job, ctx: Context) -> int | None:
    return _mebibytes(res.line_memory_per_cpu(job, ctx))


def memory_per_node(job: Job, ctx: Context) -> int | None:
    return _mebibytes(res.line_memory_per_node(job, ctx))


def _mebibytes(value: Any) -> int | None:
    return 0 if value == ALL else value


def array_task(job: Job, _: Context) -> int | None:
    return job.array.task if job.array else None


def array_job(job: Job, _: Context) -> int:
    return job.array.base if job.array else 0


def array_limit(job: Job, _: Context) -> int:
    return (job.array.limit or 0) if job.array and job.array.task is None else 0


def array_text(job: Job, ctx: Context) -> str | None:
    return of.array_tasks(job, ctx) if job.array and job.array.task is None else None


def node_text(job: Job, ctx: Context) -> str:
    return res.node_text(job, ctx)


def host_list(names: tuple[str, ...]) -> str:
    return fold(names) if names else ""


def wanted_nodes(job: Job, _: Context) -> str:
    return host_list(job.spec.resources.nodelist)


def excluded_nodes(job: Job, _: Context) -> str:
    return host_list(job.spec.resources.exclude)


DEFAULTS = (
    ("account", "USING_DEFAULT_ACCOUNT"),
    ("partition", "USING_DEFAULT_PARTITION"),
    ("qos", "USING_DEFAULT_QOS"),
    ("wckey", "USING_DEFAULT_WCKEY"),
)
MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")


def flags(job: Job, ctx: Context) -> list[str]:
    """What Slurm notes of a job; of these only what can be told from the record."""
    option = job.spec.option
    found = []
    if job.started is not None:
        found += ["ACCRUE_COUNT_CLEARED", "JOB_WAS_RUNNING"]
    if any(option(name) is not None for name in MEMORY) or _has_memory(job):
        found.append("EXACT_MEMORY_REQUESTED")
    found += [word for name, word in DEFAULTS if option(name) is None]
    if job.state is JobState.PENDING and of.eligible(job, ctx) is None:
        found.append("DEPENDENT")
    return [*found, "PARTITION_ASSIGNED"]


def _has_memory(job: Job) -> bool:
    asked = job.spec.resources
    return asked.mem_per_node_mib is not None or asked.mem_per_cpu_mib is not None


def shared(job: Job, _: Context) -> list[str]:
    """How nodes are shared, in slurmrestd's words."""
    exclusive = (job.spec.option("exclusive") or "").lower()
    if job.spec.resources.exclusive or job.spec.option("exclusive") is not None:
        return [exclusive] if exclusive in {"user", "mcs", "topo"} else ["none"]
    return [] if job.spec.option("oversubscribe") is None else ["oversubscribe"]


def exclusively(job: Job, _: Context) -> list[str]:
    """As versions up to 0.0.41 have it."""
    return ["true"] if job.spec.resources.exclusive else []


def mail_types(job: Job, _: Context) -> list[str]:
    words = [word.upper() for word in job.spec.mail_types]
    return [
        one for word in words for one in MAIL.get(word, (word.replace("TIME_LIMIT_", "TIME="),))
    ]


MAIL = {
    "NONE": (),
    "ALL": ("BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"),
    "TIME_LIMIT": ("TIME=100%",),
    "TIME_LIMIT_90": ("TIME=90%",),
    "TIME_LIMIT_80": ("TIME=80%",),
    "TIME_LIMIT_50": ("TIME=50%",),
    "INVALID_DEPEND": ("INVALID_DEPENDENCY",),
}


def mail_user(job: Job, _: Context) -> str:
    return job.spec.mail_user or job.owner.user


def gres_detail(job: Job, _: Context) -> list[str]:
    """What each node gives, with the indexes."""
    shares = job.shares if any(share.tres.gres for share in job.shares) else ()
    return [gres_text(share.tres.gres, share.gpu_ids) for share in shares]


def resources(job: Job, ctx: Context) -> dict[str, Any] | None:
    """Which cpus and how much memory of each node; None while nothing is held."""
    if not job.shares:
        return None
    whole = {node.name: node for node in ctx.site.nodes}
    cells = [
        _allocation(share, place, whole.get(share.node)) for place, share in enumerate(job.shares)
    ]
    return {
        "select_type": ["CORE"],
        "nodes": {
            "count": len(job.shares),
            "select_type": ["ONE_ROW"],
            "list": res.node_text(job, ctx),
            "whole": job.spec.resources.exclusive,
            "allocation": cells,
        },
        "cpus": job.alloc.cpu,
        "threads_per_core": unset(),
    }


def _allocation(share: Share, place: int, node: Any) -> dict[str, Any]:
    sockets = node.sockets if node else 1
    cores = node.cores_per_socket if node else max(share.cpu_ids, default=-1) + 1
    return {
        "index": place,
        "name": share.node,
        "cpus": {"count": share.tres.cpu, "used": 0},
        "memory": {"used": 0, "allocated": share.tres.mem_mib},
        "sockets": [
            {
                "index": socket,
                "cores": [_core(share, socket * cores, core) for core in range(cores)],
            }
            for socket in range(sockets)
        ],
    }


def _core(share: Share, before: int, core: int) -> dict[str, Any]:
    held = before + core in share.cpu_ids
    return {"index": core, "status": ["ALLOCATED" if held else "UNALLOCATED"]}


def profiles(job: Job, _: Context) -> list[str]:
    return [name.upper() for name in texts.profiles(job)] or ["NOT_SET"]


def option(name: str) -> JobGetter:
    """An option as typed."""
    return lambda job, _: job.spec.option(name)


def star(get: JobGetter) -> JobGetter:
    """A wish that is a number or, as `*`, not there."""

    def wish(job: Job, ctx: Context) -> int | None:
        text = get(job, ctx)
        return int(text) if text and str(text).isdigit() else None

    return wish


def boundless(name: str) -> JobGetter:
    """An option's number; infinite where it was not given."""

    def wish(job: Job, _: Context) -> int | str:
        text = job.spec.option(name)
        return int(text) if text and text.isdigit() else UNLIMITED

    return wish


def digits(*names: str) -> JobGetter:
    """The number of an option, by the first of its names that was given; 0 where none was."""

    def wish(job: Job, _: Context) -> int:
        given = next(filter(None, map(job.spec.option, names)), "")
        text = given.partition("@")[0]
        return int(text) if text.isdigit() else 0

    return wish
