"""Clusters of the box's machines, stopped and started by `spz`: what is on them, what they cost."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.service import Preloaded
from tests.e2e.test_spz import Terminal
from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import Running, running
from tests.lab.test_service import _billed, _nodes_gone, _posted, living, served, settle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def preloaded() -> Iterator[Preloaded]:
    made = Preloaded()
    yield made
    made.close()


@pytest.fixture(scope="module")
def lab() -> Iterator[Running]:
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "20", "--ssh-port", "2226") as made:
        yield made


def test_a_stopped_cluster_keeps_its_disk_and_costs_its_volume(
    preloaded: Preloaded, lab: Running
) -> None:
    home = TemporaryDirectory(prefix="spz", dir="/tmp")
    with home as folder, served(preloaded, lab) as gateway:
        since = len(lab.get("bill")["lines"])
        spz = Terminal(gateway, Path(folder))
        made = spz("launch", "-y", "-c", "dev", "--cpus", "2", "true")
        assert made.code == 0, made
        (machine,) = living(lab)
        if os.geteuid() == 0 and shutil.which("ssh"):
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
            argv = ["ssh", "-F", f"{folder}/.ssh/config", "dev", "echo", "here"]
            there = subprocess.run(
                argv, env=spz.environ, capture_output=True, check=False, timeout=60
            )
            assert (there.returncode, there.stdout) == (0, b"here\n"), there
        assert spz("stop", "-y", "dev").code == 0
        (kept,) = spz.json("status", "dev")["clusters"]
        assert (kept["status"], kept["micro_usd_per_hour"] > 0) == ("STOPPED", True)
        assert [one["state"] for one in lab.machines() if one["id"] == machine["id"]] == ["stopped"]

        lab.set("capacity", instance_type=machine["instance_type"], machines=0)
        full = spz("start", "-y", "dev")
        assert (full.code, "InsufficientInstanceCapacity" in full.err) == (1, True), full
        lab.set("clear")
        again = spz("start", "-y", "dev")
        assert (again.code, "is up" in again.out) == (0, True), again
        assert [one["id"] for one in living(lab)] == [machine["id"]]
        assert spz("exec", "dev", "echo again").out == "again\n"
        assert spz("down", "-y", "dev").code == 0
        settle(lambda: not living(lab), "the machine's end")
        settle(lambda: _nodes_gone(gateway), "the node's end to be written down")
        assert _posted(gateway) == _billed(lab, since)
