"""Through the whole engine: a budget that holds jobs back is never overdrawn by what they cost."""

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounting.assoc import book
from accounting.budget import Budget, Scope, Window
from accounting.change import Change, changed
from accounting.ids import OVERHEAD
from accounting.ledger import Entry
from accounting.rates import Price
from broker.model import commands as cmd
from broker.model.offer import Machine, Market
from broker.model.site import Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.providers.fake_agent import Fate
from broker.schedule.budgets import Ahead
from tests.sim.harness import CATALOG, Chaos, Simulation
from tests.sim.site import ALICE, BOB, NAMES, NODES, elastic
from tests.sim.workload import fates

EXAMPLES = int(os.environ.get("SKYPURZA_TEST_EXAMPLES", "3"))
SECONDS = 1500
SHAPES = (
    Resources(),
    Resources(cpus_per_task=2),
    Resources(min_nodes=2, max_nodes=2),
    Resources(exclusive=True),
)
scopes = st.sampled_from(
    (
        (Scope.USER, "alice"),
        (Scope.ACCOUNT, "root"),
        (Scope.PARTITION, "ec2"),
        (Scope.PARTITION, "spot"),
        (Scope.QOS, "normal"),
    )
)


MOVES = 120
"""Seconds between changes of a pool's price."""
ON_DEMAND = {
    (offer.instance_type, offer.region): offer.micro_usd_per_hour
    for offer in CATALOG
    if offer.market is Market.ON_DEMAND
}


def moving(seed: int) -> Callable[[Machine, int], tuple[Price, ...]]:
    """Prices that go up and down as they like, up to what the type costs on demand."""

    def told(machine: Machine, now: int) -> tuple[Price, ...]:
        luck = random.Random(f"{seed} {machine.instance_type} {machine.zone}")
        most = ON_DEMAND[machine.instance_type, machine.region]
        instants = range(machine.launched_at, now + 1, MOVES)
        return tuple(Price(at, luck.choice((most, luck.randint(0, most)))) for at in instants)

    return told


def to_the_limit(seed: int) -> Callable[[str, Mapping[str, Any]], Fate]:
    """Every second step would run for ever."""
    usual = fates(seed)

    def fate(key: str, order: Mapping[str, Any]) -> Fate:
        return Fate(10**6) if random.Random(key).random() < 0.5 else usual(key, order)

    return fate


def site_with(budget: Budget) -> Site:
    usual = {"def_mem_per_cpu_mib": 1024}
    spot = elastic("spot-", 6, spot=True)
    spot = replace(spot, buy=replace(spot.buy, spot_price_seconds=MOVES))
    return Site(
        partitions=(
            Partition("ec2", default=True, elastic=elastic("ec2-", 6), **usual),  # type: ignore[arg-type]
            Partition("spot", elastic=spot, **usual),  # type: ignore[arg-type]
            Partition("both", nodes=NAMES, elastic=elastic("ec2-", 6), **usual),  # type: ignore[arg-type]
        ),
        nodes=NODES,
        requeue_delay=30,
        book=changed(book(default_account="root"), Change(budgets=(budget,))),
    )


def submission(luck: random.Random, number: int) -> cmd.Submit:
    spec = TaskSpec(
        name="job",
        batch=StepSpec(name="batch"),
        resources=luck.choice(SHAPES),
        partitions=luck.choice((("ec2",), ("both",), ("spot",))),
        time_limit=luck.choice((60, 300, 600, 1200)),
    )
    return cmd.Submit(spec=spec, owner=luck.choice((ALICE, BOB)), request=f"r{number}")


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    whose=scopes,
    micro_usd=st.integers(2_000, 20_000) | st.integers(20_000, 400_000),
    seed=st.integers(0, 10**6),
    chaos=st.sampled_from((Chaos(), Chaos(delay=4, lost_wakes=0.3), Chaos(crash=0.02))),
)
def test_what_was_spent_never_exceeds_a_budget(
    whose: tuple[Scope, str], micro_usd: int, seed: int, chaos: Chaos
) -> None:
    scope, name = whose
    budget = Budget(scope=scope, name=name, micro_usd=micro_usd, window=Window.TOTAL)
    luck = random.Random(seed)
    within = partial(is_within, budget)
    sim = Simulation(site_with(budget), to_the_limit(seed), seed=seed, chaos=chaos, check=within)
    sim.cloud.pool_prices = moving(seed)
    for number in range(25):
        asked = submission(luck, number)
        sim.submit_at(luck.randint(0, SECONDS), asked)
    sim.run(3 * SECONDS)


def is_within(budget: Budget, sim: Simulation) -> None:
    """Neither what was spent nor that with what was promised is beyond it."""
    spent = sum(entry.cost for entry in sim.store.entries.values() if _pays(budget, entry))
    world, now = sim.world, sim.clock.time
    ahead = Ahead.of(world.site, world.jobs.values(), world.nodes, now=now)
    assert spent <= budget.micro_usd
    assert spent + ahead.promised(budget) <= budget.micro_usd


def _pays(budget: Budget, entry: Entry) -> bool:
    """Idle machines are nobody's."""
    return entry.account != OVERHEAD and budget.covers(
        accounts=[entry.account, "root"],
        user=entry.user,
        qos=entry.qos,
        partition=entry.partition,
    )
