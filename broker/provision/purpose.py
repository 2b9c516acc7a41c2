"""For whom a machine is bought, told from what is known; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from accounting.ledger import NOBODY
from broker.model.build import USUAL
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.purpose import Purpose
from broker.model.spec import UNLIMITED
from broker.world import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long machines live at most, in seconds."""

    spare: int
    """Beyond the time limit of the job: boot, KillWait, and time to fetch results."""
    unlimited: int
    """For a job without a limit."""


def purpose(nodes: Sequence[tuple[NodeName, int]], seen: Snapshot, lives: Lifetimes) -> Purpose:
    """Of a purchase for these nodes (name, launch number); nobody's where they are not known."""
    node = seen.nodes.get(nodes[0][0]) if nodes else None
    if node is not None and node.identity != nodes[0]:
        node = None
    payer = node.cause if node is not None else NOBODY
    job = seen.jobs.get(payer.job) if payer.job is not None else None
    limit = lives.unlimited
    if job is not None and job.time_limit != UNLIMITED:
        limit = int(job.time_limit)
    return Purpose(
        job=payer.label if payer.job is not None else "",
        user=payer.user,
        account=payer.account,
        seconds=limit + lives.spare,
        build=(node.build if node is not None else None) or USUAL,
        beside=_beside(node, job, seen) if node is not None and job is not None else "",
    )


def _beside(node: Node, job: Job, seen: Snapshot) -> str:
    """One of the job's other machines, where the node is bought in place of one of them."""
    if not node.is_second:
        return ""
    others = (seen.nodes.get(share.node) for share in job.shares if share.node != node.name)
    ids = (one.machine.id for one in others if one and one.machine and not one.is_second)
    return next(ids, "")
