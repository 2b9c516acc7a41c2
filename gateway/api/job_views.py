"""What our own routes tell of jobs, clusters and runs, as plain values for JSON.

Instants are whole seconds UTC, money is micro-dollars; what is not known is null.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from accounting.tres import by_id
from broker.model.ids import BATCH, StepId
from broker.model.job import ExitCode, Job, JobState, Step, StepState
from broker.model.naming import file_job
from broker.model.node import Node, NodeState
from broker.model.offer import Market, Ranked
from broker.model.spec import UNLIMITED, OwnBucket, StepSpec
from broker.model.stopping import STOPPED
from broker.world import Snapshot
from gateway.query.job import id_text
from gateway.query.prices import old_price
from sbatch_shim.grammar.arrays import BITSTR_LEN
from sbatch_shim.grammar.filenames import absolute, default_pattern, fill
from sbatch_shim.grammar.hostlist import fold

Json = dict[str, Any]

PRICE = ("micro_usd_per_hour", "old_price")
CLUSTER_STATES = {"PENDING": "INIT", "CONFIGURING": "INIT", "RUNNING": "UP"}
"""SkyPilot's words for a job that is a cluster; any other is on its way out."""
HALTING = "STOPPING"
"""Until the last of its machines is stopped."""
RUN_STATES = {
    StepState.PENDING: "PENDING",
    StepState.RUNNING: "RUNNING",
    StepState.COMPLETED: "SUCCEEDED",
    StepState.FAILED: "FAILED",
    StepState.CANCELLED: "CANCELLED",
    StepState.TIMEOUT: "FAILED",
    StepState.OUT_OF_MEMORY: "FAILED",
    StepState.NODE_FAIL: "FAILED_DRIVER",
}
"""SkyPilot's words for a run."""


def job_view(job: Job, *, seen: Snapshot, cost: int | None) -> Json:
    """A job with its runs."""
    nodes = nodes_of(job, seen)
    texts = texts_of(job, BATCH) if _has_text(job) else []
    return {
        "id": job.id,
        "slurm_id": id_text(job, BITSTR_LEN),
        "name": job.spec.name,
        "user": job.owner.user,
        "uid": job.owner.uid,
        "account": job.account,
        "partition": job.partition,
        "cluster": job.spec.cluster,
        "state": job.shown_state,
        "reason": job.reason,
        "detail": job.detail,
        "over": job.over,
        "submitted": job.submitted,
        "started": job.started,
        "ended": job.ended,
        "time_limit": None if job.time_limit == UNLIMITED else job.time_limit,
        "attempt": job.attempt,
        "restarts": job.restarts,
        "node_list": fold(job.last_node_names),
        "tres": by_id(job.alloc) or None,
        "micro_usd_per_hour": sum(map(rate, nodes)) if nodes else None,
        "old_price": old_price(nodes, seen.site, seen.at),
        "stopped": bool(job.kept),
        "cost_micro_usd": cost,
        "exit": exit_view(job.exit),
        "log": next(iter(texts), None),
        "texts": texts,
        "attempts": attempts_of(job),
        "runs": [run_view(job, step) for step in job.steps if step.run],
    }


def _has_text(job: Job) -> bool:
    """Whether what holds it open, or runs in it, writes a text of the job's own."""
    return bool(job.spec.batch or job.spec.managed or job.spec.keeper)


def cluster_view(job: Job, *, seen: Snapshot, cost: int | None) -> Json:
    """A cluster as `spz status` lists it."""
    told = job_view(job, seen=seen, cost=cost)
    nodes = nodes_of(job, seen)
    kept = ("user", "uid", "submitted", "started", "detail", "reason", *PRICE)
    return {
        "name": job.spec.cluster,
        "job": job.id,
        "status": cluster_status(job, nodes),
        "infra": infra(nodes[0]) if nodes else None,
        "resources": resources(nodes[0], len(nodes)) if nodes else None,
        "nodes": [node.name for node in nodes],
        "addresses": [node.machine.address for node in nodes if node.machine and not job.kept],
        "ports": list(build.ports) if (build := job.spec.resources.build) else [],
        "idle_seconds": job.spec.idle_seconds,
        "idle_stops": job.spec.idle_stops,
        "idle_past_logins": job.spec.idle_past_logins,
        "passing_storages": [one.name for one in job.spec.buckets if not one.persistent],
        "cost_micro_usd": cost,
        "runs": told["runs"],
        **{key: told[key] for key in kept},
    }


def nodes_of(job: Job, seen: Snapshot) -> list[Node]:
    """Those it holds, or that are stopped and wait for it, in the order of its ranks."""
    shares = job.shares or job.kept
    return [seen.nodes[share.node] for share in shares if share.node in seen.nodes]


def cluster_status(job: Job, nodes: Iterable[Node]) -> str:
    """SkyPilot's word, and `STOPPING` and `TERMINATING` for what is on its way."""
    if job.kept:
        done = all(node.state is NodeState.STOPPED for node in nodes)
        return "STOPPED" if done else HALTING
    if job.kill_cause == STOPPED:
        return HALTING
    return CLUSTER_STATES.get(job.shown_state, "TERMINATING")


def rate(node: Node) -> int:
    """Micro-dollars an hour: of one that is stopped, what is kept of it."""
    if node.state is not NodeState.STOPPED:
        return node.micro_usd_per_hour
    return sum(one.prices[-1].micro_usd_per_hour for one in node.beside if not one.closed)


def run_view(job: Job, step: Step) -> Json:
    """A run in a cluster; `id` counts from 1 as SkyPilot's job ids do, `step` is Slurm's."""
    texts = texts_of(job, step.id)
    return {
        "id": int(step.id) + 1,
        "step": f"{job.id}.{step.id}",
        "name": step.name,
        "user": job.owner.user,
        "resources": _asked(step),
        "commit": step.spec.commit if step.spec else None,
        "status": _run_status(job, step),
        "over": step.state.final,
        "submitted": step.asked,
        "started": step.started,
        "ended": step.ended,
        "exit": exit_view(step.exit),
        "log": next(iter(texts), None),
        "texts": texts,
    }


def _asked(step: Step) -> str:
    """`2x[A100:8]`, `1x[CPU:1]`, as SkyPilot writes what a run asked for."""
    spec = step.spec or StepSpec(name="")
    gpus = [f"{one.type or 'GPU'}:{one.count}" for one in spec.gres or () if one.name == "gpu"]
    return f"{spec.nodes}x[{', '.join(gpus) or 'CPU:1'}]"


def _run_status(job: Job, step: Step) -> str:
    if step.state is StepState.FAILED and step.phase == "setup":
        return "FAILED_SETUP"
    if step.state is StepState.PENDING and job.configuring:
        return "INIT"
    return RUN_STATES[step.state]


def exit_view(exit_code: ExitCode) -> Json:
    return {"code": exit_code.code, "signal": exit_code.signal}


def attempts_of(job: Job) -> list[list[str]]:
    """The files of a managed job's attempts; of other jobs they are the same ones."""
    if job.spec.managed is None:
        return []
    begun = job.restarts + (1 if job.last_node_names else 0)
    return [texts_of(job, BATCH, restarts=number) for number in range(begun)]


def texts_of(job: Job, step: StepId, *, restarts: int | None = None) -> list[str]:
    """What the nodes of a run wrote, by rank; one file where one node, or all, write it."""
    found = job.step(step)
    asked = job.spec.resources.min_nodes if job.spec.managed else None
    nodes = found.spec.nodes if found is not None and found.spec is not None else asked or 1
    paths = (_text_of(job, step, restarts=restarts, rank=rank) for rank in range(nodes))
    return list(dict.fromkeys(path for path in paths if path is not None))


def _text_of(job: Job, step: StepId, *, restarts: int | None, rank: int) -> str | None:
    """The file that a node of the step writes to, or wrote to after so many restarts.

    None as long as its node, and so its name, is not known.
    """
    names = job.last_node_names or tuple(share.node for share in job.kept)
    if not names and restarts is None:
        return None
    pattern = job.spec.output.stdout or default_pattern(job.array is not None)
    facts = file_job(job, "".join(names[:1]))._replace(step=step, place=rank)
    if restarts is not None:
        facts = facts._replace(restarts=restarts)
    return absolute(fill(pattern, facts), job.spec.cwd)


def infra(node: Node) -> str | None:
    """`AWS (us-east-1)`, as SkyPilot writes it, with the zone's id."""
    if node.machine is None:
        return None
    return f"AWS ({node.machine.region}/{node.machine.zone})"


def resources(node: Node, count: int = 1) -> str:
    """`1x(g5.xlarge, A10G:1)`."""
    if node.machine is None:
        return f"{count}x({node.name})"
    gpus = [f"{name[4:]}:{count}" for name, count in node.whole.gres if name.startswith("gpu:")]
    spot = ["[spot]"] if node.machine.market is Market.SPOT else []
    return f"{count}x({', '.join([node.machine.instance_type, *gpus, *spot])})"


def offer_view(ranked: Ranked) -> Json:
    """A row of the table of candidates."""
    offer = ranked.offer
    gpus = [f"{name[4:]}:{count}" for name, count in offer.gres if name.startswith("gpu:")]
    return {
        "instance_type": offer.instance_type,
        "region": offer.region,
        "zones": list(offer.zones),
        "market": offer.market.value,
        "cpus": offer.cpus,
        "mem_mib": offer.mem_mib,
        "gpus": ", ".join(gpus) or None,
        "micro_usd_per_hour": offer.micro_usd_per_hour,
        "most_micro_usd_per_hour": ranked.dearest,
        "as_of": offer.as_of or None,
        "old_price": ranked.old_price or None,
        "expected_micro_usd": ranked.expected_micro_usd,
        "estimate": offer.estimate,
        "reason": ranked.reason,
        "notes": list(ranked.notes),
    }


def storage_view(job: Job, bucket: OwnBucket) -> Json:
    """A bucket that a task has by name."""
    return {
        "name": bucket.name,
        "user": job.owner.user,
        "uid": job.owner.uid,
        "store": "S3",
        "persistent": bucket.persistent,
        "updated": job.submitted,
        "command": job.spec.submit_line,
        "cluster": job.spec.cluster,
        "open": not job.over,
    }


def node_view(node: Node, seen: Snapshot) -> Json:
    """A machine that costs money, or a declared node."""
    machine = node.machine
    return {
        "name": node.name,
        "state": node.state.label,
        "declared": node.declared,
        "instance_type": machine.instance_type if machine else None,
        "region": machine.region if machine else None,
        "zone": machine.zone if machine else None,
        "micro_usd_per_hour": node.micro_usd_per_hour,
        "old_price": old_price([node], seen.site, seen.at),
    }


def clusters(jobs: Mapping[Any, Job]) -> list[Job]:
    """Those that are open, by id."""
    return sorted(
        (job for job in jobs.values() if job.spec.cluster and not is_closed(job)),
        key=lambda job: job.id,
    )


def is_closed(job: Job) -> bool:
    """Whether a cluster takes no more runs."""
    return job.state.final or job.state is JobState.SUSPENDED
