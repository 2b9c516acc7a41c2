"""A job and its steps as slurmdbd's records have them, and `sacct --json` (25.11.7)."""

from collections.abc import Callable
from typing import Any

from broker.model.ids import BATCH
from broker.model.job import ExitCode, Job, JobState, Step
from gateway.query import job as of
from gateway.query import past, texts
from gateway.query import resources as res
from gateway.query.assocs import association_id
from gateway.query.context import Context
from gateway.query.documents import Kind
from gateway.query.restvalues import (
    array_job,
    array_task,
    array_text,
    digits,
    exit_record,
    host_list,
    memory_per_cpu,
    memory_per_node,
    minutes,
    node_text,
    option,
)
from gateway.query.sacct import steps_of
from gateway.query.shape import (
    ANY,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    ZERO,
    Leaf,
    Shape,
    compiled,
    number,
    plain,
    unset,
)
from gateway.query.steps import step_id, step_nodes, step_tasks
from gateway.query.steps import step_tres as shared_tres
from gateway.query.tresnames import listed

SECOND = 1_000_000
UNKNOWN_ENERGY = {"type": "energy", "name": "", "id": 3, "count": -2}


def cpu_time(microseconds: int) -> dict[str, int]:
    seconds, rest = divmod(microseconds, SECOND)
    return {"seconds": seconds, "microseconds": rest}


def exit_of(job: Job, ctx: Context) -> dict[str, Any]:
    value = job.exit if job.state.final and job.state not in past.CLEAN_EXIT else ExitCode()
    return exit_record(value, job.state.final)


def derived_of(job: Job, _: Context) -> dict[str, Any]:
    return exit_record(job.derived)


def states(job: Job, _: Context) -> list[str]:
    return [past.state(job, _).partition(" ")[0]]


def flags(job: Job, _: Context) -> list[str]:
    begun = ["STARTED_ON_SCHEDULE"] if past.started(job) else []
    return [*begun, "START_RECEIVED"]


def killer(job: Job, ctx: Context) -> str:
    """Who cancelled it, by name."""
    return "" if job.ended_by is None else ctx.user_name(job.ended_by)


def start(job: Job, _: Context) -> int:
    return (job.started if past.started(job) else job.ended if job.state.final else 0) or 0


def end(job: Job, ctx: Context) -> int:
    return past.end(job, ctx) or 0


def eligible(job: Job, _: Context) -> int:
    return job.eligible or 0


def allocated(job: Job, ctx: Context) -> list[dict[str, Any]]:
    """What it held; energy that nobody measured counts -2 where only a batch step ran (25.11)."""
    found = listed(res.held_tres(job, ctx), ctx.tres_ids)
    if not found or past.energy(job, ctx) is not None:
        return found
    return sorted([*found, UNKNOWN_ENERGY], key=lambda one: int(str(one["id"])))


def requested(job: Job, ctx: Context) -> list[dict[str, Any]]:
    return listed(res.wanted_tres(job, ctx), ctx.tres_ids)


def array_limit(job: Job, _: Context) -> int:
    return (job.array.limit or 0) if job.array else 0


def reservation(job: Job, _: Context) -> dict[str, Any]:
    name = job.spec.reservation or ""
    return {"id": 0, "name": name, "requested": name}


def held(job: Job, _: Context) -> bool:
    return job.state is JobState.PENDING and job.hold is not None


def nodes_held(job: Job, ctx: Context) -> str:
    return node_text(job, ctx) or "None assigned"


# ---------------------------------------------------------------- steps

Pair = tuple[Job, Step]
ENERGY = {"type": "energy", "name": "", "id": 3, "count": 0}


def _usage(node: str | None, step: Step) -> dict[str, Any]:
    """What was measured of a step: cpu time in milliseconds, memory in bytes."""
    used = step.usage
    if past.brief(step) or not (used.max_rss_kib or used.user_us or used.system_us):
        return {"max": [], "min": [], "average": [ENERGY], "total": [ENERGY]}
    counts = [
        ("cpu", 1, (used.user_us + used.system_us) // 1000),
        ("mem", 2, used.max_rss_kib << 10),
    ]
    if used.max_size_kib:
        more = (("fs/disk", 6, used.read), ("vmem", 7, used.max_size_kib << 10))
        counts += [*more, ("pages", 8, used.pages)]
    plain_ = [{"type": kind, "name": "", "id": n, "count": count} for kind, n, count in counts]
    placed = [{**one, "node": node or "", "task": 0} for one in plain_]
    total = [*plain_, ENERGY]
    return {"max": placed, "min": placed, "average": total, "total": total}


def _nothing() -> dict[str, Any]:
    return {"max": [], "min": [], "average": [ENERGY], "total": [ENERGY]}


def step_tres(pair: Pair, ctx: Context) -> dict[str, Any]:
    job, step = pair
    value = None if step.id == BATCH and not job.alloc.cpu else shared_tres(job, step, ctx)
    node = job.last_node_names[0] if job.last_node_names else None
    return {
        "requested": _nothing(),
        "consumed": _usage(node, step),
        "allocated": listed(value, ctx.tres_ids),
    }


def _step_nodes(pair: Pair, ctx: Context) -> dict[str, Any]:
    names = step_nodes(pair[0], pair[1], ctx) or ()
    return {"count": len(names), "range": host_list(names), "list": list(names)}


def distribution(pair: Pair, _: Context) -> str:
    return "Unknown" if pair[1].id == BATCH else "Block"


def _frequency(pair: Pair, _: Context) -> dict[str, Any]:
    batch = pair[1].id == BATCH
    given = number(0) if batch else unset()
    return {
        "requested_frequency": {"min": given, "max": given},
        "governor": "0" if batch else "Unknown",
    }


def _of(get: Callable[[Job, Step, Context], Any]) -> Callable[[Pair, Context], Any]:
    return lambda pair, ctx: get(pair[0], pair[1], ctx)


STEP = {
    "time": {
        "elapsed": Leaf(_of(past.step_time), COUNT),
        "end": Leaf(_of(past.step_end), ZERO),
        "start": Leaf(_of(past.step_start), ZERO),
        "suspended": 0,
        "system": Leaf(lambda pair, _: cpu_time(pair[1].usage.system_us), ANY),
        "limit": number("UNLIMITED"),
        "total": Leaf(lambda pair, ctx: cpu_time(past.step_total_cpu(pair[0], pair[1], ctx)), ANY),
        "user": Leaf(lambda pair, _: cpu_time(pair[1].usage.user_us), ANY),
    },
    "exit_code": Leaf(lambda pair, _: exit_record(pair[1].exit, pair[1].state.final), ANY),
    "nodes": Leaf(_step_nodes, ANY),
    "tasks": {"count": Leaf(_of(step_tasks), COUNT)},
    "pid": "",
    "CPU": Leaf(_frequency, ANY),
    "kill_request_user": "",
    "state": Leaf(lambda pair, ctx: [past.step_state(pair[0], pair[1], ctx)], ANY),
    "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": number(0)}},
    "step": {
        "id": Leaf(_of(step_id), TEXT),
        "name": Leaf(lambda pair, _: pair[1].name, TEXT),
        "stderr": "",
        "stdin": "",
        "stdout": "",
        "stderr_expanded": "",
        "stdin_expanded": "",
        "stdout_expanded": "",
    },
    "task": {"distribution": Leaf(distribution, TEXT)},
    "tres": Leaf(step_tres, ANY),
}


def _step_lists(depth: int) -> Any:
    write = compiled(STEP, depth + 1)

    def text(value: tuple[list[Pair], Context]) -> str:
        pairs, ctx = value
        gap = "\n" + "  " * (depth + 1)
        body = f",{gap}".join([write.json(pair, ctx) for pair in pairs])
        return f"[{gap if body else ''}{body}\n{'  ' * depth}]"

    return text


STEPS = Shape(
    lambda value: [plain(STEP, pair, value[1]) for pair in value[0]],
    _step_lists,
)


def steps(job: Job, ctx: Context) -> tuple[list[Pair], Context]:
    return [(job, step) for step in steps_of(job)], ctx


# fmt: off
JOB = {
    "account": Leaf(of.account, TEXT),
    "comment": {
        "administrator": Leaf(texts.admin_comment, TEXT),
        "job": Leaf(texts.comment, TEXT),
        "system": Leaf(texts.system_comment, TEXT),
    },
    "allocation_nodes": Leaf(past.nodes_held, COUNT),
    "array": {
        "job_id": Leaf(array_job, COUNT),
        "limits": {"max": {"running": {"tasks": Leaf(array_limit, COUNT)}}},
        "task_id": Leaf(array_task, NUMBER),
        "task": Leaf(array_text, TEXT),
    },
    "association": {
        "account": "",
        "cluster": Leaf(of.cluster, TEXT),
        "partition": "",
        "user": "",
        "id": Leaf(association_id, COUNT),
    },
    "block": "",
    "cluster": Leaf(of.cluster, TEXT),
    "constraints": Leaf(res.features, TEXT),
    "container": Leaf(option("container"), TEXT),
    "derived_exit_code": Leaf(derived_of, ANY),
    "time": {
        "elapsed": Leaf(past.elapsed, COUNT),
        "eligible": Leaf(eligible, COUNT),
        "end": Leaf(end, COUNT),
        "planned": Leaf(past.planned, ZERO),
        "start": Leaf(start, COUNT),
        "submission": Leaf(of.submitted, COUNT),
        "suspended": 0,
        "system": Leaf(lambda job, ctx: cpu_time(past.system_cpu(job, ctx)), ANY),
        "limit": Leaf(minutes, NUMBER),
        "total": Leaf(lambda job, ctx: cpu_time(past.total_cpu(job, ctx)), ANY),
        "user": Leaf(lambda job, ctx: cpu_time(past.user_cpu(job, ctx)), ANY),
    },
    "exit_code": Leaf(exit_of, ANY),
    "extra": Leaf(option("extra"), TEXT),
    "failed_node": Leaf(past.failed_node, TEXT),
    "flags": Leaf(flags, ANY),
    "group": Leaf(of.group, TEXT),
    "het": {"job_id": 0, "job_offset": unset()},
    "job_id": Leaf(of.job_id, COUNT),
    "name": Leaf(of.name, TEXT),
    "licenses": Leaf(texts.licenses, TEXT),
    "mcs": {"label": Leaf(option("mcs-label"), TEXT)},
    "nodes": Leaf(nodes_held, TEXT),
    "partition": Leaf(of.partition, TEXT),
    "hold": Leaf(held, FLAG),
    "priority": Leaf(of.priority, ZERO),
    "qos": Leaf(of.qos, TEXT),
    "qosreq": Leaf(option("qos"), TEXT),
    "required": {
        "CPUs": Leaf(past.wanted_cpus, COUNT),
        "memory_per_cpu": Leaf(memory_per_cpu, NUMBER),
        "memory_per_node": Leaf(memory_per_node, NUMBER),
    },
    "kill_request_user": Leaf(killer, TEXT),
    "restart_cnt": Leaf(of.restarts, COUNT),
    "reservation": Leaf(reservation, ANY),
    "script": "",
    "segment_size": Leaf(digits("segment"), COUNT),
    "stdin_expanded": Leaf(texts.stdin_path, TEXT),
    "stdout_expanded": Leaf(texts.stdout_path, TEXT),
    "stderr_expanded": Leaf(texts.stderr_path, TEXT),
    "stdout": Leaf(texts.stdout_pattern, TEXT),
    "stderr": Leaf(texts.stderr_pattern, TEXT),
    "stdin": Leaf(texts.stdin_pattern, TEXT),
    "state": {"current": Leaf(states, ANY), "reason": Leaf(past.reason, TEXT)},
    "steps": Leaf(steps, STEPS),
    "submit_line": Leaf(texts.submit_line, TEXT),
    "tres": {"allocated": Leaf(allocated, ANY), "requested": Leaf(requested, ANY)},
    "used_gres": "",
    "user": Leaf(of.user, TEXT),
    "wckey": {"wckey": Leaf(texts.wckey, TEXT), "flags": []},
    "working_directory": Leaf(texts.work_dir, TEXT),
}
# fmt: on
SINCE = {"qosreq": 42, "restart_cnt": 42, "segment_size": 43}

PAST_KIND = Kind("jobs", JOB, SINCE, {}, (of.priority, past.planned, past.elapsed, killer))
