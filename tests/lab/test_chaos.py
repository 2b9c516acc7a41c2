"""Everything goes wrong at once: refusals, lost answers, machines taken back, a service killed.

SKYPURZA_TEST_SEED repeats the luck of a former run.
"""

import json
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from broker.model.job import Job
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.lab.boxed import boxed
from tests.lab.running import Running

SEED = int(os.environ.get("SKYPURZA_TEST_SEED") or secrets.randbelow(1 << 32))
JOBS = int(os.environ.get("SKYPURZA_TEST_JOBS") or 40)
"""`make chaos` takes 300: minutes more."""
KILLS = max(2, JOBS // 30)
MOST_LIVE = 30
"""Jobs that run or wait at a time."""
SETTLE = 240.0
NODES = "skypurza:nodes"
BUY = (
    "instance_types: [m7i.large, c7i.large, r7i.large, m7i.xlarge], spot: true, "
    "regions: [us-east-1, us-east-2, eu-west-1]"
)
SCRIPT = """\
#!/bin/bash
# a line for each attempt, which has to be alone; lives a while, ends as it was told
exec 9> "lines/$1.lock"
flock -n 9 || echo "two attempts at a time" >> "lines/$1"
echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}" >> "lines/$1"
sleep "$2"
exit "$3"
"""

pytestmark = [pytest.mark.kill, pytest.mark.timeout(900)]


@dataclass(slots=True)
class Asked:
    """One job, as it is to end."""

    name: str
    code: int
    seconds: float
    nodes: int
    job: int = 0


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    given = {
        "speed": 20,
        "seed": SEED,
        "refuse": 0.10,
        "throttle": 0.025,
        "lose": 0.025,
        "hang": 0.3,
        "listed": 120,
    }
    return tuple(f"--{name}={value}" for name, value in given.items())


@pytest.fixture
def gateway(preloaded: Preloaded, lab: Running) -> Iterator[Service]:
    with boxed(preloaded, lab, BUY) as made:
        (made.work / "lines").mkdir()
        (made.work / "job.sh").write_text(SCRIPT)
        yield made


def jobs(dice: random.Random) -> list[Asked]:
    return [
        Asked(
            name=f"j{number}",
            code=dice.choice([0, 0, 0, 3]),
            seconds=dice.choice([0, 0.2, 1, 3]),
            nodes=dice.choice([1] * 9 + [2]),
        )
        for number in range(JOBS)
    ]


class Trouble:
    """Kills the service, and has machines taken back, until it is told to stop."""

    def __init__(self, gateway: Service, lab: Running, dice: random.Random) -> None:
        self.gateway, self.lab, self.dice = gateway, lab, dice
        self.taken: list[str] = []
        self.kills = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take_back, daemon=True)

    def __enter__(self) -> "Trouble":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _take_back(self) -> None:
        while not self._over.wait(self.dice.uniform(2, 5)):
            self.taken += self.lab.set("interrupt", share=0.05, notice=self.dice.choice([0, 20]))

    def kill(self) -> None:
        self.kills += 1
        self.gateway.kill()
        self.gateway.start()


def submit(gateway: Service, all_jobs: list[Asked], trouble: Trouble) -> None:
    """One after the other, never too many at a time, with a kill now and then."""
    kill_at = set(trouble.dice.sample(range(10, JOBS), KILLS))
    for number, asked in enumerate(all_jobs):
        until(lambda: _live(gateway) < MOST_LIVE, "jobs to end", SETTLE)
        if number in kill_at:
            time.sleep(trouble.dice.uniform(0, 1))
            trouble.kill()
        argv = ["-J", asked.name, "-N", str(asked.nodes), "--requeue", "-o", "/dev/null"]
        words = [asked.name, str(asked.seconds), str(asked.code)]
        asked.job = gateway.submit(*argv, "job.sh", *words)


def _live(gateway: Service) -> int:
    return int(gateway.rows("select count(*) from jobs where over = 0")[0][0])


def test_every_job_ends_as_it_should_and_every_dollar_is_known(
    gateway: Service, lab: Running
) -> None:
    print(f"\nseed {SEED}")
    dice = random.Random(SEED)
    asked, began = jobs(dice), time.monotonic()
    with Trouble(gateway, lab, dice) as trouble:
        submit(gateway, asked, trouble)
        until(lambda: not _live(gateway), "the end of all jobs", SETTLE)
    lab.set("weather", refuse=0, throttle=0, lose=0)
    until(lambda: not lab.living(), "the end of all machines", SETTLE)
    until(lambda: _nodes_gone(gateway), "the nodes' end to be written down", SETTLE)
    print(_told(lab, trouble, time.monotonic() - began))
    for one in asked:
        _check(gateway, one)
    _check_money(gateway, lab)


def _told(lab: Running, trouble: Trouble, seconds: float) -> str:
    calls = [c for c in lab.get("calls") if c["service"] == "ec2"]
    outcomes = Counter("ok" if c["outcome"] == "ok" else _call(c) for c in calls)
    bill = lab.get("bill")
    return (
        f"{JOBS} jobs, {trouble.kills} kills, {len(trouble.taken)} machines of "
        f"{len(bill['lines'])} taken back, ${bill['micro_usd'] / 1e6:.6f} in {seconds:.0f} s; "
        f"calls: {dict(outcomes)}"
    )


def _call(call: dict[str, Any]) -> str:
    return f"{call['action']}: {call['outcome']}"


def _nodes_gone(gateway: Service) -> bool:
    return not gateway.rows("select 1 from nodes where gone = 0 and launch > 0")


def _check(gateway: Service, one: Asked) -> None:
    """Each attempt at most once and never beside another, the last one to its end."""
    job: Job = gateway.job(one.job)
    lines = gateway.file(f"lines/{one.name}").splitlines()
    assert len(set(lines)) == len(lines), (one, lines)
    assert set(lines) <= {f"{one.job} {count}" for count in range(job.restarts + 1)}, (one, lines)
    assert lines, (one, job)
    assert lines[-1] == f"{one.job} {job.restarts}", (one, lines)
    assert job.state.label == ("FAILED" if one.code else "COMPLETED"), (one, job)
    assert job.exit.code == one.code, (one, job)


def _check_money(gateway: Service, lab: Running) -> None:
    """What was posted of each machine is what the box bills for it."""
    posted: Counter[str] = Counter()
    for (doc,) in gateway.rows("select doc from ledger"):
        entry: dict[str, Any] = json.loads(doc)
        if entry.get("machine"):
            name, _, _part = entry["machine"].partition("/")
            posted[name] += entry.get("cost", 0)
    bill = lab.get("bill")
    single = {line["tags"][NODES]: line for line in bill["lines"] if "," not in line["tags"][NODES]}
    shared = [line for line in bill["lines"] if "," in line["tags"][NODES]]
    wrong = [
        (posted[name], line, _life(gateway, name))
        for name, line in single.items()
        if posted[name] != line["micro_usd"]
    ]
    assert not wrong
    of_shared = {name: cost for name, cost in posted.items() if name not in single}
    assert posted.total() == bill["micro_usd"], (of_shared, shared)


def _life(gateway: Service, machine: str) -> list[Any]:
    """What was written down of a machine."""
    node, _, launch = machine.rpartition(".")
    statement = "select at, kind, doc from events where node = ? and launch = ? order by seq"
    return gateway.rows(statement, node, int(launch))
