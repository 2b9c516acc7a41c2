"""Who pays for what jobs hold, and what that has cost since the ledger last heard of it."""

from collections.abc import Iterable, Mapping

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Holder, Payer, settle
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node


def payer_of(job: Job, attempt: int) -> Payer:
    """Who pays for what an attempt of the job uses."""
    return Payer(
        AccountName(job.account),
        UserName(job.owner.user),
        job.id,
        attempt,
        qos=job.qos,
        partition=job.partition,
        wckey=job.spec.wckey or "",
        reservation=job.spec.reservation or "",
    )


def accrued(jobs: Iterable[Job], nodes: Mapping[NodeName, Node], now: int) -> dict[JobId, int]:
    """Micro-dollars of each job since its machines were last posted: what would be posted now.

    `jobs` are all that hold something.
    """
    held: dict[NodeName, list[Holder]] = {}
    for job in jobs:
        for share in job.shares:
            held.setdefault(share.node, []).append(Holder(payer_of(job, job.attempt), share.tres))
    entries = (
        entry
        for node in nodes.values()
        for meter in ((node.meter, *node.beside) if node.meter is not None else ())
        for entry in settle(meter, held.get(node.name, ()), now)[1]
    )
    found: dict[JobId, int] = {}
    for entry in entries:
        if entry.job is not None:
            found[entry.job] = found.get(entry.job, 0) + entry.cost
    return found
