"""`scontrol show step`: the lines of a step that runs (25.11.7)."""

from accounting.tres import NO_TRES, by_name
from broker.model.ids import BATCH
from broker.model.job import Job, Step
from gateway.query import resources as res
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.past import step_layout
from gateway.query.steps import step_cpus, step_id, step_limit, step_nodes, step_tasks, step_tres
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_long

INDENT = "\n   "


def show_step(job: Job, step: Step, ctx: Context, *, oneliner: bool = False) -> str:
    """The record; the batch step has no resources of its own there."""
    batch = step.id == BATCH
    tres = NO_TRES if batch else step_tres(job, step, ctx)[0]
    nodes = step_nodes(job, step, ctx) or ()
    started = "Unknown" if step.started is None else show_moment(step.started, ctx)
    per_node = None if batch else res.tres_per_node(job, ctx)
    lines = [
        f"StepId={step_id(job, step, ctx)} UserId={job.owner.uid} StartTime={started} "
        f"TimeLimit={_limit(job, step, ctx)}",
        f"State={step.state} Partition={job.partition} NodeList={fold(nodes)}",
        f"Nodes={len(nodes)} CPUs={0 if batch else step_cpus(job, step, ctx)} "
        f"Tasks={step_tasks(job, step, ctx)} "
        f"Name={step.name} Network=(null)",
        f"TRES={by_name(tres) or '(null)'}",
        "ResvPorts=(null)",
        f"CPUFreqReq=Default{'' if batch else f' Dist={step_layout(job, step, ctx)}'}",
        "SrunHost:Pid=(null):0" if batch else f"SrunHost:Pid={job.spec.submit_host}:0",
        *([f"TresPerNode={per_node}"] if per_node else []),
    ]
    return " ".join(lines) + "\n" if oneliner else INDENT.join(lines) + "\n\n"


def _limit(job: Job, step: Step, ctx: Context) -> str:
    seconds = step_limit(job, step, ctx)
    return "UNLIMITED" if seconds is None else show_long(seconds)
