"""What is bought for small sets of jobs, held against the least that any way of sharing costs."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import mean

import pytest

from broker.model.offer import BuyPolicy, Need
from broker.model.site import Elastic, Partition
from broker.optimize.bundled import bundled
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from broker.schedule.lots import Kind, Load, Lot, Market, purchases
from broker.schedule.mending import mended
from broker.schedule.view import Quote

POLICY = BuyPolicy(provider="fake", boot_seconds=30, root_gib=30, public_address=True)
ELASTIC = Elastic("ec2-", 1000, buy=POLICY)
PARTITION = Partition("ec2", elastic=ELASTIC, def_mem_per_cpu_mib=1024)
ASK = Quotes({"fake": bundled("fake")}, Cooldown()).at(0)
CPUS = (1, 1, 2, 3, 4, 8, 16)
MEM_MIB = (512, 1024, 2048, 8192, 16_384, 65_536)
SECONDS = (60, 300, 600, 3600, 36_000)
WORST, USUALLY = 1.10, 1.01
"""Most that a set may cost beside the least, and all of them on the average."""


@cache
def quote(need: Need) -> Quote:
    return ASK(need, ELASTIC)


def kinds_of(counts: dict[Need, int]) -> list[Kind]:
    """As a lot has them: the longest first, and of those the largest."""
    kinds = [Kind(need, limited=True, wishes=[None] * n) for need, n in counts.items()]  # type: ignore[list-item]
    return sorted(kinds, key=lambda one: (-one.need.run_seconds, *(-n for n in one.size[::-1])))


def market() -> Market:
    return Market(Lot(PARTITION, ELASTIC), quote, 1000)


def drawn(rng: random.Random) -> list[Kind]:
    """Two to six jobs of up to three kinds."""
    needs = [
        Need(cpus=rng.choice(CPUS), mem_mib=rng.choice(MEM_MIB), run_seconds=rng.choice(SECONDS))
        for _ in range(rng.randint(1, 3))
    ]
    counts: dict[Need, int] = {}
    for _ in range(rng.randint(2, 6)):
        need = rng.choice(needs)
        counts[need] = counts.get(need, 0) + 1
    return kinds_of(counts)


def ways(jobs: Sequence[Kind]) -> Iterator[list[list[Kind]]]:
    """Every way of putting them on machines."""
    if not jobs:
        yield []
        return
    first, *rest = jobs
    for way in ways(rest):
        yield [[first], *way]
        for n, group in enumerate(way):
            yield [*way[:n], [first, *group], *way[n + 1 :]]


def load_of(group: Sequence[Kind]) -> Load:
    kinds = sorted(set(group), key=lambda one: -one.need.run_seconds)
    return tuple((kind, group.count(kind)) for kind in kinds)


def beside_the_least(kinds: list[Kind]) -> float:
    prices = market()
    bought = mended(prices, purchases(prices, kinds))
    jobs = [kind for kind in kinds for _ in range(kind.left)]
    served = [kind for load in bought for kind, count in load for _ in range(count)]
    assert sorted(map(id, served)) == sorted(map(id, jobs)), "each job has one place"
    cost = cache(prices.cost)
    least = min(sum(cost(load_of(group)) for group in way) for way in ways(jobs))
    return sum(map(cost, bought)) / least


def test_small_sets_of_jobs_cost_about_the_least_that_any_way_of_sharing_does() -> None:
    rng = random.Random(20261130)
    found = [beside_the_least(drawn(rng)) for _ in range(60)]
    assert max(found) <= WORST
    assert mean(found) <= USUALLY


SMALL = Need(cpus=1, mem_mib=2048, run_seconds=600)
LARGE = Need(cpus=2, mem_mib=65_536, run_seconds=300)


@pytest.mark.parametrize(
    "counts",
    [
        {SMALL: 3},
        {SMALL: 7},
        {LARGE: 3, Need(cpus=1, mem_mib=65_536, run_seconds=300): 2},
        {Need(cpus=1, mem_mib=1024, run_seconds=600): 3, SMALL: 1},
    ],
    ids=["one is left over", "of more", "few large ones", "a shorter one"],
)
def test_what_is_left_over_rides_with_the_others_where_that_is_cheaper(
    counts: dict[Need, int],
) -> None:
    assert beside_the_least(kinds_of(counts)) <= 1.001


def test_of_very_many_alike_the_bulk_stays_as_it_was_chosen() -> None:
    prices, kinds = market(), kinds_of({SMALL: 1001})
    chosen = purchases(prices, kinds)
    bought = mended(prices, chosen)
    assert sum(count for load in bought for _, count in load) == 1001
    before = sum(prices.cost(one.load) for one in chosen)
    assert sum(map(prices.cost, bought)) <= before
