"""What simulated work costs beside the least it could, and how long a pass over many jobs takes.

The least: each job's dominant resource at the cheapest unit price of any machine, nothing wasted.
Lines that begin with # are told beside the figures.
"""

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Payer
from accounting.tres import Tres
from broker.engine import Engine
from broker.model import commands as cmd
from broker.model.ids import NodeName
from broker.model.job import Job, JobState, Owner, Share
from broker.model.node import Node, NodeState
from broker.model.offer import BuyPolicy, Machine, Market, Need
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import ArraySpec, Resources, StepSpec, TaskSpec
from broker.optimize.cooldown import Cooldown
from broker.optimize.rank import rank
from broker.providers.fake import Delays
from broker.providers.fake_agent import Fate
from broker.quotes import Quotes
from broker.schedule import priority
from broker.schedule.plan import plan
from broker.schedule.view import Plan
from broker.world import World
from gateway.serve import COLLECTED
from tests.bench.running import report
from tests.sim.audit import billed
from tests.sim.harness import CATALOG, START, Simulation
from tests.sim.memory_store import MemoryStore
from tests.sim.site import ALICE

BOOT = 30
MEM_MIB = 1024
ARRAY_BUDGET = 1.15
TRACE_BUDGET = 1.35
PASS_BUDGET_MS = 1000.0
POLICY = BuyPolicy(provider="fake", boot_seconds=BOOT)
ELASTIC = Elastic("ec2-", 1000, buy=POLICY, idle_seconds=None)
SITE = Site(
    partitions=(Partition("ec2", default=True, elastic=ELASTIC, def_mem_per_cpu_mib=MEM_MIB),),
    max_job_count=30_000,
    max_array_size=20_000,
)
SHARED = Path(os.environ.get("SKYPURZA_SHARED") or Path(__file__).resolve().parents[3] / "shared")
TRACE = SHARED / "workloads" / "lublin_256.swf"


@dataclass(frozen=True, slots=True)
class Work:
    """One job of a trace: instants and seconds, one cpu and 1 GiB for each processor."""

    submitted: int
    seconds: int
    processors: int
    limit: int


def unit_prices() -> tuple[float, float]:
    """Micro-dollars for an hour of a cpu, and of a MiB, on the machine where it is cheapest."""
    cpu = mem = float("inf")
    query = rank(Need(), CATALOG, Cooldown(), target=POLICY, now=0)
    regions = {region.name for region in CATALOG.regions if not region.opt_in}
    assert query
    for offer in CATALOG:
        plain = offer.arch == POLICY.arch and "burstable" not in offer.features
        if plain and offer.market is Market.ON_DEMAND and offer.region in regions:
            cpu = min(cpu, offer.micro_usd_per_hour / offer.cpus)
            mem = min(mem, offer.micro_usd_per_hour / offer.mem_mib)
    return cpu, mem


def least(work: list[Work]) -> float:
    cpu, mem = unit_prices()
    each = max(cpu, mem * MEM_MIB)
    return sum(one.processors * one.seconds for one in work) * each / 3600


def apart(work: list[Work]) -> float:
    """What one machine for each job would have cost: the cheapest that holds it."""
    prices: dict[int, int] = {}
    total = 0.0
    for one in work:
        if one.processors not in prices:
            need = Need(cpus=one.processors, mem_mib=one.processors * MEM_MIB)
            (first, *_) = rank(need, CATALOG, Cooldown(), target=POLICY, now=0)
            prices[one.processors] = first.offer.micro_usd_per_hour
        total += prices[one.processors] * max(60, one.seconds) / 3600
    return total


class Bills:
    """Every machine as last seen; looked at before the cloud forgets it."""

    def __init__(self) -> None:
        self.machines: dict[tuple[str, int], Machine] = {}
        self._next = 0

    def __call__(self, sim: Simulation) -> None:
        if sim.clock.time >= self._next:
            self._next = sim.clock.time + 1800
            self.look(sim)

    def look(self, sim: Simulation) -> None:
        for machine in sim.cloud.machines():
            self.machines[machine.node, machine.launch] = machine

    def total(self) -> int:
        return sum(billed(machine, "") for machine in self.machines.values())


def simulate(
    fates: Callable[[str, Mapping[str, Any]], Fate], asked: list[tuple[int, cmd.Submit]]
) -> tuple[Simulation, Bills]:
    bills = Bills()
    sim = Simulation(
        SITE, fates, seed=1, check=bills, sweep_every=1800, full_every=600, delays=Delays(boot=BOOT)
    )
    sim.script = [(START + at, _asks(message)) for at, message in asked]
    sim.run(10**9)
    bills.look(sim)
    return sim, bills


def _asks(message: cmd.Submit) -> Callable[[Simulation], list[cmd.Command]]:
    return lambda _sim: [message]


def submit(number: int, **fields: object) -> cmd.Submit:
    spec = TaskSpec(**{"name": f"{number}", "batch": StepSpec(name="batch"), **fields})  # type: ignore[arg-type]
    return cmd.Submit(spec=spec, owner=ALICE, request=f"r{number}")


def array() -> bool:
    """1,000 one-cpu jobs of ten minutes."""
    tasks = ArraySpec(tasks=tuple(range(1000)))
    sim, bills = simulate(
        lambda _key, _order: Fate(600), [(0, submit(0, array=tasks, time_limit=900))]
    )
    work = [Work(0, 600, 1, 900)] * 1000
    took = max(job.ended or 0 for job in sim.store.jobs.values()) - START
    fine = report("array-of-1000", bills.total() / least(work), unit="x", budget=ARRAY_BUDGET)
    _tell(work, bills, f"over after {took} s")
    return fine


def trace() -> bool:
    """The whole trace, each job when it was submitted."""
    if not TRACE.exists():
        sys.stdout.write(f"# skipped: no trace at {TRACE} (SKYPURZA_SHARED says where)\n")
        return True
    work = list(read(TRACE))

    def fate(_key: str, order: Mapping[str, Any]) -> Fate:
        return Fate(work[int(str(order["job_label"]).split()[0])].seconds)

    asked = [
        (one.submitted, submit(n, resources=Resources(tasks=one.processors), time_limit=one.limit))
        for n, one in enumerate(work)
    ]
    sim, bills = simulate(fate, asked)
    assert sum(job.state is JobState.COMPLETED for job in sim.store.jobs.values()) == len(work)
    waits = [(job.started or 0) - job.submitted for job in sim.store.jobs.values()]
    fine = report("lublin-256", bills.total() / least(work), unit="x", budget=TRACE_BUDGET)
    _tell(work, bills, f"mean wait for nodes {sum(waits) / len(waits):.1f} s")
    return fine


def read(path: Path) -> Iterator[Work]:
    """Limits are drawn: users ask for one to three times what it takes, in quarters of an hour."""
    rng = random.Random(1)
    for line in path.read_text(encoding="ascii").splitlines():
        if line.strip() and not line.startswith(";"):
            columns = line.split()
            at, seconds, processors = int(columns[1]), int(columns[3]), int(columns[4])
            limit = -(-int(max(seconds, 1) * rng.uniform(1, 3)) // 900) * 900
            yield Work(at, max(seconds, 0), processors, max(limit, 900))


def _tell(work: list[Work], bills: Bills, more: str) -> None:
    bound = least(work)
    sys.stdout.write(
        f"# {bills.total() / 1e6:.2f} USD on {len(bills.machines)} machines,"
        f" least {bound / 1e6:.2f};"
        f" one machine per job would have cost {apart(work) / 1e6:.2f} USD"
        f" ({apart(work) / bound:.2f}x) on {len(work)}; {more}\n"
    )


def passes() -> bool:
    """10,000 jobs that wait and 1,000 machines: with room, without, and with names for more."""
    fine = True
    for name, held, most in (("room", 3, 1000), ("full", 8, 1000), ("bought", 8, 2000)):
        engine = busy_engine(held=held, most=most)
        gc.collect()
        gc.freeze()  # as a service does once it has loaded its jobs
        gc.set_threshold(*COLLECTED)
        waiting = sorted((engine.world.jobs[i] for i in engine.world.pending), key=priority.order)
        first, *later = [_pass_ms(engine, waiting) for _ in range(4)]
        took, made = median(ms for ms, _ in later), later[-1][1]
        fine &= report(f"pass-10000-jobs-{name}", took, unit="ms", budget=PASS_BUDGET_MS)
        fine &= report(f"first-pass-{name}", first[0], unit="ms", budget=PASS_BUDGET_MS)
        riders = sum(len(buy.riders) for buy in made.buy)
        sys.stdout.write(
            f"# {len(made.start)} start, {riders} ride on {len(made.buy)} bought machines,"
            f" {len(made.wait)} records wait\n"
        )
    return fine


def _pass_ms(engine: Engine, waiting: list[Job]) -> tuple[float, Plan]:
    """Of one core. Nothing is applied, so that the next pass meets the same."""
    began = time.process_time()
    made = plan(engine.viewing.of(waiting, START + 100))
    return (time.process_time() - began) * 1000, made


def busy_engine(*, held: int, most: int) -> Engine:
    """Jobs of fifty kinds and ten users wait; each machine's own job holds `held` of 8 cpus."""
    rng = random.Random(1)
    elastic = Elastic("ec2-", most, buy=POLICY, idle_seconds=None)
    partition = Partition("ec2", default=True, elastic=elastic, def_mem_per_cpu_mib=MEM_MIB)
    world = World(Site(partitions=(partition,), max_job_count=30_000))
    users = [Owner(2000 + n, 2000 + n, f"user{n}", "users") for n in range(10)]
    nodes = [_node(n, users[n % 10]) for n in range(1, 1001)]
    running = [_running(n, node, users[n % 10], held) for n, node in enumerate(nodes, 1)]
    waiting = [_waiting(n, rng.choice(users), rng) for n in range(1001, 11_001)]
    world.load([*running, *waiting], nodes)
    market = Quotes({"fake": CATALOG}, Cooldown())
    store = MemoryStore()
    return Engine(world=world, store=store, market=market, epoch=1, started_at=START)


def _node(number: int, owner: Owner) -> Node:
    return Node(
        name=NodeName(f"ec2-{number}"),
        launch=number,
        state=NodeState.UP,
        whole=Tres(8, 15_564, 1),
        partitions=("ec2",),
        cause=Payer(AccountName("a"), UserName(owner.user), JobId(number), 1),
        micro_usd_per_hour=187_000,
    )


def _running(number: int, node: Node, owner: Owner, held: int) -> Job:
    share = Share(node.name, node.launch, Tres(held, held * MEM_MIB, 1), tuple(range(held)))
    return replace(
        _job(number, owner, held, 36_000),
        state=JobState.RUNNING,
        shares=(share,),
        started=START,
        attempt=1,
    )


def _waiting(number: int, owner: Owner, rng: random.Random) -> Job:
    return _job(number, owner, rng.choice((1, 1, 2, 4, 6)), 900 * rng.randint(1, 10))


def _job(number: int, owner: Owner, cpus: int, limit: int) -> Job:
    spec = TaskSpec(
        name="job", batch=StepSpec(name="batch"), resources=Resources(cpus_per_task=cpus)
    )
    return Job(
        id=JobId(number),
        spec=spec,
        owner=owner,
        account="a",
        qos="normal",
        partitions=("ec2",),
        submitted=START - 100,
        time_limit=limit,
        want=Tres(cpus, cpus * MEM_MIB, 1),
        priority=1,
        eligible=START - 100,
    )


def main() -> int:
    results = [passes(), array(), trace()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
