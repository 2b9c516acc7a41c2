"""What a task's image, disk, labels and ports become, and which of them are refused by name."""

from dataclasses import replace
from typing import Any

import pytest

from broker.model.build import Build
from broker.model.errors import BadSpec
from gateway.translate.skypilot import read
from gateway.translate.skypilot_build import DISKS, NO_EFFECT
from gateway.translate.skypilot_task import Translated, translate
from tests.unit.gateway.translate.tasks import ORIGIN

FAR = replace(ORIGIN, provider="ec2")
DEEP = "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"


def task(resources: str, provider: str = "ec2") -> Translated:
    (one,) = read(f"resources: {resources}\nrun: x")
    return translate(one, replace(FAR, provider=provider), cluster="dev")


@pytest.mark.parametrize(
    ("resources", "wishes"),
    [
        ("{cpus: 2}", None),
        ("{disk_tier: none, ports: null, labels: {}}", None),
        ("{network_tier: standard}", None),
        ("{network_tier: Best}", {"fabric": True}),
        ("{image_id: 'docker:debian'}", None),
        ("{disk_size: 1TB, disk_tier: ultra}", {"disk_gib": 1024, "disk_tier": "ultra"}),
        (
            "{ports: [9000-9010, 8080, '8080']}",
            {"ports": ("8080", "9000-9010")},
        ),
        ("{labels: {b: 2, a: x}}", {"labels": (("a", "x"), ("b", "2"))}),
        (
            "{infra: aws/us-west-2, image_id: ami-1}",
            {"images": (("us-west-2", "ami-1"),), "disk_gib": 256},
        ),
        (
            "{zone: us-west-2a, image_id: ami-1, disk_size: 99}",
            {"images": (("us-west-2", "ami-1"),), "disk_gib": 99},
        ),
        (
            "{image_id: {us-east-1: ami-1, us-west-2: ami-2, docker: 'debian:12'}}",
            {"images": (("us-east-1", "ami-1"), ("us-west-2", "ami-2")), "disk_gib": 256},
        ),
        (
            "{any_of: [{infra: aws/us-east-1, image_id: ami-1},"
            " {infra: aws/us-west-2, image_id: ami-2}]}",
            {"images": (("us-east-1", "ami-1"), ("us-west-2", "ami-2")), "disk_gib": 256},
        ),
        ("{image_id: 'skypilot:gpu-ubuntu-2204'}", {"images": (("", DEEP),), "disk_gib": 256}),
        ("{image_id: 'skypilot:custom-gpu-ubuntu'}", {"images": (("", DEEP),), "disk_gib": 256}),
    ],
)
def test_wishes_become_what_the_machines_are_made_of(
    resources: str, wishes: dict[str, Any] | None
) -> None:
    expected = None if wishes is None else Build(**wishes)
    assert task(resources).spec.resources.build == expected


@pytest.mark.parametrize("version", DISKS)
@pytest.mark.parametrize("sort", ["cpu", "gpu", "neuron"])
def test_a_tag_of_skypilots_is_a_public_parameter(sort: str, version: str) -> None:
    build = task(f"{{image_id: 'skypilot:{sort}-ubuntu-{version.replace('.', '')}'}}")
    ((region, name),) = build.spec.resources.build.images  # type: ignore[union-attr]
    assert region == ""
    assert name.startswith("/aws/service/")
    assert version in name
    assert "{version}" not in name


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        ("{image_id: ami-1}", "resources.image_id"),
        ("{zone: use1-az4, image_id: ami-1}", "resources.image_id"),
        ("{image_id: 'projects/x/images/y'}", "resources.image_id"),
        ("{image_id: 'skypilot:gpu-ubuntu-1804'}", "resources.image_id"),
        ("{image_id: 'skypilot:windows'}", "resources.image_id"),
        ("{disk_size: 2TB, disk_tier: low}", "resources.disk_size"),
        ("{disk_size: 100TB, disk_tier: ultra}", "resources.disk_size"),
        ("{labels: {Name: x}}", "resources.labels.Name"),
        ("{labels: {'aws:x': x}}", "resources.labels.aws:x"),
        ("{labels: {'SkyPurza:site': x}}", "resources.labels.SkyPurza:site"),
        ("{labels: {a: 'x;y'}}", "resources.labels.a"),
        (f"{{labels: {{a: {'x' * 257}}}}}", "resources.labels.a"),
        (f"{{labels: {{{', '.join(f'a{n}: x' for n in range(26))}}}}}", "resources.labels"),
        (f"{{ports: [{', '.join(str(n) for n in range(1, 99))}]}}", "resources.ports"),
    ],
)
def test_what_ec2_cannot_do_is_refused_by_name_with_the_way_out(resources: str, path: str) -> None:
    with pytest.raises(BadSpec) as caught:
        task(resources)
    assert caught.value.path == path
    assert caught.value.hint
    assert task(resources, "local").spec.resources.build is None


def test_where_machines_are_not_made_one_note_tells_that_they_have_no_effect() -> None:
    text = "{disk_size: 100, labels: {a: b}, ports: 80, image_id: 'docker:debian', "
    text += "network_tier: best}"
    made = task(text, "local")
    assert made.notes == (f"resources.disk_size, labels, ports, network_tier: {NO_EFFECT}",)
    assert task(text).notes == ()


def test_alternatives_that_differ_are_told_of() -> None:
    made = task("{any_of: [{disk_size: 100, use_spot: true}, {disk_size: 200}]}")
    assert made.spec.resources.build == Build(disk_gib=100)
    assert [note.split(":")[0] for note in made.notes] == ["resources.disk_size"]
