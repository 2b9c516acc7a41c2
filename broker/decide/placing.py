"""From a plan to facts: elements split off, nodes intended, shares given, reasons noted."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from accounting.ids import JobId
from accounting.ledger import Payer
from broker.decide.arrays import split, without
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job, Share, Step
from broker.model.node import Node, NodeState
from broker.model.offer import Ranked
from broker.model.site import Elastic
from broker.optimize.query import warm_seconds
from broker.schedule.accrued import payer_of
from broker.schedule.fit import even_shares, room
from broker.schedule.gates import limit_there
from broker.schedule.holding import schedulable
from broker.schedule.view import Batch, Buy, Plan, Start, Wait
from broker.world import World
from sbatch_shim.grammar.hostlist import sorted_names

MAX_RUNGS = 50
"""Offers kept with a purchase; a walk that long has met every kind of refusal."""


class Placing:
    """Facts of one plan, in an order in which they can be applied."""

    def __init__(self, world: World, ids: Iterator[JobId], now: int) -> None:
        self.world = world
        self.ids = ids
        self.now = now
        self.bases: dict[JobId, Job] = {}
        """Array records as they stand after the splits so far."""
        self.facts: list[ev.Event] = []
        self.launches = 0
        self.gangs: dict[JobId, str] = {}
        """By leader, the group bought last for a heterogeneous job: the next one waits for it."""

    def of(self, plan: Plan) -> list[ev.Event]:
        """Starts first, then purchases, then reasons of those that wait."""
        for start in plan.start:
            job = self._own_record(start.job, start.task)
            self._place(job, start.partition, start.shares, choice=_why_here(start))
        for buy in plan.buy:
            self._buy(buy)
        for job_id, wait in plan.wait.items():
            self._wait(job_id, wait)
        for name in plan.let_go:
            node = self.world.nodes[name]
            why = "idle, and its name is wanted"
            self.facts.append(nev.NodeDoomed(node=name, launch=node.launch, at=self.now, why=why))
        return self.facts

    def _own_record(self, job_id: JobId, task: int | None) -> Job:
        """The job's record, an element being split off its array first."""
        job = self.bases.get(job_id) or self.world.jobs[job_id]
        if task is None or job.array is None:
            return job
        facts, element = split(job, task, self.ids, now=self.now)
        self.facts += facts
        self.bases[job_id] = without(job, task)
        return replace(job, id=element)

    def _place(self, job: Job, partition: str, given: Iterable[Share], *, choice: str) -> None:
        shares = in_order(given)
        self._shorten(job, partition)
        self.facts.append(
            ev.Placed(job=job.id, at=self.now, partition=partition, shares=shares, choice=choice)
        )
        steps = [Step(id=BATCH, name="batch", asked=self.now)]
        for number, spec in enumerate(job.spec.steps):
            steps.append(Step(StepId(str(number)), spec.name, spec=spec, asked=self.now))
        self.facts += [ev.StepAdded(job=job.id, at=self.now, step=step) for step in steps]
        for share in shares:
            node = self.world.nodes.get(share.node)
            if node is not None and node.idle_since is not None:
                self.facts.append(
                    nev.NodeIdle(node=node.name, launch=node.launch, at=self.now, idle_since=None)
                )

    def _shorten(self, job: Job, name: str) -> None:
        partition = self.world.site.partition(name)
        if partition is None:
            return
        limit = limit_there(self.world.site, job, partition)
        if limit != job.time_limit:
            self.facts.append(ev.Changed(job=job.id, at=self.now, time_limit=limit))

    def _buy(self, buy: Buy) -> None:
        partition = self.world.site.partition(buy.partition)
        if partition is None or partition.elastic is None:
            return
        jobs = [self._own_record(rider.job, rider.task) for rider in buy.riders]
        payer = payer_of(jobs[0], jobs[0].attempt + 1)
        build, made, het = jobs[0].spec.resources.build, list[Node](), jobs[0].het
        after = "" if het is None else self.gangs.get(het.base, "")
        for number, batch in enumerate(buy.batches):
            group = f"{payer.label}+{number}" if number else payer.label
            intended = partial(self.intended, batch, partition.elastic, payer=payer)
            made += [
                replace(intended(name), build=build, group=group, after=after)
                for name in batch.names
            ]
            after = group
        if het is not None:
            self.gangs[het.base] = after
        self.facts += [
            nev.NodeMade(node=node.name, launch=node.launch, at=self.now, record=node)
            for node in made
        ]
        rooms = [room(node, ()) for node in made]
        for job, rider in zip(jobs, buy.riders, strict=True):
            shares = even_shares(rider.ask, rooms)
            for one, share in zip(rooms, shares, strict=True):
                one.take(share)
            self._place(job, buy.partition, shares, choice=_why_bought(buy))

    def intended(self, batch: Batch, elastic: Elastic, name: NodeName, *, payer: Payer) -> Node:
        """The purchase as it is recorded before it is made."""
        offer = batch.rungs[0].offer
        names = tuple(
            p.name
            for p in self.world.site.partitions
            if p.elastic is not None and p.elastic.prefix == elastic.prefix
        )
        return Node(
            name=name,
            launch=self._launch_number(),
            state=NodeState.LAUNCHING,
            whole=schedulable(offer, elastic),
            partitions=names,
            features=offer.features,
            rungs=batch.rungs[:MAX_RUNGS],
            dearest=max(rung.dearest for rung in batch.rungs[:MAX_RUNGS]),
            group=payer.label,
            cause=payer,
            since=self.now,
            boot_deadline=self.now + elastic.boot_timeout,
            idle_seconds=warm_seconds(offer, elastic),
        )

    def _launch_number(self) -> int:
        """Never given again: a store that is restored from a copy goes back, time does not."""
        self.launches += 1
        return self.now * 1000 + (self.world.last_event + self.launches) % 1000

    def _wait(self, job_id: JobId, wait: Wait) -> None:
        job = self.bases.get(job_id) or self.world.jobs[job_id]
        if (job.reason, job.detail) == (wait.reason, wait.detail) or job.hold is not None:
            return
        if job.array is not None and job.array.task is None and not job.array.waiting:
            return
        self.facts.append(ev.Waits(job=job_id, at=self.now, reason=wait.reason, detail=wait.detail))


def in_order(shares: Iterable[Share]) -> tuple[Share, ...]:
    """As lists of nodes show them: the batch step is on the first, and ranks count from there."""
    by_name = {share.node: share for share in shares}
    return tuple(by_name[NodeName(name)] for name in sorted_names(by_name))


def _why_here(start: Start) -> str:
    return "room on " + ",".join(share.node for share in start.shares)


def _why_bought(buy: Buy) -> str:
    """One line per rung for `spz why`: the choice and what came next; batches stand apart."""
    others = len(buy.riders) - 1
    shared = f", shared with {others} more" if others else ""
    return "\n\n".join(_rungs(batch, shared) for batch in buy.batches)


def _rungs(batch: Batch, shared: str) -> str:
    return "\n".join(
        f"{rung.offer.instance_type}|{rung.offer.region}|{'+'.join(rung.offer.zones)}"
        f"|{rung.offer.market.value}|{rung.offer.micro_usd_per_hour}"
        f"|{rung.expected_micro_usd}|{rung.reason}{shared}{_old(rung)}"
        for rung in batch.rungs[:5]
    )


def _old(rung: Ranked) -> str:
    return f" ({rung.old_price})" if rung.old_price else ""
