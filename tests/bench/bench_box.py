"""What launching costs of itself, on the cloud in a box; `name value unit budget ok|OVER`.

bench_box.py [--rounds N]

Real processes through boto3 and SSH; what the box lets its calls and boots take is taken off. A
refusal is the time from one region's no to the next one's being asked; a start is that from
sbatch to the job's first line.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.running import report
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.lab.boxed import PATIENCE, boxed
from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import Running, running

SPEED = 10
BOOT_SECONDS = (17 + 3) / SPEED
"""What the box lets a machine boot, and its sshd come up."""
REFUSING = ("us-east-1", "us-east-2", "us-west-2")
BUY = "instance_types: [m7i.large], regions: [us-east-1, us-east-2, us-west-2, eu-west-1]"
REFUSAL_BUDGET, START_BUDGET = 0.2, 2.0
LAUNCHES = ("RunInstances", "CreateFleet")


@contextmanager
def site() -> Iterator[tuple[Service, Running]]:
    """A service whose EC2 is a box, that has launched before."""
    preloaded = Preloaded()
    try:
        with running("--speed", str(SPEED)) as lab, boxed(preloaded, lab, BUY) as gateway:
            _done(gateway, lab, "true")
            yield gateway, lab
    finally:
        preloaded.close()


def _done(gateway: Service, lab: Running, script: str) -> None:
    """A job's whole life, and its machine's."""
    gateway.wait(gateway.wrap(script, "--exclusive"), "COMPLETED")
    until(lambda: not lab.living(), "idle machines to be let go", PATIENCE)


def start_seconds(gateway: Service, lab: Running, number: int) -> float:
    """From sbatch to the job's first line, without the boot."""
    began = time.time()
    _done(gateway, lab, f"date +%s.%N > began{number}")
    return float(gateway.file(f"began{number}")) - began - BOOT_SECONDS


def refusal_seconds(gateway: Service, lab: Running) -> float:
    """Of ours for each region that refused, between the first launch that was asked and the last.

    Once for a service: what refused rests, and is not asked first again.
    """
    for region in REFUSING:
        lab.set("rule", region=region)
    began = time.time()
    _done(gateway, lab, "true")
    lab.set("clear")
    calls: list[dict[str, Any]] = [call for call in lab.get("calls") if call["at"] >= began]
    asked = [call["at"] for call in calls if call["action"] in LAUNCHES]
    between = [call for call in calls if asked[0] <= call["at"] < asked[-1]]
    return float(asked[-1] - asked[0] - answering(between)) / (len(asked) - 1)


def answering(calls: list[dict[str, Any]]) -> float:
    """Seconds in which the box worked at one or several of them, which come by time."""
    total, until = 0.0, float("-inf")
    for call in sorted(calls, key=lambda call: float(call["at"])):
        end = call["at"] + call["took"]
        total += max(0.0, end - max(until, call["at"]))
        until = max(until, end)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if not SSHD:
        sys.stdout.write(f"# {NO_SSHD}\n")
        return 0
    with site() as (gateway, lab):
        starts = [start_seconds(gateway, lab, number) for number in range(asked.rounds)]
        refusal = refusal_seconds(gateway, lab)
    told = report("box_refusal", refusal, unit="s", budget=REFUSAL_BUDGET)
    told &= report("box_start", statistics.median(starts), unit="s", budget=START_BUDGET)
    return 0 if told else 1


if __name__ == "__main__":
    sys.exit(main())
