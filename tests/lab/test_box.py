"""The box as boto3 sees it: what moto alone does not do. Time passes when the test says so."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from broker.optimize.bundled import bundled
from broker.optimize.gpus import gpu_key
from broker.providers.ec2.clients import BotoApi
from broker.providers.ec2.figures import type_row
from broker.providers.ec2.interruptions import WARNING, Interruptions
from tests.lab.running import CREDENTIALS, Ways, here

pytestmark = pytest.mark.e2e
AL2023 = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
GPU_IMAGE = "base-oss-nvidia-driver-gpu-amazon-linux-2023"
DLAMI = f"/aws/service/deeplearning/ami/x86_64/{GPU_IMAGE}/latest/ami-id"


class Time:
    now = 1_800_000_000.0


@pytest.fixture(scope="module")
def time() -> Time:
    return Time()


@pytest.fixture(scope="module")
def _box(time: Time) -> Iterator[Ways]:
    with here(lambda: time.now, boot=17, stop=30, visible=2) as ways:
        yield ways


@pytest.fixture
def box(_box: Ways, time: Time) -> Ways:
    """As it is at the start, but that former machines are past."""
    _box.set("clear")
    _box.set("weather", refuse=0, throttle=0, lose=0, hang_seconds=0, seed=0)
    for machine in _box.get("state")["machines"]:
        _box.set("kill", id=machine["id"])
    time.now += 5000
    return _box


def image(box: Ways, name: str = AL2023, region: str = "us-east-1") -> str:
    answer = box.client("ssm", region).get_parameter(Name=name)
    return str(answer["Parameter"]["Value"])


def launch(box: Ways, region: str = "us-east-1", **asked: Any) -> list[dict[str, Any]]:
    spec: dict[str, Any] = {
        "ImageId": image(box, region=region),
        "InstanceType": "m7i.large",
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceInitiatedShutdownBehavior": "terminate",
    }
    return list(box.client(region=region).run_instances(**(spec | asked))["Instances"])


def code(caught: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def shown(box: Ways, *ids: str) -> dict[str, dict[str, Any]]:
    answer = box.client().describe_instances(InstanceIds=list(ids))
    return {i["InstanceId"]: i for r in answer["Reservations"] for i in r["Instances"]}


def test_a_new_instance_is_not_found_for_a_while_then_pending_then_running(
    box: Ways, time: Time
) -> None:
    (made,) = launch(box)
    id = made["InstanceId"]
    for call in ("describe_instances", "terminate_instances", "describe_instance_status"):
        with pytest.raises(ClientError) as caught:
            getattr(box.client(), call)(InstanceIds=[id])
        assert code(caught) == ("InvalidInstanceID.NotFound", 400)
    seen = []
    for _ in range(4):
        time.now += 5
        seen.append(shown(box, id)[id]["State"]["Name"])
    assert seen == ["pending", "pending", "pending", "running"]
    assert shown(box, id)[id]["PrivateIpAddress"].startswith("127.")


def test_terminating_takes_its_time_and_what_was_attached_goes(box: Ways, time: Time) -> None:
    disk = {"VolumeSize": 30, "VolumeType": "gp3", "DeleteOnTermination": True}
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "site", "Value": "gone"}]}]
    (made,) = launch(
        box,
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": disk}],
        TagSpecifications=tags,
    )
    ours = [{"Name": "tag:site", "Values": ["gone"]}]
    time.now += 20
    assert len(box.client().describe_volumes(Filters=ours)["Volumes"]) == 1
    (change,) = box.client().terminate_instances(InstanceIds=[made["InstanceId"]])[
        "TerminatingInstances"
    ]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (
        "running",
        "shutting-down",
    )
    time.now += 40
    gone = shown(box, made["InstanceId"])[made["InstanceId"]]
    assert gone["State"]["Name"] == "terminated"
    assert gone["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert "PrivateIpAddress" not in gone
    assert box.client().describe_volumes(Filters=ours)["Volumes"] == []


def test_counts_between_the_bounds_follow_the_room(box: Ways) -> None:
    box.set("capacity", instance_type="m7i.large", machines=3)
    assert len(launch(box, MinCount=2, MaxCount=5)) == 3
    with pytest.raises(ClientError) as caught:
        launch(box)
    assert code(caught) == ("InsufficientInstanceCapacity", 500)


def test_another_zone_is_taken_where_none_was_asked_for(box: Ways) -> None:
    first = launch(box)[0]["Placement"]["AvailabilityZone"]
    zones = box.client().describe_availability_zones(ZoneNames=[first])["AvailabilityZones"]
    box.set("capacity", zone=zones[0]["ZoneId"], machines=0)
    assert launch(box)[0]["Placement"]["AvailabilityZone"] != first
    with pytest.raises(ClientError) as caught:
        launch(box, Placement={"AvailabilityZone": first})
    assert code(caught)[0] == "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"InstanceType": "m7i.gigantic"}, ("InvalidParameterValue", 400)),
        ({"ImageId": "ami-00000000000000000"}, ("InvalidAMIID.NotFound", 400)),
        ({"SubnetId": "subnet-0"}, ("InvalidSubnetID.NotFound", 400)),
        ({"SecurityGroupIds": ["sg-0"]}, ("InvalidGroup.NotFound", 400)),
        ({"Placement": {"GroupName": "none"}}, ("InvalidPlacementGroup.Unknown", 400)),
        ({"UserData": "x" * 16385}, ("InvalidParameterValue", 400)),
        ({"DryRun": True}, ("DryRunOperation", 412)),
    ],
)
def test_a_launch_that_cannot_be_is_refused_in_ec2s_words(
    box: Ways, asked: dict[str, Any], expected: tuple[str, int]
) -> None:
    with pytest.raises(ClientError) as caught:
        launch(box, **asked)
    assert code(caught) == expected


def test_quotas_are_told_and_kept(box: Ways) -> None:
    box.set("quota", code="L-1216C47A", vcpus=3)
    told = box.client("service-quotas").get_service_quota(
        ServiceCode="ec2", QuotaCode="L-1216C47A"
    )["Quota"]
    assert told["Value"] == 3
    launch(box)
    with pytest.raises(ClientError) as caught:
        launch(box)
    assert code(caught) == ("VcpuLimitExceeded", 400)
    assert launch(box, region="eu-west-1")
    assert launch(box, InstanceMarketOptions={"MarketType": "spot"})


def test_a_reservation_gives_what_it_has_at_no_price(box: Ways) -> None:
    zone = {"instance_type": "m7i.large", "zone": "use1-az1", "count": 1}
    box.set("reservation", id="cr-1", match="targeted", **zone)
    box.set("reservation", id="cr-2", block=True, ends_at=2_000_000_000, **zone)
    box.set("capacity", machines=0)
    place = {"Placement": {"AvailabilityZoneId": "use1-az1"}}

    def into(id: str, **more: Any) -> list[dict[str, Any]]:
        target = {"CapacityReservationTarget": {"CapacityReservationId": id}}
        return launch(box, CapacityReservationSpecification=target, **place, **more)

    into("cr-1")
    into("cr-2", InstanceMarketOptions={"MarketType": "capacity-block"})
    told = box.client().describe_capacity_reservations()["CapacityReservations"]
    assert [one["AvailableInstanceCount"] for one in told] == [0, 0]
    assert [one["ReservationType"] for one in told] == ["default", "capacity-block"]
    assert {one["micro_usd_per_hour"] for one in box.get("bill")["lines"][-2:]} == {0}
    for id, refused in (("cr-1", "ReservationCapacityExceeded"), ("cr-2", "Invalid")):
        with pytest.raises(ClientError, match=refused):
            into(id)


def test_a_launch_falls_into_an_open_reservation_unless_it_wants_none(box: Ways) -> None:
    box.set("reservation", id="cr-1", instance_type="m7i.large", zone="use1-az1", count=1)
    place = {"Placement": {"AvailabilityZoneId": "use1-az1"}}
    none = {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    for wishes in (none, {}, {}):
        launch(box, **place, **wishes)
    prices = [line["micro_usd_per_hour"] for line in box.get("bill")["lines"][-3:]]
    assert [price > 0 for price in prices] == [True, False, True]


def test_eventbridge_puts_interruptions_into_a_queue_that_is_read(
    box: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    sqs, events = box.client("sqs"), box.client("events")
    url = sqs.create_queue(QueueName="skypurza-test")["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    pattern = {"source": ["aws.ec2"], "detail-type": [WARNING]}
    events.put_rule(Name="interruptions", EventPattern=json.dumps(pattern))
    target = {"Id": "queue", "Arn": asked["Attributes"]["QueueArn"]}
    events.put_targets(Rule="interruptions", Targets=[target])
    detail = json.dumps({"instance-id": "i-0abc", "instance-action": "terminate"})
    told = {"Source": "aws.ec2", "DetailType": WARNING, "Detail": detail}
    events.put_events(Entries=[told])
    known = Interruptions(BotoApi(endpoint_url=box.endpoint), {"us-east-1": url})
    (notice,) = known.read()
    assert notice.instance == "i-0abc"
    known.done(notice)
    assert list(known.read()) == []


def test_the_same_token_never_buys_twice_and_takes_no_other_arguments(box: Ways) -> None:
    first, again = launch(box, ClientToken="t"), launch(box, ClientToken="t")
    assert [i["InstanceId"] for i in first] == [i["InstanceId"] for i in again]
    with pytest.raises(ClientError) as caught:
        launch(box, ClientToken="t", InstanceType="c7i.large")
    assert code(caught) == ("IdempotentParameterMismatch", 400)
    assert len([m for m in box.get("state")["machines"] if m["state"] == "pending"]) == 1


def test_a_lost_answer_has_bought_and_the_token_finds_it(box: Ways) -> None:
    asked = {"ImageId": image(box), "ClientToken": "lost"}
    box.set("weather", lose=1.0)
    with pytest.raises(BotoCoreError):
        launch(box, **asked)
    box.set("weather", lose=0.0)
    (made,) = launch(box, **asked)
    (held,) = [m for m in box.get("state")["machines"] if m["state"] == "pending"]
    assert held["id"] == made["InstanceId"]
    assert [c["outcome"] for c in box.get("calls") if c["action"] == "RunInstances"][-2:] == [
        "lost",
        "ok",
    ]


def test_throttled_calls_are_refused_with_503(box: Ways) -> None:
    box.set("weather", throttle=1.0)
    with pytest.raises(ClientError) as caught:
        box.client().describe_instances()
    assert code(caught) == ("RequestLimitExceeded", 503)


def test_a_rule_refuses_with_the_code_it_is_given(box: Ways) -> None:
    box.set("rule", code="OptInRequired", region="us-east-1", times=1)
    with pytest.raises(ClientError) as caught:
        launch(box)
    assert code(caught) == ("OptInRequired", 403)
    assert launch(box)


def test_a_spot_machine_is_taken_back_after_a_notice(box: Ways, time: Time) -> None:
    (made,) = launch(box, InstanceMarketOptions={"MarketType": "spot"})
    assert made["InstanceLifecycle"] == "spot"
    assert made["SpotInstanceRequestId"].startswith("sir-")
    id, notice = (
        made["InstanceId"],
        f"imds/{made['InstanceId']}/latest/meta-data/spot/instance-action",
    )
    time.now += 20
    with pytest.raises(HTTPError):
        box.get(notice)
    assert box.set("interrupt", id=id) == [id]
    assert box.get(notice)["action"] == "terminate"
    time.now += 121
    taken = shown(box, id)[id]
    assert taken["State"]["Name"] == "shutting-down"
    assert taken["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    (line,) = [line for line in box.get("bill")["lines"] if line["id"] == id]
    assert (line["micro_usd"], line["taken_back"]) == (0, True)


def test_a_spot_price_above_the_most_that_is_paid_is_refused(box: Ways) -> None:
    options = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.0001"}}
    with pytest.raises(ClientError) as caught:
        launch(box, InstanceMarketOptions=options)
    assert code(caught)[0] == "SpotMaxPriceTooLow"


def fleet(box: Ways, overrides: list[dict[str, Any]], count: int, **options: Any) -> dict[str, Any]:
    ec2 = box.client()
    names = [t["LaunchTemplateName"] for t in ec2.describe_launch_templates()["LaunchTemplates"]]
    if "workers" not in names:
        data = {"ImageId": image(box), "InstanceInitiatedShutdownBehavior": "terminate"}
        ec2.create_launch_template(LaunchTemplateName="workers", LaunchTemplateData=data)
    named = {"LaunchTemplateName": "workers", "Version": "$Latest"}
    return dict(
        ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[{"LaunchTemplateSpecification": named, "Overrides": overrides}],
            TargetCapacitySpecification={
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": "spot",
            },
            SpotOptions=options,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": "site", "Value": "fleet"}]}
            ],
        )
    )


def given(answer: dict[str, Any]) -> dict[str, int]:
    return {part["InstanceType"]: len(part["InstanceIds"]) for part in answer.get("Instances", ())}


def test_a_fleet_gives_what_its_pools_have_and_says_what_refused(box: Ways) -> None:
    box.set("capacity", instance_type="c7i.large", machines=1)
    box.set("capacity", instance_type="m7i.large", machines=1)
    here = [
        {"InstanceType": kind, "AvailabilityZone": "us-east-1a"}
        for kind in ("c7i.large", "m7i.large")
    ]
    answer = fleet(box, here, 3, AllocationStrategy="lowest-price")
    assert given(answer) == {"c7i.large": 1, "m7i.large": 1}
    box.set("rule", instance_type="c7i.large")
    box.set("capacity", instance_type="m7i.large", machines=9)
    answer = fleet(box, here, 2, AllocationStrategy="lowest-price")
    assert given(answer) == {"m7i.large": 2}
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == "InsufficientInstanceCapacity"
    assert error["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"] == "c7i.large"


def test_a_gang_of_a_fleet_is_all_or_nothing(box: Ways) -> None:
    box.set("capacity", instance_type="c7i.large", machines=7)
    gang = {"SingleInstanceType": True, "SingleAvailabilityZone": True, "MinTargetCapacity": 8}
    pools = [{"InstanceType": "c7i.large", "AvailabilityZone": "us-east-1a"}]
    answer = fleet(box, pools, 8, AllocationStrategy="lowest-price", **gang)
    assert given(answer) == {}
    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    box.set("capacity", instance_type="c7i.large", machines=8)
    assert given(fleet(box, pools, 8, AllocationStrategy="lowest-price", **gang)) == {
        "c7i.large": 8
    }


def test_a_template_that_is_gone_is_not_found(box: Ways) -> None:
    with pytest.raises(ClientError) as caught:
        box.client().delete_launch_template(LaunchTemplateName="gone")
    assert code(caught) == ("InvalidLaunchTemplateName.NotFoundException", 400)


def test_images_are_named_by_public_parameters_and_told_by_region(box: Ways) -> None:
    ids = {
        image(box, name, region)
        for name in (AL2023, DLAMI)
        for region in ("us-east-1", "us-west-2")
    }
    assert len(ids) == 4
    (found,) = box.client().describe_images(ImageIds=[image(box)])["Images"]
    assert (found["RootDeviceName"], found["Architecture"]) == ("/dev/xvda", "x86_64")


def test_types_offerings_and_prices_are_those_of_the_catalog(box: Ways) -> None:
    ec2 = box.client()
    (a10g,) = ec2.describe_instance_types(InstanceTypes=["g5.xlarge"])["InstanceTypes"]
    assert a10g["GpuInfo"]["Gpus"][0]["Name"] == "A10G"
    assert (a10g["VCpuInfo"]["DefaultVCpus"], a10g["MemoryInfo"]["SizeInMiB"]) == (4, 16384)
    pages = ec2.get_paginator("describe_instance_types").paginate()
    assert sum(len(page["InstanceTypes"]) for page in pages) > 1000
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["p5.*"]}]
    )["InstanceTypeOfferings"]
    assert (
        {o["InstanceType"] for o in offered}
        == {"p5.48xlarge", "p5.4xlarge"} & {o["InstanceType"] for o in offered}
        != set()
    )
    history = ec2.describe_spot_price_history(
        InstanceTypes=["m7i.large"], ProductDescriptions=["Linux/UNIX"]
    )["SpotPriceHistory"]
    assert all(0 < float(line["SpotPrice"]) < 0.1 for line in history) and history
    (product,) = box.client("pricing").get_products(
        ServiceCode="AmazonEC2",
        Filters=[
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"},
            {"Type": "TERM_MATCH", "Field": "instanceType", "Value": "m7i.large"},
        ],
    )["PriceList"]
    assert '"USD": "0.1008000000"' in product


def test_types_read_from_the_box_are_those_of_the_catalog(box: Ways) -> None:
    known = {shape.name: shape for shape in bundled("ec2").shapes}
    pages = box.client().get_paginator("describe_instance_types").paginate()
    told = [type_row(one) for page in pages for one in page["InstanceTypes"]]
    assert len(told) > 1000
    for row in told:
        of = known[row["name"]]
        size = (row["cpus"], row["mem_mib"], row["gpu_mem_mib"])
        assert size == (of.cpus, of.mem_mib, of.gpu_mem_mib), row
        assert (row["arch"], gpu_key(row["gpu"])) == (of.arch, of.gpu), row
        assert set(row["words"].split()) <= of.features | {"other-cpu", "apple"}, row


def test_placement_groups_are_made_used_and_not_deleted_in_use(box: Ways, time: Time) -> None:
    ec2 = box.client()
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "site", "Value": "s"}]}]
    ec2.create_placement_group(GroupName="ring", Strategy="cluster", TagSpecifications=tags)
    (made,) = launch(box, Placement={"GroupName": "ring"})
    assert made["Placement"]["GroupName"] == "ring"
    (group,) = ec2.describe_placement_groups(Filters=[{"Name": "tag:site", "Values": ["s"]}])[
        "PlacementGroups"
    ]
    assert group["Strategy"] == "cluster"
    with pytest.raises(ClientError, match="in use"):
        ec2.delete_placement_group(GroupName="ring")
    time.now += 20
    users = [{"Name": "placement-group-name", "Values": ["ring"]}]
    (found,) = ec2.describe_instances(Filters=users)["Reservations"]
    assert [one["InstanceId"] for one in found["Instances"]] == [made["InstanceId"]]
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    time.now += 40
    ec2.delete_placement_group(GroupName="ring")
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
