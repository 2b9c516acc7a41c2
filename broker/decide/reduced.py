"""A job that goes on without a node that it lost (`--no-kill`)."""

from broker.decide.ending import NODE_FAIL_EXIT, places
from broker.decide.step_ends import ended
from broker.model import events as ev
from broker.model.job import Job
from broker.model.lifecycle import Life, life
from broker.model.node import Node

LOST = {"cause": "node_fail", "code": NODE_FAIL_EXIT.code, "signal": 0}


def goes_on(job: Job, node: Node) -> bool:
    """Whether it asked to, and can: its script, or who holds it, is on the first (Slurm 25.11)."""
    asked = job.spec.option("no-kill")
    wants = asked is not None and asked.lower() != "off"
    return wants and life(job) is Life.RUNNING and node.name != job.shares[0].node


def reduced(job: Job, node: Node, *, now: int, why: str) -> list[ev.JobEvent]:
    """Its steps there have failed with the node, on all of their nodes; the rest is still its."""
    facts: list[ev.JobEvent] = []
    for step in job.steps:
        if not step.state.final and node.name in places(job, step):
            facts += ended(job, step, LOST, node=node.name, now=now)[0]
    shares = tuple(share for share in job.shares if share.node != node.name)
    return [*facts, ev.Resized(job=job.id, at=now, why=why, shares=shares)]
