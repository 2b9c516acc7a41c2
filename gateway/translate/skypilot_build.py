"""`image_id`, `disk_size`, `disk_tier`, `labels`, `ports`: what the machines are made of on EC2."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from broker.model.build import USUAL, Build, tier_of
from broker.model.errors import BadSpec
from gateway.translate.skypilot import Candidate
from gateway.translate.skypilot_container import KEY, PREFIX
from gateway.translate.skypilot_values import Place

KEYS = ("image_id", "disk_size", "disk_tier", "labels", "ports", "network_tier")
NO_EFFECT = "no effect here, machines of this partition are not bought of EC2"
USUAL_GIB = 256
"""SkyPilot's, for machines with an image of the task's own: nobody else knows its size."""
TAG = "skypilot:"
UBUNTU = (
    "/aws/service/canonical/ubuntu/server/{version}/stable/current/{{debian}}/hvm/{disk}/ami-id"
)
DEEP = (
    "/aws/service/deeplearning/ami/{{arch}}/base-oss-nvidia-driver-gpu-ubuntu-{version}"
    "/latest/ami-id"
)
NEURON = "/aws/service/neuron/dlami/multi-framework/ubuntu-{version}/latest/image_id"
PARAMETERS: Mapping[str, str] = {"cpu": UBUNTU, "gpu": DEEP, "k80": DEEP, "neuron": NEURON}
"""What names SkyPilot's images of a sort today: public parameters of SSM."""
DISKS: Mapping[str, str] = {"20.04": "ebs-gp2", "22.04": "ebs-gp2", "24.04": "ebs-gp3"}
"""Ubuntu's versions, and how Canonical calls the disk of each."""
NEWEST_USUAL = "2204"
SORT = re.compile(r"(?:custom-)?(cpu|gpu|k80|neuron)-ubuntu(?:-(\d{4}))?(?:-arm64)?")
AMI = re.compile(r"ami-[0-9a-z]{1,32}")
RESERVED = ("name", "project", "stage", "managedby")
RESERVED_STARTS = ("aws:", "skypurza:")
MOST_LABELS, LONGEST_KEY, LONGEST_VALUE = 25, 128, 256
IN_TAGS = re.compile(r"[\w\s+\-=.:/@]*")
MOST_PORTS = 60
"""Rules of a security group."""


def without_effect(asked: Sequence[Candidate]) -> Iterator[str]:
    """One note for all of these keys, where machines are not made for anybody."""
    given = [key for key in KEYS if any(_value(one, key) for one in asked)]
    if given:
        yield f"resources.{', '.join(given)}: {NO_EFFECT}"


def build_of(asked: Sequence[Candidate], notes: list[str]) -> Build | None:
    """What the alternatives ask for together. Raises BadSpec for what EC2 cannot do."""
    first = {key: _value(asked[0], key) for key in KEYS}
    differ = (key for key in KEYS[1:] if any(_value(one, key) != first[key] for one in asked))
    notes += [
        f"resources.{key}: differs between alternatives, the first's is taken" for key in differ
    ]
    images = dict(pair for one in asked for pair in _images(one))
    build = Build(
        images=tuple(sorted(images.items())),
        disk_gib=first["disk_size"] or (USUAL_GIB if images else None),
        disk_tier=first["disk_tier"],
        labels=tuple(labels_of(first["labels"] or {})),
        ports=_ports(first["ports"] or ()),
        fabric=first["network_tier"] is not None,
    )
    _must_be_a_disk(build)
    return None if build == USUAL else build


def _value(candidate: Candidate, key: str) -> Any:
    """None also for `none`, for the usual network, and for an image that is only a container."""
    if key == "image_id":
        return [*_named(candidate)] or None
    value = getattr(candidate, key)
    return None if value in ("none", "standard", (), {}) else value


# --- images


def _named(candidate: Candidate) -> Iterator[tuple[str | None, str]]:
    """Images by region, None where it names none; without those of containers."""
    given = candidate.image_id
    for region, name in given.items() if isinstance(given, dict) else ((None, given),):
        if name is not None and region != KEY and not name.startswith(PREFIX):
            yield region, name


def _images(candidate: Candidate) -> Iterator[tuple[str, str]]:
    for region, name in _named(candidate):
        if name.startswith(TAG):
            yield region or "", _parameter(name)
        elif not AMI.fullmatch(name):
            raise _bad(
                "image_id", name, "no image of EC2", hint="an AMI, skypilot:TAG or docker:IMAGE"
            )
        else:
            yield region or _region(candidate.place, name), name


def _region(place: Place, ami: str) -> str:
    """The one in which it is looked for."""
    if region := place.unnamed().region:
        return region
    out = f"infra: aws/REGION, or image_id: {{REGION: {ami}}}"
    raise _bad("image_id", ami, "an AMI is of one region, and none is named", hint=out)


def _parameter(name: str) -> str:
    found = SORT.fullmatch(name.removeprefix(TAG))
    digits = (found[2] or NEWEST_USUAL) if found else ""
    version = f"{digits[:2]}.{digits[2:]}"
    if found is None or version not in DISKS:
        known = ", ".join(f"{TAG}{sort}-ubuntu-2204" for sort in PARAMETERS)
        raise _bad("image_id", name, "no such tag here", hint=f"{known}; 2004 and 2404 too")
    return PARAMETERS[found[1]].format(version=version, disk=DISKS[version])


# --- disks, tags, ports


def _must_be_a_disk(build: Build) -> None:
    size, tier = build.disk_gib, tier_of(build.disk_tier)
    if size is not None and size > tier.largest_gib:
        told = f"{tier.kind} has at most {tier.largest_gib} GB"
        raise _bad("disk_size", size, told, hint="ask for less, or disk_tier: ultra")


def labels_of(labels: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """As tags. Raises BadSpec."""
    if len(labels) > MOST_LABELS:
        raise _bad(
            "labels", len(labels), f"at most {MOST_LABELS} can be given", hint="leave some out"
        )
    for key, text in sorted(labels.items()):
        value = text or ""
        for why, wrong in LABEL_TESTS:
            if wrong(key, value):
                raise _bad(f"labels.{key}", value, why, hint="choose another")
        yield key, value


def _is_reserved(key: str, _value: str) -> bool:
    return key.lower() in RESERVED or key.lower().startswith(RESERVED_STARTS)


def _is_too_long(key: str, value: str) -> bool:
    return not 0 < len(key) <= LONGEST_KEY or len(value) > LONGEST_VALUE


def _is_strange(key: str, value: str) -> bool:
    return not (IN_TAGS.fullmatch(key) and IN_TAGS.fullmatch(value))


LABEL_TESTS: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("the name is reserved for the site and AWS", _is_reserved),
    (f"names have 1 to {LONGEST_KEY} characters, values up to {LONGEST_VALUE}", _is_too_long),
    ("tags have letters, digits, blanks and + - = . _ : / @", _is_strange),
)


def _ports(ports: Sequence[str]) -> tuple[str, ...]:
    if len(set(ports)) > MOST_PORTS:
        told = f"at most {MOST_PORTS} ports and ranges can be opened"
        raise _bad("ports", len(ports), told, hint="write a range")
    return tuple(sorted(set(ports), key=lambda text: [int(end) for end in text.split("-")]))


def _bad(key: str, value: object, why: str, *, hint: str) -> BadSpec:
    return BadSpec(f"resources.{key}", value, f"resources.{key}: {value}: {why}", hint=hint)
