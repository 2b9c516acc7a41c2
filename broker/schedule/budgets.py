"""What budgets still pay for in one pass: a job that would break one waits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from accounting.assoc import Book
from accounting.budget import Action, Budget, ends
from accounting.ids import AccountName, JobId
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.spec import UNLIMITED
from broker.schedule.accrued import accrued

REASON = "AssocBudgetLimit"
HOUR = 3600
MONTH = 30 * 86400
"""How long a job without limit counts where its budget's window never ends."""
Rate = Callable[[Job, str], int]
"""Micro-dollars an hour that a waiting job would cost in a partition, at worst."""


def covers(budget: Budget, job: Job, book: Book, *, partition: str) -> bool:
    """Whether the job is paid from the budget."""
    line = [str(step.name) for step in book.lineage(AccountName(job.account))] or [job.account]
    return budget.covers(accounts=line, user=job.owner.user, qos=job.qos, partition=partition)


def rate_now(job: Job, nodes: Mapping[NodeName, Node]) -> int:
    """Micro-dollars an hour of what a running job holds: its part of each node's price."""
    total = 0
    for share in job.shares:
        node = nodes.get(share.node)
        if node is not None:
            total += int(_price(node) * share.tres.dominant_share(node.whole))
    return total


def _price(node: Node) -> int:
    """Micro-dollars an hour, as it was told last."""
    if node.meter is not None:
        return node.meter.prices[-1].micro_usd_per_hour
    return node.machine.micro_usd_per_hour if node.machine else node.micro_usd_per_hour


def worst(job: Job, budget: Budget, rate: int, *, now: int) -> int:
    """Micro-dollars until the job's limit, at that rate; one without limit lasts the window out."""
    if job.time_limit == UNLIMITED:
        over = ends(budget, now)
        seconds = MONTH if over is None else over - now
    else:
        begun = job.started if job.started is not None and job.shares else now
        seconds = max(0, begun + int(job.time_limit) - now)
    return rate * seconds // HOUR


@dataclass(frozen=True, slots=True)
class Ahead:
    """What jobs that run may still cost, and have cost since the ledger last heard of it."""

    jobs: Sequence[Job]
    """All that hold something."""
    nodes: Mapping[NodeName, Node]
    unposted: Mapping[JobId, int]
    """Micro-dollars, as `accrued` has them."""
    now: int

    @classmethod
    def of(cls, jobs: Iterable[Job], nodes: Mapping[NodeName, Node], now: int) -> "Ahead":
        holding = [job for job in jobs if job.shares]
        return cls(holding, nodes, accrued(holding, nodes, now), now)

    def promised(self, budget: Budget, book: Book) -> int:
        """Micro-dollars of the jobs that the budget pays."""
        return sum(
            worst(job, budget, rate_now(job, self.nodes), now=self.now)
            + self.unposted.get(job.id, 0)
            for job in self.jobs
            if covers(budget, job, book, partition=job.partition)
        )


@dataclass(slots=True)
class Purse:
    """Money in one pass; what the pass starts is taken out."""

    left: dict[str, int]
    """Micro-dollars by the budget's key."""
    book: Book
    rate: Rate
    now: int

    def reason(self, job: Job, partition: str) -> str | None:
        """Why it has to wait, None if every budget pays for it."""
        for budget in self._of(job, partition):
            cost = worst(job, budget, self.rate(job, partition), now=self.now)
            short = cost > self.left[budget.key] or (cost and self.left[budget.key] <= 0)
            if short and budget.action is not Action.WARN:
                return REASON
        return None

    def started(self, job: Job, partition: str, sign: int) -> None:
        for budget in self._of(job, partition):
            cost = worst(job, budget, self.rate(job, partition), now=self.now)
            self.left[budget.key] -= sign * cost

    def _of(self, job: Job, partition: str) -> list[Budget]:
        return [
            budget
            for budget in self.book.budgets.values()
            if budget.key in self.left and covers(budget, job, self.book, partition=partition)
        ]
