"""Volumes of EBS: made, attached, taken off and deleted by calls of EC2, and billed by the hour."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from broker.model.build import Build
from broker.model.rates import PUBLISHED
from broker.optimize.costs import hourly
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.e2e.terminal import Terminal
from tests.lab.boxed import ONE_TYPE, PATIENCE, boxed
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
ZONE = "use1-az2"
TASK = """\
resources: {cpus: 2}
volumes: {~/data: data}
run: cat ~/data/note; echo here > ~/data/note
"""


def volumes(lab: Running) -> list[dict[str, Any]]:
    """What EC2 tells of them."""
    named = [{"Name": "tag-key", "Values": ["skypurza:volume"]}]
    return list(lab.client("ec2").describe_volumes(Filters=named)["Volumes"])


def show_on_machines(devices: Path, id: str) -> None:
    """A folder stands for the disk: nothing in the box has any."""
    place = devices / f"nvme-Amazon_Elastic_Block_Store_{id.replace('-', '', 1)}"
    place.mkdir(parents=True)
    if os.geteuid() == 0:
        place.chmod(0o777)


def paid(gateway: Service) -> list[dict[str, Any]]:
    rows = gateway.rows("select doc from ledger where doc like '%volume-data%'")
    return [json.loads(doc) for (doc,) in rows]


def test_a_volume_follows_its_cluster_through_stop_and_down_and_is_deleted_by_name(
    preloaded: Preloaded, lab: Running
) -> None:
    with TemporaryDirectory(prefix="spz", dir="/tmp") as folder:
        devices = Path(folder) / "devices"
        with boxed(preloaded, lab, ONE_TYPE, aws=f"  devices: {devices}\n") as gateway:
            spz = Terminal(gateway, Path(folder))
            spz.file("t.yaml", TASK)
            asked = ("--name", "data", "--size", "50Gi", "--infra", f"aws/us-east-1/{ZONE}")
            made = spz("volumes", "apply", "-y", *asked)
            assert (made.code, made.out) == (0, f"Created volume data in us-east-1/{ZONE}\n"), made
            (disk,) = volumes(lab)
            assert (disk["Size"], disk["VolumeType"], disk["State"]) == (50, "gp3", "available")
            show_on_machines(devices, disk["VolumeId"])

            ran = spz("launch", "-y", "-c", "dev", "t.yaml")
            assert (ran.code, "No such file" in ran.out) == (0, True), ran
            (machine,) = lab.living()
            told = lab.client("ec2").describe_instances(InstanceIds=[machine["id"]])
            place = told["Reservations"][0]["Instances"][0]["Placement"]
            (there,) = volumes(lab)[0]["Attachments"]
            assert there["InstanceId"] == machine["id"]
            assert place["AvailabilityZone"] == disk["AvailabilityZone"]
            assert spz("stop", "-y", "dev").code == 0
            until(lambda: not volumes(lab)[0]["Attachments"], "it to be taken off", PATIENCE)
            assert spz("start", "-y", "dev").code == 0
            assert spz("exec", "dev", "cat ~/data/note").out == "here\n"

            assert spz("down", "-y", "dev").code == 0
            until(lambda: volumes(lab)[0]["State"] == "available", "it to be free", PATIENCE)
            assert "dev" not in spz("volumes", "ls").out
            assert spz("volumes", "delete", "-y", "data").code == 0
            assert volumes(lab) == []
            entries = paid(gateway)
            seconds = sum(one["at"] - one["since"] for one in entries if one["why"] == "run")
            price = hourly(Build().volume(50), "us-east-1", PUBLISHED)
            assert sum(one["cost"] for one in entries) == price * max(60, seconds) // 3600
            assert {one.get("job") for one in entries} == {None}
