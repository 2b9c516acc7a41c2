"""10,000 jobs through the engine and a fake cloud in virtual time, audited: under a minute."""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from broker.model import commands as cmd
from broker.model.site import Partition, Site
from broker.model.spec import (
    ArraySpec,
    Dependency,
    DependencyKind,
    Gres,
    Resources,
    StepSpec,
    TaskSpec,
)
from broker.providers.fake_agent import Fate
from tests.sim.audit import Audit
from tests.sim.harness import START, Simulation
from tests.sim.site import ALICE, BOB, elastic

JOBS = 10_000
NODES = 300
BUDGET_S = 60.0
EACH_STEP = 500
LATER = 100
SITE = Site(
    partitions=(
        Partition(
            "ec2", default=True, elastic=elastic("ec2-", NODES, idle=120), def_mem_per_cpu_mib=1024
        ),
    ),
    max_job_count=20_000,
)
SHAPES = (
    Resources(),
    Resources(cpus_per_task=2),
    Resources(cpus_per_task=4, mem_per_node_mib=8192),
    Resources(cpus_per_task=16),
    Resources(tasks=8),
    Resources(gres=(Gres(name="gpu"),)),
    Resources(min_nodes=2, max_nodes=2, cpus_per_task=2),
    Resources(min_nodes=4, max_nodes=4),
)


class Watch:
    """Audits each of the first steps and every hundredth later."""

    def __init__(self) -> None:
        self.audit = Audit(indexes_every=100)
        self.most_pending = 0

    def __call__(self, sim: Simulation) -> None:
        self.most_pending = max(self.most_pending, len(sim.world.pending))
        if sim.steps <= EACH_STEP or sim.steps % LATER == 0:
            self.audit(sim)


def fate(key: str, _order: object) -> Fate:
    rng = random.Random(key)
    return Fate(rng.choice((30, 60, 120, 300, 900)), rng.choice((0, 0, 0, 0, 1)))


def submissions(rng: random.Random) -> list[cmd.Submit]:
    """Singles, arrays that become ten jobs each, and chains, until there are enough jobs."""
    asked: list[cmd.Submit] = []
    jobs = 0
    while jobs < JOBS:
        fields: dict[str, object] = {"resources": rng.choice(SHAPES), "time_limit": 1800}
        count = 1
        if rng.random() < 0.05:
            count = min(10, JOBS - jobs)
            fields["array"] = ArraySpec(tasks=tuple(range(count)), limit=rng.choice((None, 4)))
        elif asked and rng.random() < 0.2:
            before = rng.randint(1, min(50, len(asked)))
            fields["after"] = (Dependency(kind=DependencyKind.AFTERANY, job=before),)
        spec = TaskSpec(**{"name": "job", "batch": StepSpec(name="batch"), **fields})  # type: ignore[arg-type]
        owner = rng.choice((ALICE, BOB))
        asked.append(cmd.Submit(spec=spec, owner=owner, request=f"r{len(asked)}"))
        jobs += count
    return asked


def report(name: str, value: float, *, unit: str, budget: float) -> bool:
    fine = value <= budget
    sys.stdout.write(f"{name} {value:.3f} {unit} {budget:g} {'ok' if fine else 'OVER'}\n")
    return fine


def main() -> int:
    rng, watch = random.Random(1), Watch()
    sim = Simulation(SITE, fate, check=watch, sweep_every=60, pass_every=10)
    asked = submissions(rng)
    for number, message in enumerate(asked):
        sim.at(number // 20, lambda _sim, message=message: [message])
    began, worked = time.perf_counter(), time.process_time()
    sim.run(30 * 86_400)
    took = time.perf_counter() - began
    worked = time.process_time() - worked
    watch.audit.finish(sim)
    over = sum(job.over for job in sim.store.jobs.values())
    fine = report("simulate-10000-jobs", took, unit="s", budget=BUDGET_S)
    hours = (sim.clock.time - START) / 3600
    sys.stdout.write(
        f"# {worked:.1f} s of one core; {over} jobs over in {hours:.1f} simulated hours,"
        f" {sim.steps} steps, {watch.audit.checks} audits,"
        f" at most {watch.most_pending} records pending, {len(watch.audit.machines)} machines\n"
    )
    return 0 if fine and over >= JOBS else 1


if __name__ == "__main__":
    sys.exit(main())
