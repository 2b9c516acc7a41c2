"""A spot machine whose pool changes its price while it runs: bill, job's cost, rate, end."""

from dataclasses import replace

from accounting.ids import JobId
from accounting.ledger import Why
from accounting.rates import Price
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch, Prepare
from broker.model.offer import BuyPolicy, Machine, MachineState, Market
from broker.model.site import Elastic, Site
from broker.provision.reconcile import difference
from broker.schedule.budgets import rate_now
from tests.unit.broker.test_engine import ALICE, ELASTIC, Bench, machine

HOUR = 3600
SPOT = Elastic("ec2-", 8, buy=BuyPolicy(spot=True))
SITE = Site(partitions=(replace(ELASTIC.partitions[0], elastic=SPOT),))


class Running:
    """A bench with one job on one spot machine."""

    def __init__(self) -> None:
        self.bench = Bench(SITE)
        self.job: JobId = self.bench.submit(time_limit=10 * HOUR)
        (launch,) = [one for one in self.bench.effects if isinstance(one, Launch)]
        (bought,) = machine(launch, self.bench.now)
        self.machine = replace(bought, market=Market.SPOT)
        self.bench.step(rep.Launched(group=launch.group, machines=(self.machine,)))
        (prepare,) = [one for one in self.bench.effects if isinstance(one, Prepare)]
        self.bench.step(rep.Booted(node=prepare.node.name, launch=prepare.node.launch))
        self.start, self.first = self.bench.now, bought.micro_usd_per_hour

    def told(self, *prices: tuple[int, int]) -> Machine:
        """As the provider lists it: its pool's prices by seconds since the start."""
        listed = tuple(Price(self.start + after, price) for after, price in prices)
        return replace(self.machine, prices=listed)

    def swept(self, seen: Machine) -> int:
        """How many words about prices the sweep has."""
        found = difference(self.bench.world.nodes, [seen]).repriced
        self.bench.step(*found)
        return len(found)

    def end(self, seen: Machine, after: int) -> None:
        self.bench.now = self.start + after
        self.bench.step(cmd.Cancel(target=cmd.Target(self.job), by=ALICE))
        gone = replace(
            seen,
            state=MachineState.TERMINATED,
            terminated_at=self.bench.now,
            ended_by_provider=True,
        )
        self.bench.step(rep.Vanished(node=gone.node, launch=gone.launch, machine=gone))

    def posted(self) -> int:
        return sum(entry.cost for entry in self.bench.store.entries.values())

    def late(self) -> dict[str, int]:
        entries = self.bench.store.entries.values()
        return {one.account: one.cost for one in entries if one.why is Why.LATE_PRICE}


def test_the_sweep_tells_a_price_once_and_the_ledger_ends_with_the_bill() -> None:
    run = Running()
    seen = run.told((-5, run.first), (600, 7_200_000), (HOUR + 600, 3_600_000))
    assert [run.swept(seen) for _ in range(2)] == [1, 0]
    run.end(seen, 2 * HOUR + 900)
    assert run.posted() == run.first + 7_200_000 + 3_600_000 // 4
    assert run.late() == {}


def test_prices_that_are_known_at_the_end_alone_are_in_the_bill_too() -> None:
    run = Running()
    run.end(run.told((-5, 5_000_000), (600, 7_200_000)), HOUR + 900)
    assert run.posted() == 5_000_000 + 7_200_000 // 4


def test_who_ran_pays_what_became_known_late() -> None:
    run = Running()
    run.bench.step(rep.Tick(), seconds=600)
    run.end(run.told((-5, 2 * run.first)), HOUR)
    assert run.posted() == 2 * run.first
    assert run.late() == {run.bench.world.jobs[run.job].account: run.first}


def test_what_it_costs_an_hour_is_what_was_told_last() -> None:
    run = Running()
    whole = run.bench.world.nodes[run.machine.node].whole
    share = run.bench.world.jobs[run.job].shares[0].tres.dominant_share(whole)
    run.swept(run.told((-5, 7_200_000)))
    assert rate_now(run.bench.world.jobs[run.job], run.bench.world.nodes) == int(7_200_000 * share)


def test_a_price_of_another_launch_or_of_no_machine_changes_nothing() -> None:
    run = Running()
    before = dict(run.bench.world.nodes)
    other = replace(run.told((0, 9)), launch=99)
    run.bench.step(rep.Repriced(node=other.node, launch=other.launch, machine=other))
    run.bench.step(rep.Repriced(node="ec2-8", launch=1, machine=other))  # type: ignore[arg-type]
    assert run.bench.world.nodes == before
