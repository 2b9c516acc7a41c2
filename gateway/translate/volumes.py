"""Volumes as SkyPilot's files have them, and where tasks that name some may run."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.model.build import BEST, TIERS, tier_of
from broker.model.errors import BadSpec
from broker.model.spec import Attached, TaskSpec, Where
from broker.model.volume import NamedVolume
from gateway.config.problems import near
from gateway.translate.skypilot import VolumeFile, read_volume_file
from gateway.translate.skypilot_build import labels_of
from gateway.translate.skypilot_values import Place

TYPES = ("ebs", "k8s-pvc")
"""What becomes a volume of EBS; the second is SkyPilot's usual one."""
ELSEWHERE = {
    "k8s-hostpath": "it is a folder of a node of Kubernetes",
    "runpod-network-volume": "it is RunPod's",
}
NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
TIER = "disk_tier"
"""Of `config`, what is read."""
KNOWN_TIERS = (*TIERS, BEST)


@dataclass(frozen=True, slots=True)
class WantedVolume:
    """A volume that is to be; `zone` is an id or None, notes are for who asks."""

    name: str
    gib: int
    tier: str | None
    labels: tuple[tuple[str, str], ...]
    region: str | None
    zone: str | None
    notes: tuple[str, ...]


def read_volume(text: str, overrides: Mapping[str, Any]) -> WantedVolume:
    """Of a file's text and what the command line says. Raises BadSpec."""
    file = read_volume_file(text, overrides)
    notes: list[str] = []
    _must_be_ebs(file, notes)
    region, zone = _place(file, notes)
    tier, gib = _tier(file, notes), file.size
    if gib is None or not 1 <= gib <= tier_of(tier).largest_gib:
        raise BadSpec(
            "size", gib, f"size: 1 to {tier_of(tier).largest_gib} GB", hint="--size 100Gi"
        )
    labels = tuple(labels_of(file.labels or {}))
    return WantedVolume(_name(file), gib, tier, labels, region, zone, tuple(notes))


def _name(file: VolumeFile) -> str:
    if file.name is None or not NAME.fullmatch(file.name):
        hint = "small letters, digits, - _ and ., 63 of them at most"
        raise BadSpec("name", file.name, f"name: {file.name!r} is no name of a volume", hint=hint)
    return file.name


def _must_be_ebs(file: VolumeFile, notes: list[str]) -> None:
    if file.type not in {None, *TYPES}:
        why = ELSEWHERE.get(str(file.type), "there is no such type")
        raise BadSpec("type", file.type, f"type: {file.type}: {why}", hint="--type ebs")
    cloud = file.infra.cloud if file.infra else None
    if cloud not in {None, "aws"}:
        raise BadSpec("infra", cloud, f"infra: {cloud} is not served", hint="--infra aws/REGION")
    if file.use_existing:
        raise BadSpec(
            "use_existing", True, "use_existing: disks that were not made here are not taken up"
        )
    if file.type == TYPES[1]:
        notes.append(f"type: {file.type} is a volume of EBS here")


def _place(file: VolumeFile, notes: list[str]) -> tuple[str | None, str | None]:
    place = file.infra or Place()
    known = place.unnamed()
    if known != place:
        told = f"infra: {place.zone} is read as {known.region}; an id such as use1-az4 is a zone"
        notes.append(told)
    return known.region, known.zone


def _tier(file: VolumeFile, notes: list[str]) -> str | None:
    others = sorted((file.config or {}).keys() - {TIER})
    if others:
        notes.append(f"config.{', '.join(others)}: ignored, config.{TIER} is read here")
    tier = (file.config or {}).get(TIER)
    if tier is not None and tier not in KNOWN_TIERS:
        path = f"config.{TIER}"
        raise BadSpec(path, tier, f"{path}: {tier}", hint=near(tier, KNOWN_TIERS))
    return tier


# --- tasks that have some


def placed(spec: TaskSpec, known: Mapping[str, NamedVolume], uid: int) -> TaskSpec:
    """The task where its volumes are: a disk is of one zone. Raises BadSpec."""
    if not spec.volumes:
        return spec
    found = [_known(wanted, known, uid) for wanted in spec.volumes]
    zones = {one.zone for one in found}
    if len(zones) > 1:
        listed = ", ".join(f"{one.name} in {one.zone}" for one in found)
        raise BadSpec("volumes", listed, f"volumes: they are in several zones: {listed}")
    asked = spec.resources
    here = tuple(
        where.model_copy(update={"region": found[0].region, "zone": found[0].zone})
        for where in asked.any_of or (Where(),)
        if _may_be(where, found[0])
    )
    if not here:
        where = f"{found[0].region}/{found[0].zone}"
        raise BadSpec("volumes", "", f"volumes: they are in {where}, the task asks for elsewhere")
    return spec.model_copy(update={"resources": asked.model_copy(update={"any_of": here})})


def _known(wanted: Attached, known: Mapping[str, NamedVolume], uid: int) -> NamedVolume:
    one = known.get(wanted.volume)
    if one is None or one.owner.uid != uid:
        raise BadSpec(
            f"volumes.{wanted.path}",
            wanted.volume,
            f"volumes.{wanted.path}: you have no volume {wanted.volume!r}",
            hint="`spz volumes apply` makes one",
        )
    return one


def _may_be(where: Where, one: NamedVolume) -> bool:
    return where.region in {None, one.region} and where.zone in {None, one.zone}


def lacking(there: Sequence[Attached], wanted: Sequence[Attached]) -> list[str]:
    """What of it a cluster lacks, in words."""
    return [f"volume {one.volume} at {one.path}" for one in wanted if one not in there]
