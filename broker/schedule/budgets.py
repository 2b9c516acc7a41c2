"""What budgets still pay for in one pass: a job that would break one waits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accounting.assoc import Book
from accounting.budget import Action, Budget, ends
from accounting.ids import AccountName, JobId
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.rates import Rates
from broker.model.site import Site
from broker.model.spec import UNLIMITED
from broker.schedule.accrued import accrued

REASON = "AssocBudgetLimit"
LIMIT_GRACE = 60
"""Seconds beyond time limit and KillWait after which the engine ends what its node did not."""
READY_SECONDS = 60
"""Foreseen for what has to be done on a machine before a job can run there."""
HOUR = 3600
MONTH = 30 * 86400
"""How long a job without an end counts where its budget's window never ends."""


@dataclass(frozen=True, slots=True)
class Outlay:
    """What a start costs at worst: micro-dollars an hour, from when on, and what is paid once."""

    rate: int = 0
    boot: int = READY_SECONDS
    """Seconds that are paid for before the job can run."""
    once: int = 0
    """For its data on its way."""

    def for_seconds(self, seconds: int) -> int:
        """Micro-dollars for a job that runs for so long."""
        return -(-self.rate * (seconds + self.boot) // HOUR) + self.once


NO_OUTLAY = Outlay()
FirstOutlay = Callable[[Job, str], Outlay]
"""What a waiting job would cost in a partition at least, before it is known what it gets."""


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


def worst(job: Job, budget: Budget, outlay: Outlay, *, now: int, over: int) -> int:
    """Micro-dollars until the job's end at the latest."""
    return outlay.for_seconds(seconds_left(job, budget, now=now, over=over))


def data_cost(job: Job, regions: Iterable[str], rates: Rates) -> int:
    """Micro-dollars for bringing its data to the one of the regions that costs most."""
    gib, source = job.spec.resources.data_gib or 0, job.spec.resources.data_region or ""
    return max((rates.moving(gib, source, region) for region in regions), default=0)


def regions_of(node: Node) -> set[str]:
    """Where its machine is, or may come to be."""
    if node.machine is not None:
        return {node.machine.region}
    return {rung.offer.region for rung in node.rungs}


def seconds_left(job: Job, budget: Budget, *, now: int, over: int) -> int:
    """How long it may run at most, `over` beyond its limit; without a limit the window out.

    A suspended one holds its machines beyond its limit, nobody knows for how long.
    """
    if job.time_limit == UNLIMITED or job.suspended_at is not None:
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
                spent += self.unposted.get(job.id, 0) + self._data(job)
                over = over_of(self.site, job.partition)
                left = seconds_left(job, budget, now=self.now, over=over)
                for share in job.shares:
                    seconds = left + self._unready(job, share.node)
                    until[share.node] = max(seconds, until.get(share.node, 0))
        ahead = sum(
            dearest(self.nodes[name]) * seconds
            for name, seconds in until.items()
            if name in self.nodes
        )
        return spent - (-ahead // HOUR)

    def _data(self, job: Job) -> int:
        """What its data will cost, as long as it has not begun."""
        node = self.nodes.get(job.shares[0].node) if job.configuring else None
        return data_cost(job, regions_of(node), self.site.rates) if node is not None else 0

    def _unready(self, job: Job, name: NodeName) -> int:
        """For how long the job may not run yet: its machine comes up, its files are brought."""
        if not job.configuring:
            return 0
        node, there = self.nodes.get(name), job.started or self.now
        if node is not None:
            there = max(there, node.booted or node.boot_deadline or 0)
        return max(0, there + READY_SECONDS - self.now)


@dataclass(slots=True)
class Purse:
    """Money in one pass; what the pass starts is taken out."""

    left: dict[str, int]
    """Micro-dollars by the budget's key."""
    site: Site
    first: FirstOutlay
    now: int
    short: dict[JobId, str] = field(default_factory=dict)
    """Keys of the budgets that did not pay for jobs."""

    def binds(self, job: Job, partition: str) -> bool:
        """Whether the job would wait for money."""
        return any(one.action is not Action.WARN for one in self._of(job, partition))

    def reason(self, job: Job, partition: str, outlay: Outlay | None = None) -> str | None:
        """Why it has to wait, None if every budget pays for it."""
        for budget in self._of(job, partition):
            cost = self._cost(job, partition, budget, outlay=outlay)
            short = cost > self.left[budget.key] or (cost and self.left[budget.key] <= 0)
            if short and budget.action is not Action.WARN:
                self.short[job.id] = budget.key
                return REASON
        return None

    def started(self, job: Job, partition: str, *, outlay: Outlay | None, sign: int) -> None:
        for budget in self._of(job, partition):
            self.left[budget.key] -= sign * self._cost(job, partition, budget, outlay=outlay)

    def _cost(self, job: Job, partition: str, budget: Budget, *, outlay: Outlay | None) -> int:
        """Micro-dollars at worst; `outlay` is given once it is known what the job gets."""
        known = self.first(job, partition) if outlay is None else outlay
        return worst(job, budget, known, now=self.now, over=over_of(self.site, partition))

    def _of(self, job: Job, partition: str) -> list[Budget]:
        book = self.site.book
        return [
            budget
            for budget in book.budgets.values()
            if budget.key in self.left and covers(budget, job, book, partition=partition)
        ]
