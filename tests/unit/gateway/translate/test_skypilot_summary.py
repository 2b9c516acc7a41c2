"""The line that `spz task check` has for a file: what would be launched, and what would not."""

from pathlib import Path

import pytest

from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_summary import summary
from tests.unit.gateway.translate.tasks import SUPPLY

CORPUS = Path(__file__).parents[3] / "tables" / "skypilot"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("hello", "1 node of 8+ vCPUs; run"),
        ("nodes", "ring: 4 nodes of H100:8; run"),
        ("mount-s3-copy", "1 node of 8+ vCPUs; run; 2 mounts"),
        ("envs-required", "1 node of 8+ vCPUs; run; needs --env TOKEN, --env BUCKET"),
        ("pool-range", "pool of 1 workers of L4:1; nothing to run"),
        (
            "volumes",
            "1 node of 8+ vCPUs; run; 2 volumes; refused at launch: volumes./mnt/b: "
            "a volume that goes with its cluster is its root disk",
        ),
        (
            "ordered",
            "1 node of 8+ vCPUs, spot, aws/eu-west-1 else 8+ vCPUs, aws/eu-west-1; run",
        ),
        (
            "group",
            "group pair of 2 tasks: learn (1 node of A10G:1; run) with"
            " watch (1 node of 8+ vCPUs; run)",
        ),
    ],
)
def test_a_file_is_summed_up(name: str, line: str) -> None:
    assert summary(read_file((CORPUS / f"{name}.yaml").read_text("utf-8")), SUPPLY) == line


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ("{accelerators: A100:1}", "A100:1 comes as A100:8"),
        ("{autostop: 10}", "stops after 10 min idle"),
        ("{autostop: {idle_minutes: 1, down: true}}", "goes after 1 min idle"),
        ("{autostop: {idle_minutes: 9, wait_for: jobs}}", "stops after 9 min idle, logins or not"),
        ("{autostop: {idle_minutes: 60, wait_for: none}}", "goes 60 min after its start"),
        ("{disk_size: 1TB}", "disk 1024 GB"),
        ("{disk_tier: high}", "disk high"),
        ("{local_disk: nvme:500+}", "local disk 500 GB"),
        ("{ports: [80, 9000-9010]}", "open 80, 9000-9010"),
        ("{image_id: docker:debian}", "in debian"),
        ("{use_spot: true, job_recovery: failover}", "recovers FAILOVER"),
        (
            "{job_recovery: {max_restarts_on_errors: 3, recover_on_exit_codes: [33, 34]}}",
            "recovers 3 restarts on errors, on exit codes 33, 34",
        ),
        ("{job_recovery: {strategy: null}}", "recovers as usual"),
    ],
)
def test_what_stands_in_resources_is_in_the_line(resources: str, told: str) -> None:
    parts = summary(read_file(f"resources: {resources}\nrun: x"), SUPPLY).split("; ")
    assert told in parts
    assert not any(part.startswith("refused") for part in parts)


def test_a_service_is_told_to_be_run_once() -> None:
    told = summary(read_file("service: {readiness_probe: /, replicas: 2}\nrun: x"), SUPPLY)
    assert told.split("; ")[1:] == ["a service, of which the task itself is run once", "run"]


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ("{accelerators: tpu-v5e-8}", "resources.accelerators: EC2 has no TPUs"),
        ("{infra: aws, accelerators: MI300X:8}", "resources.accelerators: EC2 has no MI300X"),
        (
            "{accelerators: {A1000: 8}}",
            "resources.accelerators: EC2 has no A1000 (did you mean A100?)",
        ),
        ("{accelerators: A100:16}", "resources.accelerators: a machine has at most 8 A100"),
        ("{accelerators: 900GB+}", "resources.accelerators: EC2 has no 900GB+"),
        (
            "{accelerators: [TPU-v5p, MI210]}",
            "resources.accelerators: EC2 has no TPUs; EC2 has no MI210",
        ),
        (
            "{instance_type: g6.4xlarge, accelerators: A10G}",
            "resources.accelerators: g6.4xlarge has no A10G",
        ),
        (
            "{instance_type: n2-standard-8}",
            "resources.instance_type: n2-standard-8 is no type of EC2",
        ),
        (
            "{instance_type: p4d.24xlrge}",
            "resources.instance_type: p4d.24xlrge is no type of EC2 (did you mean p4d.24xlarge?)",
        ),
        ("{infra: aws/westeurope}", "resources.infra: westeurope is no region of AWS"),
        (
            "{region: us-east-1, zone: us-west-2a}",
            "resources.infra: us-west-2a is not in us-east-1",
        ),
        (
            "{any_of: [{infra: gcp}, {accelerators: MI300X}]}",
            "resources.infra: gcp is not served, resources.accelerators: EC2 has no MI300X",
        ),
        ("{image_id: ghcr.io/x/y}", "resources.image_id: ghcr.io/x/y: no image of EC2"),
    ],
)
def test_what_no_machine_of_ec2_can_be_is_refused_with_the_reason(
    resources: str, told: str
) -> None:
    line = summary(read_file(f"resources: {resources}\nrun: x"), SUPPLY)
    assert line.partition("refused at launch: ")[2] == told


@pytest.mark.parametrize(
    ("resources", "what", "left"),
    [
        (
            "{any_of: [{infra: gcp, accelerators: L4}, {infra: aws, accelerators: A10G}]}",
            "1 node of A10G:1, aws",
            "L4:1, gcp (gcp is not served)",
        ),
        (
            "{cpus: 2+, ordered: [{region: us-east-1}, {region: us-central1}, {cloud: azure}]}",
            "1 node of 2+ vCPUs, */us-east-1",
            "2+ vCPUs, */us-central1 (us-central1 is no region of AWS), "
            "2+ vCPUs, azure (azure is not served)",
        ),
        (
            "{accelerators: {tpu-v5e-1: 1, L4: 1}}",
            "1 node of tpu-v5e-1:1/L4:1",
            "tpu-v5e-1:1 (EC2 has no TPUs)",
        ),
        (
            "{any_of: [{infra: gcp, accelerators: tpu-v4-8, accelerator_args: {tpu_vm: true}},"
            " {accelerators: H100:8}]}",
            "1 node of H100:8",
            "tpu-v4-8:1, gcp (gcp is not served)",
        ),
    ],
)
def test_alternatives_that_are_dropped_are_named_with_the_reason(
    resources: str, what: str, left: str
) -> None:
    parts = summary(read_file(f"resources: {resources}\nrun: x"), SUPPLY).split("; ")
    assert parts == [what, "run", f"left out: {left}"]
