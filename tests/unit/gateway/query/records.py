"""Records of the site that the shared answers were recorded on, made by hand."""

from dataclasses import replace
from typing import Any

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job, JobState, Owner, Share, Step, StepState
from broker.model.node import Node, NodeState
from broker.model.site import DeclaredNode, Elastic, Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from gateway.query.context import Context

NOON = 1_796_040_000
"""2026-11-30T12:00:00 UTC."""
ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice")
BOB = Owner(2002, 2002, "bob", "bob", home="/home/bob")
NAMES = [NodeName(f"ec2-{number}") for number in (1, 2, 3, 4)]
WHOLE = Tres(cpu=4, mem_mib=16000, node=1, gres=(("gpu", 2), ("gpu:a10g", 2)))
FEATURES = {"ec2-1": "spot", "ec2-2": "spot", "ec2-3": "ondemand", "ec2-4": "ondemand"}


def declared(name: NodeName, weight: int) -> DeclaredNode:
    return DeclaredNode(
        name,
        WHOLE,
        features=(FEATURES[name], "g5"),
        weight=weight,
        cores_per_socket=4,
        gres_text="gpu:a10g:2",
    )


PARTITIONS = (
    Partition(
        "ec2",
        default=True,
        nodes=tuple(NAMES),
        max_time=7 * 86400,
        default_time=3600,
        def_mem_per_cpu_mib=1024,
        billing_weights="CPU=1.0,Mem=0.25G,GRES/gpu=4.0",
        priority_job_factor=10,
    ),
    Partition("debug", nodes=tuple(NAMES), max_time=1800, max_nodes=2, priority_job_factor=20),
    Partition("down", nodes=(NAMES[0],), state="DOWN"),
    Partition("rootonly", nodes=(NAMES[0],), root_only=True),
    Partition("chemonly", nodes=(NAMES[1],), allow_accounts=("chem",)),
)
SITE = Site(
    cluster="oracle",
    first_job_id=700001,
    max_job_count=50000,
    kill_wait=5,
    partitions=PARTITIONS,
    nodes=tuple(declared(name, place) for place, name in enumerate(NAMES, 1)),
)
CLOUD = replace(
    SITE,
    partitions=(Partition("cloud", default=True, elastic=Elastic("ec2-", 4)),),
    nodes=(),
)


def context(**changes: Any) -> Context:
    return Context(**{"now": NOON, "site": SITE, **changes})


def spec(**changes: Any) -> TaskSpec:
    resources = Resources(**changes.pop("resources", {}))
    known: dict[str, Any] = {
        "name": "wrap",
        "batch": StepSpec(name="batch"),
        "cwd": "/home/alice/work",
        "submit_line": "sbatch --wrap true",
        "resources": resources,
    }
    return TaskSpec(**{**known, **changes})


def pending(number: int = 700001, *, owner: Owner = ALICE, **changes: Any) -> Job:
    """A job as it stands in the queue; keywords of the record, `spec` by keywords of its own."""
    task = changes.pop("spec", {})
    known: dict[str, Any] = {
        "account": "physics",
        "qos": "normal",
        "partitions": ("ec2",),
        "submitted": NOON - 60,
        "eligible": NOON - 60,
        "time_limit": 3600,
        "want": Tres(cpu=1, mem_mib=1024, node=1),
        "priority": 10662,
        "reason": "None",
        "spec": task if isinstance(task, TaskSpec) else spec(**task),
    }
    return Job(id=JobId(number), owner=owner, **{**known, **changes})


def running(number: int = 700001, *, nodes: tuple[str, ...] = ("ec2-1",), **changes: Any) -> Job:
    """A job that began 30 seconds ago, on nodes that share its resources evenly."""
    want: Tres = changes.get("want", Tres(cpu=1, mem_mib=1024, node=1))
    each = Tres(want.cpu // len(nodes), want.mem_mib // len(nodes), 1, want.gres)
    known: dict[str, Any] = {
        "state": JobState.RUNNING,
        "started": NOON - 30,
        "attempt": 1,
        "alloc": replace(want, node=len(nodes)),
        "last_node_names": nodes,
        "shares": tuple(Share(NodeName(node), 0, each, cpu_ids=(0,)) for node in nodes),
        "steps": (Step("batch", "batch", StepState.RUNNING, started=NOON - 30),),  # type: ignore[arg-type]
    }
    return pending(number, **{**known, **changes})


def ended(number: int = 700001, state: JobState = JobState.COMPLETED, **changes: Any) -> Job:
    """A job that ran for 20 seconds and ended 10 seconds ago."""
    known: dict[str, Any] = {"state": state, "ended": NOON - 10, "shares": ()}
    steps = (
        Step("batch", "batch", StepState.COMPLETED, started=NOON - 30, ended=NOON - 10),  # type: ignore[arg-type]
    )
    return running(number, **{"steps": steps, **known, **changes})


def node(name: str, **changes: Any) -> Node:
    """A declared node of the site, up and idle."""
    place = next(one for one in SITE.nodes if one.name == name)
    known: dict[str, Any] = {
        "launch": 0,
        "state": NodeState.UP,
        "whole": place.whole,
        "partitions": tuple(p.name for p in PARTITIONS if name in p.nodes),
        "declared": True,
        "features": place.features,
        "weight": place.weight,
        "cores_per_socket": 4,
        "real_memory_mib": 16000,
        "gres_text": place.gres_text,
    }
    return Node(NodeName(name), **{**known, **changes})


NODES = {name: node(name) for name in NAMES}
