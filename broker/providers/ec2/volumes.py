"""Volumes of EBS: `broker.ports.Volumes`. They bear their key as a tag, and no sweep takes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Machine
from broker.model.volume import NamedVolume
from broker.providers.ec2 import errors, naming
from broker.providers.ec2.asking import Asking
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.settings import Ec2Settings

LETTERS = "fghijklmnop"
"""Of the names that EC2 recommends for disks of one's own, `/dev/sdf` to `/dev/sdp`."""
PASSING = frozenset({Refusal.THROTTLED, Refusal.TRANSIENT})
NOT_NOW = frozenset({"IncorrectState", "VolumeInUse", "IncorrectInstanceState"})
"""The machine or the volume is on its way from one state to another."""
NVME = "nvme-Amazon_Elastic_Block_Store_"
"""Before the id in what udev calls a disk on a Nitro machine."""


class EbsVolumes:
    """May be asked from any thread."""

    def __init__(self, asking: Asking, site: naming.Site, settings: Ec2Settings) -> None:
        self._asking = asking
        self._site = site
        self._settings = settings

    def make(self, volume: NamedVolume) -> str:
        """One that was made and not told of is found by its tag."""
        key = [{"Name": f"tag:{naming.VOLUME}", "Values": [volume.key]}]
        mine = [{"Name": f"tag:{naming.SITE}", "Values": [self._site.id]}]
        found = self._asked(volume, "describe_volumes", Filters=[*key, *mine])["Volumes"]
        if found:
            return str(found[0]["VolumeId"])
        made = self._asked(volume, "create_volume", **self._wish(volume))
        return str(made["VolumeId"])

    def _wish(self, volume: NamedVolume) -> dict[str, Any]:
        disk = volume.disk
        tags = {
            **dict(volume.labels),
            **naming.common(self._site, "volume", volume.name),
            naming.VOLUME: volume.key,
            naming.USER: volume.owner.user,
            naming.ACCOUNT: volume.account,
        }
        more = {"Iops": disk.iops, "Throughput": disk.mbps, "KmsKeyId": self._settings.kms_key}
        return {
            "AvailabilityZone": self._zone(volume),
            "Size": disk.gib,
            "VolumeType": disk.kind,
            "Encrypted": True,
            "ClientToken": naming.volume_token(self._site, volume),
            "TagSpecifications": [{"ResourceType": "volume", "Tags": naming.tag_list(tags)}],
            **{name: value for name, value in more.items() if value is not None},
        }

    def _zone(self, volume: NamedVolume) -> str:
        """The account's name of the zone."""
        found = self._asked(volume, "describe_availability_zones", ZoneIds=[volume.zone])
        return str(found["AvailabilityZones"][0]["ZoneName"])

    def drop(self, volume: NamedVolume) -> None:
        """Raises OSError while it is attached."""
        if self._told(volume) is not None:
            self._asked(volume, "delete_volume", VolumeId=volume.id)

    def attach(self, volume: NamedVolume, machine: Machine) -> None:
        """Raises OSError while it is elsewhere, or not attached yet."""
        there = self._attachment(volume)
        if there is None:
            self._asked(
                volume,
                "attach_volume",
                VolumeId=volume.id,
                InstanceId=machine.id,
                Device=self._free_name(volume, machine),
            )
            there = self._attachment(volume)
        if there is None or (there["InstanceId"], there["State"]) != (machine.id, "attached"):
            raise NoAnswerError(f"{volume.id} is not at {machine.id} yet")

    def detach(self, volume: NamedVolume) -> None:
        """Raises OSError while it is attached."""
        there = self._attachment(volume)
        if there is None:
            return
        host = there["InstanceId"]
        if there["State"] != "detaching":
            self._asked(volume, "detach_volume", VolumeId=volume.id, InstanceId=host)
        raise NoAnswerError(f"{volume.id} is being taken off {host}")

    def paths(self, volume: NamedVolume) -> Sequence[str]:
        """What a Nitro machine calls it."""
        return (f"{self._settings.devices}/{NVME}{volume.id.replace('-', '', 1)}",)

    def _attachment(self, volume: NamedVolume) -> Mapping[str, Any] | None:
        told = self._told(volume) or {}
        live = (one for one in told.get("Attachments", ()) if one["State"] != "detached")
        return next(live, None)

    def _told(self, volume: NamedVolume) -> Mapping[str, Any] | None:
        """None once it is gone."""
        this = [{"Name": "volume-id", "Values": [volume.id]}]
        return next(iter(self._asked(volume, "describe_volumes", Filters=this)["Volumes"]), None)

    def _free_name(self, volume: NamedVolume, machine: Machine) -> str:
        told = self._asked(volume, "describe_instances", InstanceIds=[machine.id])
        (instance,) = told["Reservations"][0]["Instances"]
        taken = {one["DeviceName"][-1] for one in instance.get("BlockDeviceMappings", ())}
        free = next((letter for letter in LETTERS if letter not in taken), None)
        if free is None:
            raise ProviderError(Refusal.INVALID, Width.NOTHING, f"{machine.id} has no room for it")
        return f"/dev/sd{free}"

    def _asked(self, volume: NamedVolume, operation: str, **params: Any) -> dict[str, Any]:
        """Raises ProviderError for a refusal, OSError where nobody knows."""
        try:
            return self._asking.ask(volume.region, operation, params)
        except AwsError as error:
            refusal, width = errors.meaning(error.code)
            if refusal in PASSING or error.code in NOT_NOW:
                raise NoAnswerError(f"{volume.name}: {error}") from error
            raise ProviderError(refusal, width, str(error)) from error
