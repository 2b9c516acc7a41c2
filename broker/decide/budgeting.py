"""Budgets while the service runs: what was spent of each, and whom a used up one ends."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from accounting.budget import Action, Budget, Running, begins
from accounting.ids import AccountName, JobId
from accounting.ledger import Entry
from broker.decide.ending import cancelled
from broker.model import events as ev
from broker.model.facts import SYSTEM
from broker.model.job import Job, JobState, Notice
from broker.ports import Store
from broker.schedule.budgets import Ahead, FirstOutlay, Purse, covers
from broker.world import World

NOTICE_SECONDS = 120
"""Between the notice and the end."""
PAID = (JobState.RUNNING, JobState.SUSPENDED)
TEXT = "SkyPurza: the budget of {} is used up, this job ends in two minutes"


@dataclass(slots=True)
class Spending:
    """What was spent of a budget in the window that began then, in micro-dollars."""

    budget: Budget
    since: int
    spent: int

    @property
    def name(self) -> str:
        """Another one once it was raised, or in another window: then jobs are told anew."""
        return f"{self.budget.key}/{self.budget.micro_usd}/{self.since}"

    @property
    def ends_jobs(self) -> bool:
        """Whether it is used up, and ends who runs then."""
        budget = self.budget
        stops = budget.action is Action.STOP and budget.running is not Running.NEVER
        return stops and self.spent >= budget.micro_usd


class Budgets:
    """Follows the ledger; what is not known yet is read from the store."""

    def __init__(
        self, world: World, store: Store, under_way: Callable[[], Sequence[Entry]]
    ) -> None:
        self._world = world
        self._store = store
        self._under_way = under_way
        """What the present step has posted so far."""
        self._known: dict[str, Spending] = {}

    def note(self, entries: Iterable[Entry], now: int) -> None:
        """Adds what a step has posted, once it is stored; windows that are over begin anew."""
        fresh = self._renewed(now)
        for key, known in self._known.items():
            if key not in fresh:
                known.spent += self._of(known.budget, entries)

    def _renewed(self, now: int) -> set[str]:
        """Reads of the store what was spent of budgets that are new, or of windows that are."""
        budgets, fresh = self._world.site.book.budgets, set[str]()
        for key, budget in budgets.items():
            known, since = self._known.get(key), begins(budget, now)
            if known is None or known.budget != budget or known.since != since:
                self._known[key] = Spending(budget, since, self._read(budget, since))
                fresh.add(key)
        for gone in self._known.keys() - budgets.keys():
            del self._known[gone]
        return fresh

    def _of(self, budget: Budget, entries: Iterable[Entry]) -> int:
        return sum(entry.cost for entry in entries if entry.cost and self._pays(budget, entry))

    def purse(self, first: FirstOutlay, now: int) -> Purse | None:
        """What is left of each for one pass; None where there are no budgets."""
        world = self._world
        if not world.site.book.budgets:
            return None
        self._renewed(now)
        active = (world.jobs[job] for job in world.active)
        ahead = Ahead.of(world.site, active, world.nodes, now=now)
        left = {
            key: one.budget.micro_usd
            - one.spent
            - self._of(one.budget, self._under_way())
            - ahead.promised(one.budget)
            for key, one in self._known.items()
        }
        return Purse(left, world.site, first, now)

    def due(self, now: int) -> list[ev.Event]:
        """Running jobs that a used up budget ends, or tells that it will: of several the first,
        those first that end at once.
        """
        over = [one for one in self._known.values() if one.ends_jobs]
        over.sort(key=lambda one: one.budget.running is not Running.NOW)
        names = {one.name for one in over}
        whose: dict[JobId, tuple[Job, Spending]] = {}
        for one in over:
            for job in self._paid(one.budget):
                whose.setdefault(job.id, (job, one))
        ends = (self._end(job, one, now, names=names) for job, one in whose.values())
        return [fact for fact in ends if fact is not None]

    def _end(
        self, job: Job, one: Spending, now: int, *, names: AbstractSet[str]
    ) -> ev.Event | None:
        """A notice of any of the budgets that are used up, by their names, was one."""
        told = job.warned[1] if job.warned and job.warned[0] in names else None
        if one.budget.running is Running.NOW or (told and now >= told + NOTICE_SECONDS):
            return cancelled(job, by=SYSTEM, now=now)
        if told is not None:
            return None
        notice = Notice(TEXT.format(one.budget.key), self._world.last_event + 1 + job.id)
        return ev.NoticeAsked(job=job.id, at=now, notice=notice, budget=one.name)

    def _paid(self, budget: Budget) -> list[Job]:
        """Jobs that the budget pays for; a suspended one's machines cost as before."""
        world = self._world
        jobs = (world.jobs[job] for job in world.active)
        return [
            job
            for job in jobs
            if job.state in PAID
            and not job.completing
            and covers(budget, job, world.site.book, partition=job.partition)
        ]

    def _read(self, budget: Budget, since: int) -> int:
        found = self._store.spent(since)
        return sum(
            amount
            for (account, user, qos, partition), amount in found.items()
            if budget.covers(accounts=self._line(account), user=user, qos=qos, partition=partition)
        )

    def _pays(self, budget: Budget, entry: Entry) -> bool:
        return budget.covers(
            accounts=self._line(entry.account),
            user=entry.user,
            qos=entry.qos,
            partition=entry.partition,
        )

    def _line(self, account: str) -> list[str]:
        book = self._world.site.book
        return [str(step.name) for step in book.lineage(AccountName(account))] or [account]
