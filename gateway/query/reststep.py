"""A step that runs as `scontrol show step --json` has it (25.11)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accounting.tres import NO_TRES, by_name
from broker.model.ids import BATCH
from broker.model.job import Job, Step
from gateway.query import job as of
from gateway.query import resources as res
from gateway.query.context import Context
from gateway.query.documents import Kind
from gateway.query.past import step_layout, step_submit_line
from gateway.query.restvalues import array_job, array_task, option
from gateway.query.shape import ANY, COUNT, NUMBER, TEXT, ZERO, Leaf, Shape, unset
from gateway.query.steps import (
    JobStep,
    step_cpus,
    step_elapsed,
    step_gres_of_tasks,
    step_id,
    step_limit,
    step_nodes,
    step_tasks,
    step_tres,
)
from gateway.query.texts import step_file
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import UNLIMITED

NO_TASK = 0xFFFFFFFE
"""The number of the element of what is no array."""
MINUTE = 60


def _step(get: Callable[[Job, Step, Context], Any], shape: Shape) -> Leaf[JobStep]:
    return Leaf(lambda pair, ctx: get(pair[0], pair[1], ctx), shape)


def _job(get: Callable[[Job, Context], Any], shape: Shape) -> Leaf[JobStep]:
    return Leaf(lambda pair, ctx: get(pair[0], ctx), shape)


def _of_numbered(get: Callable[[Job, Step, Context], Any], none: Any) -> Any:
    """The batch step has no resources of its own there."""
    return lambda job, step, ctx: none if step.id == BATCH else get(job, step, ctx)


def _task_id(job: Job, ctx: Context) -> int:
    task = array_task(job, ctx)
    return NO_TASK if task is None else task


def _nodes(job: Job, step: Step, ctx: Context) -> str:
    return fold(step_nodes(job, step, ctx) or ())


def _minutes(job: Job, step: Step, ctx: Context) -> int | str:
    seconds = step_limit(job, step, ctx)
    return UNLIMITED if seconds is None else -(-seconds // MINUTE)


def _allocated(job: Job, step: Step, ctx: Context) -> str:
    return by_name(step_tres(job, step, ctx)[0] or NO_TRES)


def _host(job: Job, _step: Step, _ctx: Context) -> str | None:
    return job.spec.submit_host


def _filled(name: str) -> Callable[[Job, Step, Context], Any]:
    """The path of one of its files with every pattern filled in."""
    get = step_file(name)
    return lambda job, step, ctx: get(job, step, replace(ctx, expand_patterns=True))


# fmt: off
STEP = {
    "array": {"job_id": _job(array_job, COUNT), "task_id": _job(_task_id, COUNT)},
    "cluster": _job(of.cluster, TEXT),
    "container": _job(option("container"), TEXT),
    "container_id": _job(option("container-id"), TEXT),
    "cpu": {"frequency": {"min": unset(), "max": unset(), "governor": unset()}},
    "tres": {
        "per": {
            "cpu": "",
            "memory": "",
            "step": "",
            "node": _step(
                _of_numbered(lambda job, _, ctx: res.tres_per_node(job, ctx), ""), TEXT
            ),
            "socket": "",
            "task": _step(step_gres_of_tasks, TEXT),
        },
        "allocation": _step(_of_numbered(_allocated, ""), TEXT),
        "binding": "",
        "frequency": "",
    },
    "name": _step(lambda _job, step, _: step.name, TEXT),
    "network": "",
    "nodes": _step(_nodes, TEXT),
    "number_cpus": _step(_of_numbered(step_cpus, 0), COUNT),
    "number_tasks": _step(step_tasks, COUNT),
    "partition": _job(of.partition, TEXT),
    "reserved_ports": "",
    "time": {
        "running": _step(step_elapsed, ZERO),
        "start": _step(lambda _job, step, _: step.started, ZERO),
        "limit": _step(_minutes, NUMBER),
    },
    "srun": {"host": _step(_of_numbered(_host, ""), TEXT), "pid": 0},
    "state": _step(lambda _job, step, _: [str(step.state)], ANY),
    "id": _step(step_id, TEXT),
    "stderr": _step(step_file("stderr"), TEXT),
    "stdin": _step(step_file("stdin"), TEXT),
    "stdout": _step(step_file("stdout"), TEXT),
    **{f"{name}_expanded": _step(_filled(name), TEXT) for name in ("stdin", "stdout", "stderr")},
    "submit_line": _step(step_submit_line, TEXT),
    "task": {"distribution": _step(step_layout, TEXT)},
    "user": _job(of.user, TEXT),
}
# fmt: on

SINCE = {f"{name}_expanded": 43 for name in ("stdin", "stdout", "stderr")}

STEP_KIND = Kind("steps", STEP, SINCE, {})
