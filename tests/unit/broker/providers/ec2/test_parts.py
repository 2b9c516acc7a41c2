"""The ids by which a bill knows what is beside a machine are read with the machine."""

from datetime import UTC, datetime
from typing import Any

import pytest

from broker.model.ids import NodeName
from broker.providers.ec2.instances import Seen, machine

RAW: dict[str, Any] = {
    "InstanceId": "i-1",
    "InstanceType": "m7i.large",
    "State": {"Name": "running"},
    "LaunchTime": datetime(2026, 1, 1, tzinfo=UTC),
    "Placement": {"AvailabilityZoneId": "use1-az1"},
    "RootDeviceName": "/dev/xvda",
}
ROOT = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeId": "vol-1"}}
OTHER = {"DeviceName": "/dev/sdf", "Ebs": {"VolumeId": "vol-2"}}
CARD = [{"NetworkInterfaceId": "eni-1"}, {"NetworkInterfaceId": "eni-2"}]


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({}, ()),
        ({"BlockDeviceMappings": [OTHER, ROOT]}, (("volume", "vol-1"),)),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda"}]}, ()),
        ({"NetworkInterfaces": CARD}, ()),
        ({"NetworkInterfaces": CARD, "PublicIpAddress": "192.0.2.1"}, (("address", "eni-1"),)),
    ],
)
def test_root_volume_and_public_address_are_known_by_their_ids(
    more: dict[str, Any], parts: tuple[tuple[str, str], ...]
) -> None:
    seen = Seen({**RAW, **more}, {})
    assert machine(seen, (NodeName("ec2-1"), 1), "us-east-1", public=False).parts == parts
