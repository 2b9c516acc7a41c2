"""A service that follows 1,000 nodes, each with a job; `name value unit budget ok|OVER`.

bench_nodes.py [--nodes N] [--seconds S] [--only NAME]

Engine, workers and store are real, and so is time; machines and their agents are the fake cloud's,
in this process: what they take is counted too. First nothing happens on the nodes; then about one
job in a hundred ends each second, and another begins in its place (three times the budget). Both
again with nodes that post over HTTPS from a process of their own.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from accounting.tres import Tres
from broker.engine import Engine
from broker.heart import Heart
from broker.model.commands import Submit
from broker.model.ids import NodeName
from broker.model.job import Owner
from broker.model.node import Node
from broker.model.offer import Market, Offer
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.optimize.cooldown import Cooldown
from broker.ports import Place
from broker.providers.fake import Delays, FakeCloud
from broker.providers.fake_agent import Fate
from broker.quotes import Quotes
from broker.run.agent.push import PULSE
from broker.workers import Outside, Workers
from broker.world import World
from gateway.store.sql import SqlStore, open_store
from tests.bench.posters import Posters, at_work, posters
from tests.bench.running import report
from tests.e2e.test_push import free_port
from tests.sim.harness import Orders

NODES = 1000
SECONDS = 30.0
CPU_BUDGET = 20.0
"""Percent of one core."""
MEMORY_BUDGET = 500.0
"""MiB."""
LONG, SHORT = 10_000, 50
"""About the mean of the seconds that jobs take: the first hardly end while it lasts."""
START_SECONDS = 120.0
ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice")
FLOOR = Offer("ground", "here", ("",), "host", Market.ON_DEMAND, 0, 1, 1)
SHAPE = Resources(min_nodes=1, max_nodes=1, exclusive=True)


class Clock:
    def now(self) -> int:
        return int(time.time())


class Log:
    """Says what went wrong."""

    def warning(self, event: str, **fields: object) -> None:
        sys.stderr.write(f"{event} {fields}\n")

    error = warning


@dataclass(frozen=True, slots=True)
class Ground:
    """`broker.ports.Reach` of nodes of a fake cloud."""

    cloud: FakeCloud

    def place(self, node: Node) -> Place:
        return self.cloud.place(node)


@dataclass
class Site1000:
    """The engine at work, its jobs counted."""

    nodes: int
    store: SqlStore
    folder: str
    posts: bool = False
    clock: Clock = field(default_factory=Clock)
    lasting: int = LONG
    asked: int = 0

    def __post_init__(self) -> None:
        names = tuple(NodeName(f"n{number}") for number in range(1, self.nodes + 1))
        whole = Tres(cpu=4, mem_mib=16_000, node=1)
        site = Site(
            partitions=(Partition("own", default=True, nodes=names, default_time=LONG * 2),),
            nodes=tuple(DeclaredNode(name=name, whole=whole) for name in names),
            max_job_count=100_000,
        )
        cloud = FakeCloud(self.clock, [], fates=self.fate, delays=Delays(boot=0))
        cloud.launch(FLOOR, [(name, 0) for name in names], token="ground")
        engine = Engine.recovered(
            world=World(site),
            store=self.store,
            market=Quotes({}, Cooldown()),
            epoch=self.store.take_lease(),
            now=self.clock.now(),
        )
        engine.configure(self.clock.now())
        self.heart = Heart(engine=engine, clock=self.clock, log=Log())
        outside = Outside(providers={}, reach=Ground(cloud), orders=Orders(), kill_wait=30)
        self.posters: Posters | None = None
        if self.posts:
            self.posters = posters(self.folder, free_port(), heart=self.heart, cloud=cloud)
            outside = replace(outside, pushes=self.posters.pushes)
            self.heart.tell = self.posters.pushes.committed
        self.heart.workers = Workers(
            outside,
            report=self.heart.report,
            followed=self.heart.followed,
            log=Log(),
            expect=self.heart.expect,
        )

    def spent(self) -> float:
        """Seconds of the processor's, without what tells nodes that post what they are to post."""
        return time.process_time() - (self.posters.spent if self.posters is not None else 0.0)

    def fate(self, key: str, _order: object) -> Fate:
        """Jobs end spread over their time."""
        return Fate(self.lasting // 10 + 37 * int(key.partition("/")[0]) % (2 * self.lasting))

    def running(self) -> int:
        jobs = self.heart.engine.snapshot.jobs.values()
        return sum(job.state.label == "RUNNING" and not job.configuring for job in jobs)

    def fill(self) -> None:
        """Some jobs always wait for a node."""
        living = sum(not job.over for job in self.heart.engine.snapshot.jobs.values())
        lacking = self.nodes + self.nodes // 50 - living
        answers = [self.heart.ask(self.submission()) for _ in range(max(0, lacking))]
        for answer in answers:
            answer.result(START_SECONDS)

    def submission(self) -> Submit:
        self.asked += 1
        spec = TaskSpec(name="job", batch=StepSpec(name="batch"), resources=SHAPE)
        return Submit(spec=spec, owner=ALICE, request=f"r{self.asked}")


@contextmanager
def site(nodes: int, lasting: int, *, posts: bool) -> Iterator[Site1000]:
    with tempfile.TemporaryDirectory(prefix="spz-bench-") as folder, ExitStack() as ends:
        store = open_store(f"{folder}/state.db", clock=Clock())
        made = Site1000(nodes, store, folder, posts, lasting=lasting)
        thread = threading.Thread(target=made.heart.run)
        thread.start()
        try:
            made.fill()
            until = time.monotonic() + START_SECONDS
            while made.running() < nodes * 0.9 and time.monotonic() < until:
                time.sleep(0.2)
                made.fill()
            if made.posters is not None:
                ends.enter_context(at_work(made.posters))
                time.sleep(2 * PULSE)
            yield made
        finally:
            ends.close()
            made.heart.stop()
            thread.join()
            if made.heart.workers is not None:
                made.heart.workers.stop()
            store.close()


def cpu_percent(made: Site1000, seconds: float) -> float:
    """Of one core, over so many seconds, of everything in this process."""
    began, spent = time.monotonic(), made.spent()
    while time.monotonic() - began < seconds:
        made.fill()
        time.sleep(1.0)
    return 100 * (made.spent() - spent) / (time.monotonic() - began)


def rss_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="", help="what its name begins with")
    asked = parser.parse_args()
    fine = True
    for name, lasting, posts in (
        ("quiet", LONG, False),
        ("busy", SHORT, False),
        ("posting_quiet", LONG, True),
        ("posting_busy", SHORT, True),
    ):
        if not name.startswith(asked.only):
            continue
        with site(asked.nodes, lasting, posts=posts) as made:
            running, percent = made.running(), cpu_percent(made, asked.seconds)
            sys.stdout.write(f"# {name}: {running} jobs run, {made.asked} were asked for\n")
            budget = CPU_BUDGET if lasting == LONG else 3 * CPU_BUDGET
            fine &= report(f"nodes_{name}_cpu", percent, unit="%", budget=budget)
            fine &= report(f"nodes_{name}_memory", rss_mib(), unit="MiB", budget=MEMORY_BUDGET)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
