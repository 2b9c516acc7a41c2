"""What a launch asks for where its job has wishes: image, disk, tags, ports, and who refuses."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from broker.model.build import Build
from broker.model.errors import ProviderError, Refusal, Refused, Width
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.offer import Offer
from broker.model.rates import PUBLISHED
from broker.optimize.costs import hourly
from broker.providers.ec2 import naming
from broker.providers.ec2.images import filled
from broker.providers.ec2.provider import Ec2Provider
from broker.providers.ec2.requests import call_from_json, call_to_json, calls
from broker.providers.refusals import Rule
from tests.contract.cloud import StubEc2
from tests.contract.made import FOR, ec2_provider
from tests.unit.broker.providers.ec2.test_provider import OFFER, A, tags_of

HERE = replace(OFFER, zones=("use1-az1",))
OURS = {"ami-1": {"Name": "ours", "RootDeviceName": "/dev/sda1", "Architecture": "x86_64"}}


@dataclass
class Bench:
    folder: Path
    build: Build
    time: int = 1_800_000_000
    ec2: StubEc2 = field(init=False)
    provider: Ec2Provider = field(init=False)

    def __post_init__(self) -> None:
        self.ec2 = StubEc2(lambda: self.time)
        self.ec2.images.update(OURS)
        whose = replace(FOR, build=self.build)
        now = lambda: self.time  # noqa: E731
        self.provider = ec2_provider(self.folder, self.ec2, now, [HERE], whose=whose)

    def launch(self, offer: Offer = HERE) -> dict[str, Any]:
        """What RunInstances was asked for."""
        self.provider.launch(offer, [A], token="t")
        return self.params("run_instances")

    def params(self, operation: str) -> dict[str, Any]:
        return [params for name, params in self.ec2.calls if name == operation][-1]


Made = Callable[..., Bench]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return lambda **wishes: Bench(tmp_path, Build(**wishes))


@pytest.mark.parametrize(
    ("wishes", "disk"),
    [
        ({}, {"VolumeSize": 30, "VolumeType": "gp3"}),
        ({"disk_gib": 500}, {"VolumeSize": 500, "VolumeType": "gp3"}),
        ({"disk_tier": "low"}, {"VolumeSize": 30, "VolumeType": "standard"}),
        (
            {"disk_tier": "medium"},
            {"VolumeSize": 30, "VolumeType": "gp3", "Iops": 3500, "Throughput": 218},
        ),
        (
            {"disk_tier": "high", "disk_gib": 8},
            {"VolumeSize": 8, "VolumeType": "gp3", "Iops": 4000, "Throughput": 250},
        ),
        (
            {"disk_tier": "high", "disk_gib": 100},
            {"VolumeSize": 100, "VolumeType": "gp3", "Iops": 7000, "Throughput": 437},
        ),
        ({"disk_tier": "best"}, {"VolumeSize": 30, "VolumeType": "io2", "Iops": 20_000}),
    ],
)
def test_the_root_volume_is_as_its_size_and_tier_have_it(
    made: Made, wishes: dict[str, Any], disk: dict[str, Any]
) -> None:
    (mapping,) = made(**wishes).launch()["BlockDeviceMappings"]
    assert mapping["Ebs"] == {**disk, "Encrypted": True, "DeleteOnTermination": True}


@pytest.mark.parametrize(
    ("wishes", "micro_usd_per_month"),
    [
        ({"disk_gib": 100}, 8_000_000),
        ({"disk_gib": 100, "disk_tier": "low"}, 5_000_000),
        ({"disk_gib": 100, "disk_tier": "medium"}, 8_000_000 + 500 * 5000 + 93 * 40_000),
        ({"disk_gib": 100, "disk_tier": "ultra"}, 12_500_000 + 20_000 * 65_000),
    ],
)
def test_a_volume_costs_its_size_and_what_goes_beyond_the_free(
    wishes: dict[str, Any], micro_usd_per_month: int
) -> None:
    assert hourly(Build(**wishes).volume(30), "us-east-1", PUBLISHED) == micro_usd_per_month // 730


@pytest.mark.parametrize(
    ("features", "asked", "kind"),
    [(("efa",), True, "efa"), ((), True, None), (("efa",), False, None)],
)
def test_one_machine_gets_efa_where_its_type_has_it_and_it_was_asked_for(
    made: Made, features: tuple[str, ...], asked: bool, kind: str | None
) -> None:
    params = made(fabric=asked).launch(replace(HERE, features=features))
    assert params["NetworkInterfaces"][0].get("InterfaceType") == kind
    assert "Placement" not in params


def test_machines_start_from_the_image_named_for_their_region(made: Made) -> None:
    params = made(images=(("eu-west-1", "ami-2"), ("us-east-1", "ami-1"))).launch()
    assert params["ImageId"] == "ami-1"
    assert params["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"


@pytest.mark.parametrize(
    ("arch", "name"), [("x86_64", "/p/x86_64/amd64/id"), ("arm64", "/p/arm64/arm64/id")]
)
def test_a_parameter_is_that_of_the_machines_architecture(arch: str, name: str) -> None:
    assert filled("/p/{arch}/{debian}/id", arch) == name


@pytest.mark.parametrize(
    ("told", "wishes", "why"),
    [
        (None, {}, "image_id: ami-1 is no image in us-east-1"),
        ({"Architecture": "arm64"}, {}, "image_id: ami-1 is for arm64, not for x86_64"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 40}}]},
            {"disk_gib": 20},
            "disk_size: 20 GB is less than the 40 GB of ami-1",
        ),
    ],
)
def test_what_cannot_be_made_of_the_image_is_refused_by_name_and_concerns_nobody_else(
    made: Made, told: dict[str, Any] | None, wishes: dict[str, Any], why: str
) -> None:
    bench = made(images=(("", "ami-1"),), **wishes)
    bench.ec2.images["ami-1"] = told
    with pytest.raises(ProviderError, match=why) as caught:
        bench.launch()
    assert (caught.value.refusal, caught.value.width) == (Refusal.INVALID, Width.NOTHING)
    assert bench.ec2.count("run_instances") == 0


@pytest.mark.parametrize(
    ("wishes", "code", "width"),
    [
        ({"disk_tier": "ultra"}, "InvalidBlockDeviceMapping", Width.NOTHING),
        ({}, "InvalidBlockDeviceMapping", Width.TYPE_IN_REGION),
        ({"disk_tier": "ultra"}, "InsufficientInstanceCapacity", Width.TYPE_IN_ZONE),
    ],
)
def test_what_ec2_does_not_take_of_a_wish_is_held_against_no_other_job(
    made: Made, wishes: dict[str, Any], code: str, width: Width
) -> None:
    bench = made(**wishes)
    bench.ec2.refuse(Rule(), code)
    with pytest.raises(ProviderError, match=code) as caught:
        bench.launch()
    assert caught.value.width is width


@pytest.mark.parametrize("name", ["ubuntu/images/jammy", "al2023-ami"])
def test_who_logs_in_is_the_user_of_the_tasks_own_image(made: Made, name: str) -> None:
    bench = made(images=(("", "ami-1"),))
    bench.ec2.images["ami-1"] = {"Name": name}
    (machine,) = bench.provider.launch(HERE, [A], token="t")
    node = Node(*A, NodeState.UP, whole=None, partitions=(), build=bench.build)  # type: ignore[arg-type]
    user = bench.provider.login(node, machine, nvidia=False)
    assert user == ("ubuntu" if "ubuntu" in name else "ec2-user")


def test_labels_are_tags_of_machines_and_volumes_beside_ours(made: Made) -> None:
    params = made(labels=(("team", "nlp"), ("Name", "mine"))).launch()
    for kind in ("instance", "volume"):
        tags = tags_of(params, kind)
        assert (tags["team"], tags["Name"]) == ("nlp", "skypurza-test-node-ec2-1")


def test_ports_are_open_to_the_world_by_a_group_of_their_own(made: Made) -> None:
    bench = made(ports=("8080", "9000-9010"))
    cards = bench.launch()["NetworkInterfaces"]
    ssh, opened = cards[0]["Groups"]
    rules = [p for name, p in bench.ec2.calls if name == "authorize_security_group_ingress"]
    world = [
        (rule["FromPort"], rule["ToPort"])
        for rules in rules
        if rules["GroupId"] == opened
        for rule in rules["IpPermissions"]
        if rule["IpRanges"] == [{"CidrIp": "0.0.0.0/0"}]
    ]
    assert world == [(8080, 8080), (9000, 9010)]
    assert ssh not in {opened, None}
    name = bench.params("create_security_group")["GroupName"]
    assert name == naming.ports_group(bench.provider.networks._site, ("8080", "9000-9010"))


def test_a_machine_that_is_there_gets_other_ports_by_another_group(made: Made) -> None:
    bench = made()
    before = bench.launch()["NetworkInterfaces"][0]["Groups"]
    (machine,) = bench.provider.machines()
    bench.provider.open_ports([machine], ("80",))
    told = bench.params("modify_instance_attribute")
    group = bench.ec2.groups[
        f"us-east-1 {naming.ports_group(bench.provider.networks._site, ['80'])}"
    ]
    assert told == {"InstanceId": machine.id, "Groups": [*before, group]}
    bench.ec2.denied.add("modify_instance_attribute")
    with pytest.raises(Refused, match="ports 81 of ec2-1: UnauthorizedOperation"):
        bench.provider.open_ports([machine], ("81",))


def test_a_group_of_ports_goes_once_no_machine_has_had_it_for_a_while(made: Made) -> None:
    bench = made(ports=("8080",))
    bench.launch()
    card = {"NetworkInterfaceId": "eni-1", "Status": "in-use"}
    bench.ec2.left["NetworkInterfaces"] = [("us-east-1", card)]
    assert bench.provider.leftovers() == []
    bench.ec2.left["NetworkInterfaces"] = []
    (found,) = bench.provider.leftovers()
    assert bench.provider.sweep() == []
    bench.time += 1000
    assert bench.provider.sweep() == [found]
    assert [key for key in bench.ec2.groups if "-ports-" in key] == []
    assert len(bench.ec2.groups) == 1  # that of SSH stays


def test_a_purchase_on_disk_keeps_its_wishes(made: Made) -> None:
    build = Build(images=(("", "ami-1"),), disk_gib=9, labels=(("a", "b"),), ports=("1", "2-3"))
    bench = made()
    bought = naming.Purchase(
        offer=HERE, nodes=(A,), token="t", purpose=replace(FOR, build=build), at=5
    )
    call = next(calls(bought, bench.provider.buying.ground(bought)))
    assert call_from_json(call_to_json(call, bought))[1] == bought
    assert NodeName("ec2-1") == bought.nodes[0][0]
