"""Images of machines: by SSM parameter and region, kept for a day, missing ones by name."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.providers.ec2.errors import GPUS, GROUPS, UNFIT, AwsError, refused
from broker.providers.ec2.images import DAY, MISSING_SECONDS, Image, Images, has_nvidia, named
from tests.unit.broker.providers.ec2.test_provider import OFFER

HERE, THERE = "us-east-1", "eu-west-1"
NAMED = {
    ("x86_64", False): "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
    ("arm64", False): "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64",
    ("x86_64", True): "/aws/service/deeplearning/ami/x86_64/"
    "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id",
    ("arm64", True): "/aws/service/deeplearning/ami/arm64/"
    "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id",
}


@dataclass
class Aws:
    """Images by parameter and region, and what is told of them."""

    parameters: dict[tuple[str, str], str] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    code: str = "ParameterNotFound"

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        self.calls.append(operation)
        if operation == "get_parameter":
            value = self.parameters.get((region, params["Name"]))
            if value is None:
                raise AwsError(self.code, "")
            return {"Parameter": {"Value": value}}
        (id,) = params["ImageIds"]
        if id not in self.told:
            raise AwsError("InvalidAMIID.NotFound", id)
        return {"Images": [self.told[id]]}


@dataclass
class Bench:
    aws: Aws = field(default_factory=Aws)
    time: float = 0.0

    def __post_init__(self) -> None:
        self.images = Images(self.aws, lambda: self.time)


@pytest.mark.parametrize(("arch", "nvidia"), NAMED)
def test_the_usual_image_is_amazons_and_with_gpus_the_deep_learning_one(
    arch: str, nvidia: bool
) -> None:
    assert named("ec2-", arch, {}, nvidia=nvidia) == NAMED[arch, nvidia]


@pytest.mark.parametrize(
    ("images", "arch", "nvidia", "name"),
    [
        ({"x86_64": "/p/x"}, "x86_64", False, "/p/x"),
        ({"x86_64": "/p/x"}, "arm64", False, NAMED["arm64", False]),
        ({"gpu": "/p/{arch}/gpu"}, "arm64", True, "/p/arm64/gpu"),
        ({"ec2-": "/p/{debian}/own", "gpu": "/p/g"}, "x86_64", True, "/p/amd64/own"),
        ({"ec2-": "ami-1"}, "arm64", False, "ami-1"),
        ({"other-": "ami-1"}, "x86_64", False, NAMED["x86_64", False]),
    ],
)
def test_a_sites_and_a_partitions_own_image_come_before(
    images: dict[str, str], arch: str, nvidia: bool, *, name: str
) -> None:
    assert named("ec2-", arch, images, nvidia=nvidia) == name


def test_groups_of_gpus_are_those_whose_machines_want_nvidias_driver() -> None:
    assert {group for start, group in GROUPS if has_nvidia(f"{start}.large")} == set(GPUS)


@pytest.mark.parametrize(
    ("told", "image"),
    [
        ({}, Image("ami-1")),
        ({"Name": "ubuntu/images/jammy"}, Image("ami-1", user="ubuntu")),
        ({"Name": "debian-12"}, Image("ami-1", user="admin")),
        ({"Description": "Ubuntu, for us"}, Image("ami-1", user="ubuntu")),
        (
            {
                "RootDeviceName": "/dev/sda1",
                "Architecture": "arm64",
                "BlockDeviceMappings": [
                    {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 9}},
                    {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 40}},
                ],
            },
            Image("ami-1", "/dev/sda1", arch="arm64", gib=40),
        ),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda"}]}, Image("ami-1")),
    ],
)
def test_what_is_told_of_an_image_is_taken_up(told: dict[str, Any], image: Image) -> None:
    bench = Bench(Aws({(HERE, "/p"): "ami-1"}, {"ami-1": told}))
    assert bench.images.find(HERE, "/p") == image
    assert bench.images.find(HERE, "ami-1") == image, "an AMI needs no parameter"


def test_each_region_is_asked_once_a_day() -> None:
    aws = Aws({(HERE, "/p"): "ami-1", (THERE, "/p"): "ami-2"}, {"ami-1": {}, "ami-2": {}})
    bench = Bench(aws)
    ids = [bench.images.find(region, "/p").id for region in (HERE, THERE, HERE, THERE)]
    assert (ids, len(aws.calls)) == (["ami-1", "ami-2"] * 2, 4)
    aws.parameters[HERE, "/p"], aws.told["ami-3"] = "ami-3", {}
    bench.time = DAY - 1
    assert bench.images.find(HERE, "/p").id == "ami-1"
    bench.time = DAY
    assert bench.images.find(HERE, "/p").id == "ami-3"


def test_what_is_stale_is_asked_again_in_its_region_alone() -> None:
    aws = Aws({(HERE, "/p"): "ami-1", (THERE, "/p"): "ami-2"}, {"ami-1": {}, "ami-2": {}})
    bench = Bench(aws)
    for region in (HERE, THERE):
        bench.images.find(region, "/p")
    bench.images.forget(HERE)
    aws.calls.clear()
    for region in (HERE, THERE):
        bench.images.find(region, "/p")
    assert len(aws.calls) == 2


@pytest.mark.parametrize("code", ["ParameterNotFound", "ParameterVersionNotFound"])
def test_a_parameter_that_is_missing_is_named_and_not_asked_for_at_every_type(code: str) -> None:
    """AWS's own message is empty."""
    bench = Bench(Aws(code=code))
    for _ in range(3):
        with pytest.raises(AwsError, match="there is no SSM parameter /p/none in us-east-1"):
            bench.images.find(HERE, "/p/none")
    assert bench.aws.calls == ["get_parameter"]
    bench.time = MISSING_SECONDS
    bench.aws.parameters[HERE, "/p/none"], bench.aws.told["ami-1"] = "ami-1", {}
    assert bench.images.find(HERE, "/p/none").id == "ami-1"


def test_a_launch_without_its_image_is_refused_with_the_parameters_name() -> None:
    error = AwsError("ParameterNotFound", "there is no SSM parameter /p in us-east-1")
    told = refused(error, replace(OFFER, zones=()))
    assert isinstance(told, ProviderError)
    assert (told.refusal, told.width) == (Refusal.INVALID, Width.TYPE_IN_REGION)
    assert "there is no SSM parameter /p in us-east-1" in told.message


def test_a_parameter_that_names_no_image_says_what_it_is() -> None:
    bench = Bench(Aws({(HERE, "/p"): "subnet-1"}))
    with pytest.raises(
        AwsError, match="SSM parameter /p in us-east-1 is 'subnet-1', no image"
    ) as caught:
        bench.images.find(HERE, "/p")
    assert caught.value.code == UNFIT


def test_an_image_that_is_not_there_is_asked_for_again() -> None:
    bench = Bench()
    assert not bench.images.find(HERE, "ami-9").known
    bench.aws.told["ami-9"] = {}
    assert bench.images.find(HERE, "ami-9").known


def test_other_refusals_are_told_as_they_are() -> None:
    bench = Bench(Aws(code="AccessDeniedException"))
    for _ in range(2):
        with pytest.raises(AwsError, match="AccessDeniedException"):
            bench.images.find(HERE, "/p")
    assert bench.aws.calls == ["get_parameter"] * 2
