"""What budgets still pay for in one pass: a job that would break one waits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from accounting.assoc import Book
from accounting.budget import Action, Budget, ends
from accounting.ids import AccountName, JobId
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node, NodeState
from broker.model.site import Site
from broker.model.spec import UNLIMITED
from broker.schedule.accrued import accrued

REASON = "AssocBudgetLimit"
LIMIT_GRACE = 60
"""Seconds beyond time limit and KillWait after which the engine ends what its node did not."""
LEAST_BILLED = 60
"""Seconds of a machine that are paid for in any case."""
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


def dearest(node: Node) -> int:
    """Micro-dollars an hour that the machine may come to, with what is billed beside it.

    A spot machine may come to what it costs on demand; one under way to its dearest offer.
    """
    beside = sum(meter.prices[-1].micro_usd_per_hour for meter in node.beside)
    return max(node.dearest, _price(node) + beside)


def _price(node: Node) -> int:
    """Micro-dollars an hour, as it was told last."""
    if node.meter is not None:
        return node.meter.prices[-1].micro_usd_per_hour
    return node.machine.micro_usd_per_hour if node.machine else node.micro_usd_per_hour


def worst(job: Job, budget: Budget, rate: int, *, now: int, over: int) -> int:
    """Micro-dollars until the job's end at the latest, at that rate."""
    return -(-rate * seconds_left(job, budget, now=now, over=over) // HOUR)


def seconds_left(job: Job, budget: Budget, *, now: int, over: int) -> int:
    """How long it may run at most, `over` beyond its limit; without a limit the window out."""
    if job.time_limit == UNLIMITED:
        until = ends(budget, now)
        return MONTH if until is None else until - now
    return max(0, int(job.time_limit) - job.ran(now)) + over


def over_of(site: Site, partition: str) -> int:
    """Seconds beyond its limit after which a job of the partition is over at the latest."""
    return site.over_time_of(partition) + site.kill_wait + LIMIT_GRACE


@dataclass(frozen=True, slots=True)
class Ahead:
    """What jobs that run may still cost, and have cost since the ledger last heard of it."""

    site: Site
    jobs: Sequence[Job]
    """All that hold something."""
    nodes: Mapping[NodeName, Node]
    unposted: Mapping[JobId, int]
    """Micro-dollars, as `accrued` has them."""
    now: int

    @classmethod
    def of(
        cls, site: Site, jobs: Iterable[Job], nodes: Mapping[NodeName, Node], *, now: int
    ) -> "Ahead":
        holding = [job for job in jobs if job.shares]
        return cls(site, holding, nodes, accrued(holding, nodes, now), now)

    def promised(self, budget: Budget) -> int:
        """Micro-dollars at worst: a job that is left alone on a machine pays for all of it."""
        spent, until = 0, dict[NodeName, int]()
        for job in self.jobs:
            if covers(budget, job, self.site.book, partition=job.partition):
                spent += self.unposted.get(job.id, 0)
                over = over_of(self.site, job.partition)
                left = seconds_left(job, budget, now=self.now, over=over)
                for share in job.shares:
                    made = self._made(share.node, left)
                    until[share.node] = max(made, until.get(share.node, 0))
        ahead = (
            -(-dearest(self.nodes[name]) * seconds // HOUR)
            for name, seconds in until.items()
            if name in self.nodes
        )
        return spent + sum(ahead)

    def _made(self, name: NodeName, left: int) -> int:
        """With the time in which the machine may still come up, and no less than is billed."""
        node = self.nodes.get(name)
        if node is None or node.boot_deadline is None or node.state is NodeState.UP:
            return left
        return max(LEAST_BILLED, left + max(0, node.boot_deadline - self.now))


@dataclass(slots=True)
class Purse:
    """Money in one pass; what the pass starts is taken out."""

    left: dict[str, int]
    """Micro-dollars by the budget's key."""
    site: Site
    rate: Rate
    now: int

    def binds(self, job: Job, partition: str) -> bool:
        """Whether the job would wait for money."""
        return any(one.action is not Action.WARN for one in self._of(job, partition))

    def reason(self, job: Job, partition: str, rate: int | None = None) -> str | None:
        """Why it has to wait, None if every budget pays for it."""
        for budget in self._of(job, partition):
            cost = self._cost(job, partition, budget, rate=rate)
            short = cost > self.left[budget.key] or (cost and self.left[budget.key] <= 0)
            if short and budget.action is not Action.WARN:
                return REASON
        return None

    def started(self, job: Job, partition: str, *, rate: int | None, sign: int) -> None:
        for budget in self._of(job, partition):
            self.left[budget.key] -= sign * self._cost(job, partition, budget, rate=rate)

    def _cost(self, job: Job, partition: str, budget: Budget, *, rate: int | None) -> int:
        """At that many micro-dollars an hour, where it is known what the job gets."""
        each = self.rate(job, partition) if rate is None else rate
        return worst(job, budget, each, now=self.now, over=over_of(self.site, partition))

    def _of(self, job: Job, partition: str) -> list[Budget]:
        book = self.site.book
        return [
            budget
            for budget in book.budgets.values()
            if budget.key in self.left and covers(budget, job, book, partition=partition)
        ]
