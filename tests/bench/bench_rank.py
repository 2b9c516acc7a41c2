"""Ranking over the whole bundled catalogue: `name value unit budget ok|OVER`, a line per figure.

Medians of 50. Run alone with `.venv/bin/python tests/bench/bench_rank.py`.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.model.offer import BuyPolicy, Need
from broker.optimize.bundled import bundled
from broker.optimize.cooldown import Cooldown
from broker.optimize.rank import rank

ROUNDS = 50
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
        start = time.perf_counter()
        action()
        took.append(time.perf_counter() - start)
    return median(took) * 1000


def report(name: str, value: float, *, unit: str, budget: float) -> bool:
    fine = value <= budget
    sys.stdout.write(f"{name} {value:.3f} {unit} {budget:g} {'ok' if fine else 'OVER'}\n")
    return fine


def main() -> int:
    catalog, cool = bundled(), Cooldown()
    results = []
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
