"""Volumes of EBS: what EC2 refuses for good is told apart from what may change."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from accounting.ids import AccountName
from broker.model.errors import ProviderError
from broker.model.volume import NamedVolume
from broker.providers.ec2.asking import Asking
from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.naming import Site
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.ec2.volumes import EbsVolumes
from tests.unit.broker.made import machine
from tests.unit.broker.test_engine import ALICE

DATA = NamedVolume(
    name="data",
    owner=ALICE,
    account=AccountName("root"),
    provider="ec2",
    asked_at=1,
    gib=10,
    region="us-east-1",
    zone="use1-az1",
    id="vol-1",
)
HOST = machine()


@dataclass
class Aws:
    """One volume, at a machine or free; one operation is refused."""

    attached: bool
    refused: str = ""
    code: str = ""
    there: bool = True

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation == self.refused:
            raise AwsError(self.code, "no")
        if operation == "describe_volumes":
            where = [{"InstanceId": HOST.id, "State": "attached"}] if self.attached else []
            found = params["Filters"][0]["Name"] == "volume-id" and self.there
            return {"Volumes": [{"VolumeId": DATA.id, "Attachments": where}] if found else []}
        if operation == "describe_availability_zones":
            return {"AvailabilityZones": [{"ZoneName": "us-east-1a"}]}
        if operation == "describe_instances":
            return {"Reservations": [{"Instances": [{"BlockDeviceMappings": []}]}]}
        assert self.there, f"{operation} of what is gone"
        return {"VolumeId": DATA.id}


def volumes(aws: Aws) -> EbsVolumes:
    site = Site("0123456789ab", "skypurza")
    return EbsVolumes(Asking(aws, site, lambda _: None), site, Ec2Settings())


DONE: dict[str, tuple[bool, Callable[[EbsVolumes], object]]] = {
    "create_volume": (False, lambda one: one.make(replace(DATA, id=""))),
    "attach_volume": (False, lambda one: one.attach(DATA, HOST)),
    "detach_volume": (True, lambda one: one.detach(DATA)),
    "delete_volume": (False, lambda one: one.drop(DATA)),
}


@pytest.mark.parametrize("operation", DONE)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UnauthorizedOperation", ProviderError),
        ("VolumeInUse", OSError),
        ("RequestLimitExceeded", OSError),
    ],
)
def test_what_is_refused_for_good_is_no_matter_of_time(
    operation: str, code: str, error: type[Exception]
) -> None:
    attached, do = DONE[operation]
    with pytest.raises(error, match=code):
        do(volumes(Aws(attached, operation, code)))


def test_what_is_gone_is_neither_dropped_nor_taken_off_again() -> None:
    gone = volumes(Aws(attached=False, there=False))
    gone.drop(DATA)
    gone.detach(DATA)
