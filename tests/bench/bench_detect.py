"""How soon a managed job is known to have lost its machine, in the cloud in a box.

bench_detect.py [--only NAME...]

`detect-NAME seconds s budget ok|OVER`: from what happens to the machine until `spz jobs queue` says
so. The box goes at thirty times EC2's speed, the service at its own. Needs sshd and root.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from gateway.sdk.client import Client
from tests.bench.running import report, service
from tests.e2e.agents import until
from tests.lab.boxed import CONFIG
from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import CREDENTIALS, Running, running

MOST_SECONDS = 30.0
PATIENCE = 120.0
NOTICE = 30 * 30
"""Seconds of the box; EC2 gives two minutes."""
BUY = "instance_types: [m7i.large], spot: {spot}"


def killed(lab: Running, machine: str) -> None:
    """Its hardware fails."""
    lab.set("kill", id=machine)


def terminated(lab: Running, machine: str) -> None:
    """Somebody ends it in the console."""
    lab.client("ec2").terminate_instances(InstanceIds=[machine])


def stopped(lab: Running, machine: str) -> None:
    """Somebody stops it there."""
    lab.client("ec2").stop_instances(InstanceIds=[machine])


def noticed(lab: Running, machine: str) -> None:
    """It is to be taken back."""
    lab.set("interrupt", id=machine, notice=NOTICE)


LOSSES: Mapping[str, tuple[bool, Callable[[Running, str], None]]] = {
    "killed": (False, killed),
    "terminated": (False, terminated),
    "stopped": (False, stopped),
    "noticed": (True, noticed),
}
"""What happens to a machine, and whether it has to be a spot one."""


def seconds(lab: Running, lose: Callable[[Running, str], None], *, spot: bool) -> float:
    """Until it is known that the machine of a running job is lost."""
    config = CONFIG.format(idle=2, buy=BUY.format(spot=str(spot).lower()), more="") + lab.aws()
    with service(lambda _home: CREDENTIALS, config) as made:
        client = Client(made.socket)
        job = launched(made.socket)

        def status() -> str:
            found = client.get("/v1/managed")["jobs"]
            return str(next(one["status"] for one in found if one["id"] == job))

        until(lambda: status() == "RUNNING", "the job to run", PATIENCE)
        (machine,) = lab.living()
        time.sleep(1)
        began = time.monotonic()
        lose(lab, str(machine["id"]))
        until(lambda: status() != "RUNNING", "the loss to be known", PATIENCE)
        return time.monotonic() - began


def launched(socket: Path) -> int:
    """A managed job that runs as long as its machine."""
    spz = Path(sys.executable).parent / "spz"
    done = subprocess.run(
        [spz, "jobs", "launch", "-y", "-d", "-o", "json", "--cpus", "2", "sleep 3000"],
        env={**os.environ, "SKYPURZA_SOCKET": str(socket), "HOME": str(socket.parent)},
        cwd=socket.parent,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip())
    return int(json.loads(done.stdout)["root"])


def main() -> int:
    parser = argparse.ArgumentParser(description="how soon a lost machine is known")
    parser.add_argument("--only", nargs="*", choices=sorted(LOSSES))
    asked = parser.parse_args()
    if not SSHD or os.geteuid() != 0:
        sys.stdout.write(f"SKIP: {NO_SSHD if not SSHD else 'needs root'}\n")
        return 0
    fine = True
    for name, (spot, lose) in LOSSES.items():
        if asked.only and name not in asked.only:
            continue
        with running("--speed", "30") as lab:
            took = seconds(lab, lose, spot=spot)
        fine &= report(f"detect-{name}", took, unit="s", budget=MOST_SECONDS)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
