"""Which image a machine starts from: found by public SSM parameters, once a day and region."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.model.build import Build
from broker.model.offer import Offer
from broker.providers.ec2.clients import Api
from broker.providers.ec2.errors import UNFIT, AwsError

AMAZON = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{arch}"
DEEP_LEARNING = (
    "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-amazon-linux-2023"
    "/latest/ami-id"
)
GPU = "gpu"
DAY = 86_400
"""So long what was found is kept."""
MISSING_SECONDS = 60
"""So long a parameter that is not there is not asked for again: every type would."""
NOT_THERE = frozenset({"ParameterNotFound", "ParameterVersionNotFound"})
ROOT_DEVICE = "/dev/xvda"
USERS = (("ubuntu", "ubuntu"), ("debian", "admin"))
"""By a word in the image's name; Amazon's own and Red Hat's have ec2-user."""
USUAL_USER = "ec2-user"


@dataclass(frozen=True, slots=True)
class Image:
    """An image in one region."""

    id: str
    root_device: str = ROOT_DEVICE
    user: str = USUAL_USER
    """Who logs in."""
    known: bool = True
    """Whether EC2 describes it there."""
    arch: str = ""
    gib: int = 0
    """Of its root volume."""


def wanted(offer: Offer, prefix: str, images: Mapping[str, str]) -> str:
    """The AMI, or the parameter that names it: of the nodes' prefix, else by GPU, else by arch."""
    nvidia = bool(offer.gres) and has_nvidia(offer.instance_type)
    return named(prefix, offer.arch, images, nvidia=nvidia)


def named(prefix: str, arch: str, images: Mapping[str, str], *, nvidia: bool) -> str:
    """The same of a machine that is there."""
    usual = images.get(GPU, DEEP_LEARNING) if nvidia else images.get(arch, AMAZON)
    return filled(images.get(prefix, usual), arch)


def has_nvidia(instance_type: str) -> bool:
    """Whether its accelerators want NVIDIA's driver; those of g4ad are AMD's."""
    return instance_type[:1] in {"g", "p"} and not instance_type.startswith("g4ad.")


def filled(name: str, arch: str) -> str:
    """An AMI as it is, or the parameter for machines of this architecture."""
    debian = {"x86_64": "amd64"}.get(arch, arch)
    return name.replace("{arch}", arch).replace("{debian}", debian)


def must_fit(image: Image, build: Build, offer: Offer, *, usual_gib: int) -> None:
    """Raises AwsError where machines of the offer cannot be made of it as the job wants them."""
    volume = build.volume(usual_gib)
    if not image.known:
        raise AwsError(UNFIT, f"image_id: {image.id} is no image in {offer.region}")
    if image.arch not in {"", offer.arch}:
        raise AwsError(UNFIT, f"image_id: {image.id} is for {image.arch}, not for {offer.arch}")
    if volume.gib < image.gib:
        told = f"disk_size: {volume.gib} GB is less than the {image.gib} GB of {image.id}"
        raise AwsError(UNFIT, told)


class Images:
    """Looks images up and keeps the answers for a day; may be asked from any thread."""

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[float, Image]] = {}
        self._missing: dict[tuple[str, str], tuple[float, AwsError]] = {}
        self._lock = threading.Lock()

    def find(self, region: str, name: str) -> Image:
        """Raises AwsError if there is none of this name, NoAnswerError."""
        key, now = (region, name), self._clock()
        with self._lock:
            known, missing = self._kept.get(key), self._missing.get(key)
        if known is not None and now - known[0] < DAY:
            return known[1]
        if missing is not None and now - missing[0] < MISSING_SECONDS:
            raise missing[1]
        try:
            found = self._look_up(region, name)
        except AwsError as error:
            if error.code in NOT_THERE:
                with self._lock:
                    self._missing[key] = now, error
            raise
        if found.known:
            with self._lock:
                self._kept[key] = now, found
        return found

    def forget(self, region: str) -> None:
        """What was known of the region's images is stale."""
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if key[0] != region}
            self._missing = {key: one for key, one in self._missing.items() if key[0] != region}

    def _look_up(self, region: str, name: str) -> Image:
        ami = name if name.startswith("ami-") else self._parameter(region, name)
        try:
            listed = self._api.call("ec2", region, "describe_images", ImageIds=[ami])["Images"]
        except AwsError as error:
            if not error.code.startswith("InvalidAMIID"):
                raise
            listed = []
        if not listed:
            return Image(ami, known=False)
        image = listed[0]
        words = f"{image.get('Name', '')} {image.get('Description', '')}".lower()
        user = next((user for word, user in USERS if word in words), USUAL_USER)
        root = image.get("RootDeviceName") or ROOT_DEVICE
        disks = image.get("BlockDeviceMappings", ())
        sizes = [one.get("Ebs", {}).get("VolumeSize") for one in disks if one["DeviceName"] == root]
        arch, gib = str(image.get("Architecture") or ""), next(filter(None, sizes), 0)
        return Image(ami, root, user, arch=arch, gib=int(gib))

    def _parameter(self, region: str, name: str) -> str:
        """Which AMI it names. AWS does not say which it has not: we do."""
        try:
            reply = self._api.call("ssm", region, "get_parameter", Name=name)
        except AwsError as error:
            if error.code not in NOT_THERE:
                raise
            told = f"there is no SSM parameter {name} in {region}"
            raise AwsError(error.code, told, error.status) from error
        value = str(reply["Parameter"]["Value"])
        if not value.startswith("ami-"):
            raise AwsError(UNFIT, f"SSM parameter {name} in {region} is {value!r}, no image")
        return value
