"""SkyPilot's managed jobs on machines of EC2: lost in one region, they go on in the next."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.model.job import JobState
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.lab.boxed import (
    ONE_TYPE,
    PATIENCE,
    SPZ,
    billed,
    boxed,
    nodes_gone,
    posted,
    saved,
)
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.timeout(300)]
NOTICE = 30 * 30
"""Seconds of the box, thirty of ours: it hears of it long before."""
TASK = """\
name: fit
resources: {use_spot: true, cpus: 2+, job_recovery: EAGER_NEXT_REGION}
workdir: .
run: |
  #SPZ checkpoint=ckpt every=0:01
  n=$(cat ckpt/n 2>/dev/null || echo 0)
  echo "$SKYPILOT_TASK_ID from $n in $(echo $SKYPILOT_CLUSTER_INFO | grep -o 'region[^,]*')"
  echo $((n + 1)) > ckpt/n
  if [ "$SPZ_RESTART_COUNT" != 2 ]; then sleep 600; fi
"""


@pytest.fixture(scope="module")
def options(share: Path) -> tuple[str, ...]:
    return ("--private", str(share))


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded, lab: Running) -> Iterator[Service]:
    with boxed(preloaded, lab, f"{ONE_TYPE}, spot: true, fetch_seconds: 1") as made:
        yield made


class Terminal:
    """Somebody who types `spz` in their project."""

    def __init__(self, gateway: Service, home: Path) -> None:
        self.gateway, self.home = gateway, home
        (home / "project").mkdir(parents=True)

    def __call__(self, *argv: str) -> Any:
        variables = {**self.gateway.variables(), "HOME": str(self.home)}
        return self.gateway.run(SPZ, *argv, cwd=self.home / "project", env=variables)

    def job(self, number: int) -> dict[str, Any]:
        found = json.loads(self("jobs", "queue", "-a", "-o", "json").out)
        return next(one for one in found if one["id"] == number)


def machine_of(gateway: Service, job: int) -> dict[str, Any]:
    """The machine on which it saved something lately."""
    shares = gateway.job(job).shares
    found = gateway.rows("select doc from nodes where gone = 0 and name = ?", shares[0].node)
    return dict(json.loads(found[0][0])["machine"])


def lose(spz: Terminal, lab: Running, job: int, *, attempt: int) -> str:
    """Takes its machine back once what it saved there is copied; the region."""
    until(lambda: saved(spz.gateway, job) >= attempt, "a checkpoint of it", PATIENCE)
    until(lambda: _runs(spz.gateway, job), "it to run", PATIENCE)
    machine = machine_of(spz.gateway, job)
    assert lab.set("interrupt", id=machine["id"], notice=NOTICE) == [machine["id"]]
    until(lambda: not _runs(spz.gateway, job), "it to be pushed out", PATIENCE)
    return str(machine["region"])


def _runs(gateway: Service, job: int) -> bool:
    record = gateway.job(job)
    return record.state is JobState.RUNNING and not (record.configuring or record.completing)


def test_a_spot_job_lost_in_two_regions_succeeds_in_a_third_from_its_checkpoint(
    gateway: Service, share: Path, lab: Running
) -> None:
    spz = Terminal(gateway, share / "home")
    since = len(lab.get("bill")["lines"])
    (spz.home / "project" / "fit.yaml").write_text(TASK)
    job = json.loads(spz("jobs", "launch", "-y", "-d", "-o", "json", "fit.yaml").out)["root"]
    regions = [lose(spz, lab, job, attempt=number) for number in (1, 2)]
    gateway.wait(job, "COMPLETED")
    assert (spz.job(job)["status"], spz.job(job)["restarts"]) == ("SUCCEEDED", 2)

    text = spz("jobs", "logs", str(job), "--no-follow").out.splitlines()
    starts = [line.split() for line in text if " from " in line]
    assert len({start[0] for start in starts}) == 1, "one task id"
    assert [start[2] for start in starts] == ["0", "1", "2"]
    assert len({start[-1] for start in starts}) == 3, "three regions"
    assert [region in start[-1] for region, start in zip(regions, starts, strict=False)] == [
        True,
        True,
    ]
    told = spz("jobs", "logs", str(job), "--attempt", "2").out
    assert " from 1 " in told and " from 2 " not in told

    shown = gateway.run("sacct", "-D", "-n", "-X", "-P", "-o", "State", "-j", str(job))
    assert shown.out.split() == ["PREEMPTED", "PREEMPTED", "COMPLETED"]
    until(lambda: not lab.living(), "idle machines to be let go", PATIENCE)
    until(lambda: nodes_gone(gateway), "the nodes' end to be written down", PATIENCE)
    assert posted(gateway) == billed(lab, since)


SEVERAL = """\
name: ring
num_nodes: 2
resources: {cpus: 2+}
run: |
  echo "node $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES on $(echo "$SKYPILOT_NODE_IPS" | wc -l)"
"""


def test_logs_of_each_node_of_a_managed_job_stay_when_its_machines_are_gone(
    gateway: Service, share: Path, lab: Running
) -> None:
    spz = Terminal(gateway, share / "ring")
    (spz.home / "project" / "ring.yaml").write_text(SEVERAL)
    job = json.loads(spz("jobs", "launch", "-y", "-d", "-o", "json", "ring.yaml").out)["root"]
    gateway.wait(job, "COMPLETED")
    until(lambda: not lab.living(), "idle machines to be let go", PATIENCE)
    said = [f"node {rank} of 2 on 2" for rank in (0, 1)]
    every = spz("jobs", "logs", str(job), "--no-follow").out.splitlines()
    assert sorted(every) == [f"(head, rank=0) {said[0]}", f"(worker1, rank=1) {said[1]}"]
    for rank, line in enumerate(said):
        one = spz("jobs", "logs", str(job), "--worker", str(rank), "--no-follow")
        assert (one.code, one.out) == (0, f"{line}\n")
    none = spz("jobs", "logs", str(job), "--worker", "2", "--no-follow")
    assert (none.code, none.out) != (0, ""), "it has no third node"
    assert spz("jobs", "logs", str(job), "-s").code == 0
    copies = sorted((spz.home / "project" / "sky_logs").glob("*.log"))
    assert [path.read_text() for path in copies] == [f"{line}\n" for line in said]
