"""What an operator sees of EC2: `spz check`, `spz sweep`, ceilings, refusals, as processes."""

import json
from collections.abc import Iterator

import pytest

from broker.providers.ec2.queues import PATTERN, arn_of
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Ran, Service, service
from tests.lab.boxed import PATIENCE, SPZ
from tests.lab.running import CREDENTIALS, Running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
CONFIG = """\
cluster: boxed
kill_wait: 1
partitions:
  - name: ec2
    default: true
    def_mem_per_cpu: 100
    elastic: {provider: ec2, max_nodes: 4, idle_seconds: 1, instance_types: [m7i.large],
              regions: [us-east-1, eu-west-1]}
ceiling: {usd_per_hour: 0.15}
"""


@pytest.fixture(scope="module")
def queue(lab: Running) -> str:
    """The URL of one that EventBridge fills with warnings of interruptions."""
    sqs, events = lab.client("sqs"), lab.client("events")
    url = str(sqs.create_queue(QueueName="skypurza-test")["QueueUrl"])
    arn = arn_of(url, "us-east-1", partition="aws")
    sender = {"Service": "events.amazonaws.com"}
    lets = {"Effect": "Allow", "Principal": sender, "Action": "sqs:SendMessage", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [lets]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    events.put_rule(Name="warnings", EventPattern=PATTERN)
    events.put_targets(Rule="warnings", Targets=[{"Id": "1", "Arn": arn}])
    return url


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded, lab: Running, queue: str) -> Iterator[Service]:
    more = f"  ssh_from: [127.0.0.0/8]\n  interruption_queues: {{us-east-1: '{queue}'}}\n"
    config = CONFIG + lab.aws() + more
    with service(preloaded, config, environ=CREDENTIALS) as made:
        yield made


def spz(gateway: Service, *words: str) -> Ran:
    environ = {**gateway.variables(), "HOME": str(gateway.work), **CREDENTIALS}
    return gateway.run(SPZ, *words, env=environ)


def test_check_says_of_each_thing_that_it_is_right(gateway: Service, lab: Running) -> None:
    done = spz(gateway, "check", "--json")
    found = {one["name"]: one for one in json.loads(done.out)}
    assert "aws credentials" in found, done
    assert [one for one in found.values() if not one["good"]] == []
    assert done.code == 0
    for region in ("us-east-1", "eu-west-1"):
        assert "use1-az" in found["us-east-1 network"]["text"]
        for what in ("network", "images", "permissions", "quotas"):
            assert f"{region} {what}" in found
    assert "filled by rule warnings" in found["us-east-1 interruptions"]["text"]
    assert lab.machines() == []
    ec2 = lab.client()
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
    assert ec2.describe_volumes()["Volumes"] == []


def test_check_says_how_to_ask_for_a_quota_that_is_nothing(gateway: Service, lab: Running) -> None:
    lab.set("quota", code="L-1216C47A", region="eu-west-1", vcpus=0)
    done = spz(gateway, "check")
    lab.set("clear")
    assert done.code == 1
    assert "FAIL  eu-west-1 quotas: vCPUs: Standard on-demand 0 (L-1216C47A)" in done.out
    assert "--region eu-west-1 --quota-code L-1216C47A" in done.out


def test_a_ceiling_keeps_a_second_machine_from_being_bought(gateway: Service) -> None:
    first = gateway.wrap("sleep 60", "--exclusive")
    gateway.wait(first, "RUNNING")
    second = gateway.wrap("true", "--exclusive")

    def reason() -> str:
        return gateway.run("squeue", "-h", "-j", str(second), "-o", "%r").out.strip()

    until(lambda: reason() == "AssocGrpBilling", "the reason", PATIENCE)
    told = gateway.run("scontrol", "show", "job", str(second)).out
    told_of = "ceiling of the site: 0.109087 of 0.150000 USD an hour in use"
    assert told_of in told, "with its disk and address"
    gateway.run("scancel", str(second), str(first))
    gateway.wait(first, "CANCELLED")


def test_refusals_are_among_the_reasons_of_sinfo(gateway: Service, lab: Running) -> None:
    for region in ("us-east-1", "eu-west-1"):
        lab.set("rule", region=region)
    until(lambda: not lab.living() or None, "idle machines to be let go", PATIENCE)
    job = gateway.wrap("true")

    def told() -> str:
        return gateway.run("sinfo", "-R").out

    until(lambda: "m7i.large,on-demand until" in told() or None, told, PATIENCE)
    gateway.run("scancel", str(job))
    lab.set("clear")


def test_a_sweep_finds_machines_of_this_site_in_any_region(gateway: Service, lab: Running) -> None:
    ec2 = lab.client("ec2", "ap-south-1")
    site = next((gateway.home / "ec2").glob("site.key")).read_text().split()[0]
    tags = [
        {"Key": "skypurza:site", "Value": site},
        {"Key": "skypurza:nodes", "Value": "ec2-1.1"},
    ]
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    image = lab.client("ssm", "ap-south-1").get_parameter(Name=name)["Parameter"]["Value"]
    foreign = [{"Key": "skypurza:site", "Value": "another"}, *tags[1:]]
    stray, others = (
        ec2.run_instances(
            ImageId=image,
            InstanceType="m7i.large",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": borne}],
        )["Instances"][0]["InstanceId"]
        for borne in (tags, foreign)
    )
    volume = ec2.create_volume(
        AvailabilityZone="ap-south-1a",
        Size=1,
        TagSpecifications=[{"ResourceType": "volume", "Tags": tags}],
    )["VolumeId"]
    assert stray not in spz(gateway, "sweep", "--dry-run").out
    looked = until(lambda: _finds(spz(gateway, "sweep", "--dry-run", "--all"), stray), stray)
    assert looked.code == 1
    assert f"volume {volume} in ap-south-1" in looked.out
    assert spz(gateway, "sweep", "--all").code == 0
    assert (
        ec2.describe_volumes(Filters=[{"Name": "tag:skypurza:site", "Values": [site]}])["Volumes"]
        == []
    )
    ends = ("shutting-down", "terminated")
    states = {machine["id"]: machine["state"] for machine in lab.machines()}
    assert states[stray] in ends
    assert states[others] not in ends, "another site's machine of the same name is not ours"


def _finds(done: Ran, machine: str) -> Ran | None:
    assert not done.err, done
    return done if machine in done.out else None
