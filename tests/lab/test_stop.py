"""Clusters of the box's machines: stopped and started, made to a task's wishes, what they cost."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Preloaded
from tests.e2e.terminal import Terminal
from tests.lab.boxed import ONE_TYPE, PATIENCE, billed, boxed, nodes_gone, posted
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_a_stopped_cluster_keeps_its_disk_and_costs_its_volume(
    preloaded: Preloaded, lab: Running
) -> None:
    home = TemporaryDirectory(prefix="spz", dir="/tmp")
    with home as folder, boxed(preloaded, lab) as gateway:
        since = len(lab.get("bill")["lines"])
        spz = Terminal(gateway, Path(folder))
        made = spz("launch", "-y", "-c", "dev", "--cpus", "2", "true")
        assert made.code == 0, made
        (machine,) = lab.living()
        if os.geteuid() == 0 and shutil.which("ssh"):
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
            argv = ["ssh", "-F", f"{folder}/.ssh/config", "dev", "echo", "here"]
            there = subprocess.run(
                argv, env=spz.environ, capture_output=True, check=False, timeout=60
            )
            assert (there.returncode, there.stdout) == (0, b"here\n"), there
        assert spz("stop", "-y", "dev").code == 0
        (kept,) = spz.json("status", "dev")
        assert (kept["status"], kept["micro_usd_per_hour"] > 0) == ("STOPPED", True)
        assert [one["state"] for one in lab.machines() if one["id"] == machine["id"]] == ["stopped"]

        lab.set("capacity", instance_type=machine["instance_type"], machines=0)
        full = spz("start", "-y", "dev")
        assert (full.code, "InsufficientInstanceCapacity" in full.err) == (1, True), full
        assert "`spz start -r dev` asks there until there is room" in full.err
        assert "InsufficientInstanceCapacity" in spz("status").out
        rests = gateway.run("sinfo", "-R", env=gateway.variables()).out
        assert "refused: capacity" in rests and machine["instance_type"] in rests, rests
        lab.set("clear")
        again = spz("start", "-y", "dev")
        assert (again.code, "is up" in again.out) == (0, True), again
        assert [one["id"] for one in lab.living()] == [machine["id"]]
        assert spz("exec", "dev", "echo again").out == "again\n"
        assert spz("down", "-y", "dev").code == 0
        until(lambda: not lab.living(), "the machine's end", PATIENCE)
        until(lambda: nodes_gone(gateway), "the node's end to be written down", PATIENCE)
        assert posted(gateway) == billed(lab, since)


WISHES = """\
resources:
  cpus: 2
  image_id: {{us-east-1: {image}}}
  disk_size: 300
  disk_tier: high
  labels: {{team: nlp}}
  ports: [8080, 9000-9001]
run: echo here
"""
IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"


def test_a_cluster_is_made_of_what_its_task_wishes_and_billed_so(
    preloaded: Preloaded, lab: Running
) -> None:
    ec2, ssm = lab.client("ec2"), lab.client("ssm")
    image = ssm.get_parameter(Name=IMAGE)["Parameter"]["Value"]
    home = TemporaryDirectory(prefix="spz", dir="/tmp")
    with home as folder, boxed(preloaded, lab, ONE_TYPE) as gateway:
        since = len(lab.get("bill")["lines"])
        spz = Terminal(gateway, Path(folder))
        wrong = spz.file("wrong.yaml", WISHES.format(image="ami-0bad"))
        held = spz("launch", "-y", "-c", "held", wrong)
        assert (held.code, "ami-0bad is no image in us-east-1" in held.err) == (1, True), held
        task = spz.file("task.yaml", WISHES.format(image=image))
        made = spz("launch", "-y", "-c", "wish", task)
        assert (made.code, "here" in made.out) == (0, True), made
        (machine,) = lab.living()
        told = ec2.describe_instances(InstanceIds=[machine["id"]])["Reservations"][0]["Instances"]
        tags = {tag["Key"]: tag["Value"] for tag in told[0]["Tags"]}
        assert (told[0]["ImageId"], tags["team"]) == (image, "nlp")
        disk = told[0]["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
        (volume,) = ec2.describe_volumes(VolumeIds=[disk])["Volumes"]
        assert volume["Size"] == 300
        assert _open(ec2, machine["id"]) == [(8080, 8080), (9000, 9001)]
        more = spz("launch", "-y", "-c", "wish", "--ports", "8081", "echo more")
        assert (more.code, "more" in more.out) == (0, True), more
        assert _open(ec2, machine["id"]) == [(8080, 8080), (8081, 8081), (9000, 9001)]
        lines = [f"{port}: {machine['address']}:{port}" for port in (8080, 9000, 9001, 8081)]
        assert spz("status", "--endpoints", "wish").out.splitlines() == lines
        assert spz("down", "-y", "wish").code == 0
        until(lambda: not lab.living(), "the machine's end", PATIENCE)
        until(lambda: nodes_gone(gateway), "the node's end to be written down", PATIENCE)
        assert posted(gateway) == billed(lab, since)


def _open(ec2: Any, machine: str) -> list[tuple[int, int]]:
    """Ports of it that the world reaches."""
    (one,) = ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"]
    groups = [group["GroupId"] for group in one["SecurityGroups"]]
    rules = (
        rule
        for group in ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]
        for rule in group["IpPermissions"]
        if any(source["CidrIp"] == "0.0.0.0/0" for source in rule["IpRanges"])
    )
    return sorted((rule["FromPort"], rule["ToPort"]) for rule in rules)
