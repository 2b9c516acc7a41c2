"""Ranking over the whole bundled catalogue: `name value unit budget ok|OVER`, a line per figure.

Medians of 50, in milliseconds of one core; the first figure counts requests of which the first
offer differs from an exhaustive search's. Run alone: `.venv/bin/python tests/bench/bench_rank.py`.
"""

import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.model.offer import BuyPolicy, Need, Offer
from broker.optimize.bundled import bundled
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.optimize.costs import lost_seconds
from broker.optimize.rank import rank, ranking

ROUNDS = 50
DRAWS = 1000
REQUESTS = {
    "A10G:1": Need(gpu_type="A10G", gpus=1),
    "4+cpus": Need(cpus=4),
    "H100:8x2": Need(cpus=1, gpu_type="H100", gpus=8, nodes=2),
}
POLICIES = {"": BuyPolicy(), "-spot": BuyPolicy(spot=True)}
RANK_BUDGET_MS = 2.0
LOAD_BUDGET_MS = 150.0
MEMORY_BUDGET_MIB = 25.0


def median_ms(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    took = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        took.append(time.process_time() - start)
    return median(took) * 1000


def report(name: str, value: float, *, unit: str, budget: float) -> bool:
    fine = value <= budget
    sys.stdout.write(f"{name} {value:.3f} {unit} {budget:g} {'ok' if fine else 'OVER'}\n")
    return fine


@dataclass(frozen=True, slots=True)
class Row:
    """An offer as the exhaustive search looks at it."""

    offer: Offer
    gpus: int
    boot: int
    """How much longer than a plain machine it takes to boot."""
    left_out: frozenset[str]
    """What has to be let in for it to count."""


def rows_of(catalog: Catalog) -> list[Row]:
    words = ("burstable", "opt-in", "gpu-fraction", "arm64", "spot")
    odd = {"amd-gpu", "gaudi", "other-gpu", "neuron", "inference", "fpga", "media"}
    rows = []
    for offer in catalog:
        features, devices = set(offer.features), dict(offer.gres).get("gpu", 0)
        boot = 10 if "metal" in features else 2 if devices else 1
        left_out = frozenset(word for word in words if word in features)
        rows.append(Row(offer, 0 if features & odd else devices, boot, left_out))
    return rows


def cheapest(
    need: Need, rows: list[Row], policy: BuyPolicy
) -> tuple[int, set[tuple[str, str, int]]]:
    """The least cost by looking at every offer, and the types, regions and prices that have it."""
    let_in = frozenset({"spot"} if policy.spot else ())
    wanted = f"gpu:{need.gpu_type.lower()}" if need.gpu_type else ""
    least, found = 0, set[tuple[str, str, int]]()
    for row in rows:
        offer = row.offer
        if offer.cpus < need.cpus or offer.mem_mib * 95 // 100 < need.mem_mib:
            continue
        have = dict(offer.gres).get(wanted, 0) if wanted else row.gpus
        if have < need.gpus or row.left_out - let_in:
            continue
        if policy.regions and offer.region not in policy.regions:
            continue
        paid = max(60, need.run_seconds + policy.boot_seconds * row.boot)
        paid += lost_seconds(offer.band, paid, need.nodes)
        cost = -(-offer.micro_usd_per_hour * paid * need.nodes // 3600)
        if not found or cost < least:
            least, found = cost, set()
        if cost == least:
            found.add((offer.instance_type, offer.region, offer.micro_usd_per_hour))
    return least, found


def agreement(catalog: Catalog, draws: int) -> int:
    """Of so many drawn requests those in which the ranking's first is the exhaustive search's."""
    rng, rows, alike = random.Random(1), rows_of(catalog), 0
    for _ in range(draws):
        need = Need(
            cpus=rng.choice((1, 2, 3, 4, 8, 16, 48, 96, 190)),
            mem_mib=rng.choice((0, 0, 1000, 16_000, 250_000, 900_000)),
            nodes=rng.randint(1, 4),
            gpu_type=(kind := rng.choice((None, None, None, "A10G", "T4", "L4", "H100", "A100"))),
            gpus=rng.choice((1, 1, 2, 4, 8)) if kind or rng.random() < 0.2 else 0,
            run_seconds=rng.choice((10, 600, 3600, 86_400, 1_000_000)),
        )
        regions = rng.choice(((), (), ("us-east-1",), ("eu-west-1", "ap-south-1")))
        policy = BuyPolicy(spot=rng.random() < 0.5, regions=regions)
        least, found = cheapest(need, rows, policy)
        first = next(ranking(need, catalog, Cooldown(), target=policy, now=0), None)
        if first is None:
            alike += not found
            continue
        offer = first.offer
        told = offer.instance_type, offer.region, offer.micro_usd_per_hour
        alike += first.expected_micro_usd == least and told in found
    return alike


def main() -> int:
    catalog, cool = bundled(), Cooldown()
    results = []
    alike = agreement(catalog, DRAWS)
    results.append(report("agreement-of-1000", DRAWS - alike, unit="differ", budget=0))
    for mark, policy in POLICIES.items():
        for name, need in REQUESTS.items():

            def ranked(need: Need = need, policy: BuyPolicy = policy) -> object:
                return rank(need, catalog, cool, target=policy, now=0)

            took = median_ms(ranked)
            results.append(report(f"rank-{name}{mark}", took, unit="ms", budget=RANK_BUDGET_MS))
    load = median_ms(bundled, 10)
    results.append(report("catalogue-load", load, unit="ms", budget=LOAD_BUDGET_MS))
    tracemalloc.start()
    kept = bundled()
    mib = tracemalloc.get_traced_memory()[0] / (1 << 20)
    results.append(report("catalogue-memory", mib, unit="MiB", budget=MEMORY_BUDGET_MIB))
    return 0 if kept and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
