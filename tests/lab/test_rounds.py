"""Agents, connections and the service are killed while jobs run: each runs once, to its own end.

Half of the jobs run on machines that post their reports, the others on machines that are swept.
SKYPURZA_TEST_ROUNDS says how often (`make chaos`: 200), SKYPURZA_TEST_SEED repeats former luck,
SKYPURZA_TEST_REPORTS=push or ssh has them all on machines of that kind.
"""

import os
import random
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.luck import drawn
from tests.e2e.service import Preloaded, Service
from tests.e2e.test_push import free_port
from tests.lab.boxed import ONE_TYPE, boxed
from tests.lab.broken import agents, kill, posters, sessions
from tests.lab.running import Running

ROUNDS = int(os.environ.get("SKYPURZA_TEST_ROUNDS") or 8)
SEED = int(os.environ.get("SKYPURZA_TEST_SEED") or secrets.randbelow(1 << 32))
WAYS = (os.environ.get("SKYPURZA_TEST_REPORTS") or "push ssh").split()
"""Partitions, by how their machines report."""
LIVE = 6
"""Jobs that run or wait at a time."""
LINES = 20
SETTLE = 120.0
SCRIPT = f"""\
#!/bin/bash
echo "${{SLURM_RESTART_COUNT:-0}}" >> "lines/$1"
for line in $(seq {LINES}); do echo "$line"; sleep "$2"; done
exit "$3"
"""
PUSHING = f"""\
  - name: push
    reports: push
    def_mem_per_cpu: 100
    elastic: {{{{provider: ec2, name_prefix: push-, max_nodes: 20, idle_seconds: 60, {ONE_TYPE}}}}}
  - name: ssh
    def_mem_per_cpu: 100
    elastic: {{{{provider: ec2, name_prefix: ssh-, max_nodes: 20, idle_seconds: 60, {ONE_TYPE}}}}}
push: {{{{url: "https://127.0.0.1:{{port}}", host: 127.0.0.1, port: {{port}}}}}}
"""

pytestmark = [pytest.mark.kill, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def options(share: Path) -> tuple[str, ...]:
    """Root's machines have files of their own: what is read here in the end has travelled."""
    return () if os.getuid() else ("--private", str(share))


@pytest.fixture
def gateway(preloaded: Preloaded, lab: Running) -> Iterator[Service]:
    with boxed(preloaded, lab, idle=60, more=PUSHING.format(port=free_port())) as made:
        yield made


@pytest.fixture
def work(share: Path) -> Path:
    made = share / "work"
    (made / "lines").mkdir(parents=True)
    (made / "job.sh").write_text(SCRIPT)
    return made


def live(gateway: Service) -> int:
    return int(gateway.rows("select count(*) from jobs where over = 0")[0][0])


VICTIMS = {"agent": agents, "sshd": sessions} | ({"poster": posters} if "push" in WAYS else {})
KINDS = (*VICTIMS, "gateway")


def strike(gateway: Service, lab: Running, chosen: str, dice: random.Random) -> None:
    """As soon as there is one of that kind."""
    if chosen == "gateway":
        gateway.restart()
    else:
        find = VICTIMS[chosen]
        kill(dice.choice(until(lambda: find(lab.state), f"any {chosen}", SETTLE)))


def test_jobs_run_once_and_to_their_own_end_whatever_is_killed(
    gateway: Service, lab: Running, work: Path
) -> None:
    print(f"\nseed {SEED}")
    dice, codes = random.Random(SEED), dict[int, int]()
    struck = drawn(KINDS, ROUNDS, dice)
    for way in WAYS:
        gateway.wait(gateway.wrap("true", "-p", way), "COMPLETED")
    for chosen in struck:
        while live(gateway) < LIVE:
            code, pause = dice.choice([0, 0, 3]), dice.choice([0, 0.02, 0.1])
            options = "-p", dice.choice(WAYS), "-o", "%j.out"
            words = (str(len(codes)), str(pause), str(code))
            codes[gateway.submit(*options, "job.sh", *words, cwd=work)] = code
        time.sleep(dice.uniform(0, 2))
        strike(gateway, lab, chosen, dice)
    until(lambda: not live(gateway), "the end of all jobs", SETTLE)
    print(struck, len(codes), "jobs")
    every_line = "".join(f"{line}\n" for line in range(1, LINES + 1))
    for number, (job, code) in enumerate(codes.items()):
        assert gateway.exit(job) == (code, 0), gateway.job(job)
        assert (work / f"{job}.out").read_text() == every_line
        assert (work / f"lines/{number}").read_text() == "0\n"
    assert not list(work.rglob("*.spz-*")), "nobody but the jobs wrote there"
