"""Volumes' files as SkyPilot writes them, and tasks that go where their volumes are."""

import re
from dataclasses import replace

import pytest

from accounting.ids import AccountName
from broker.model.errors import BadSpec
from broker.model.job import Owner
from broker.model.spec import Attached, Resources, TaskSpec, Where
from broker.model.volume import NamedVolume
from gateway.translate.skypilot_task import Translated, settled
from gateway.translate.volumes import placed, read_volume

DATA = NamedVolume(
    name="data",
    owner=Owner(1000, 1000, "alice", "alice"),
    account=AccountName("lab"),
    provider="ec2",
    asked_at=0,
    gib=10,
    region="us-east-1",
    zone="use1-az4",
)
THERE = Where(region="us-east-1", zone="use1-az4")
SPOT = THERE.model_copy(update={"market": "spot"})
KNOWN = {
    "data": DATA,
    "near": replace(DATA, name="near"),
    "far": replace(DATA, name="far", zone="use1-az1"),
}


def task(*names: str, any_of: tuple[Where, ...] = ()) -> TaskSpec:
    volumes = tuple(Attached(volume=name, path=f"/{name}") for name in names)
    return TaskSpec(name="t", resources=Resources(any_of=any_of), volumes=volumes)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ((), (THERE,)),
        ((Where(region="us-east-1"),), (THERE,)),
        ((Where(region="eu-west-1"), Where(market="spot")), (SPOT,)),
    ],
)
def test_a_task_is_bought_in_its_volumes_zone(
    asked: tuple[Where, ...], left: tuple[Where, ...]
) -> None:
    found = placed(task("data", "near", any_of=asked), KNOWN, 1000)
    assert found.resources.any_of == left


@pytest.mark.parametrize(
    ("spec", "uid", "told"),
    [
        (task("none"), 1000, "volumes./none: you have no volume 'none'"),
        (task("data"), 1001, "volumes./data: you have no volume 'data'"),
        (task("data", "far"), 1000, "several zones: data in use1-az4, far in use1-az1"),
        (task("data", any_of=(Where(region="eu-west-1"),)), 1000, "they are in us-east-1/use1-az4"),
    ],
)
def test_a_task_that_cannot_be_where_its_volumes_are_is_refused(
    spec: TaskSpec, uid: int, told: str
) -> None:
    with pytest.raises(BadSpec, match=re.escape(told)):
        placed(spec, KNOWN, uid)


@pytest.mark.parametrize(
    ("text", "place", "notes"),
    [
        ("{name: a, size: 10Gi}", (None, None), []),
        ("{name: a, size: 10, type: k8s-pvc, infra: aws/us-east-1}", ("us-east-1", None), ["type"]),
        ("{name: a, size: 1TB, infra: aws/us-east-1/use1-az4}", ("us-east-1", "use1-az4"), []),
        ("{name: a, size: 10, infra: aws/us-east-1/us-east-1a}", ("us-east-1", None), ["infra"]),
        ("{name: a, size: 10, config: {namespace: x, disk_tier: high}}", (None, None), ["config"]),
    ],
)
def test_a_file_says_where_and_how_large(
    text: str, place: tuple[str | None, str | None], notes: list[str]
) -> None:
    wanted = read_volume(text, {})
    assert (wanted.region, wanted.zone) == place
    assert [note.partition(":")[0].partition(".")[0] for note in wanted.notes] == notes
    assert read_volume(text, {"name": "b", "size": "20"}).gib == 20


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{name: a, size: 10, sise: 3}", "sise: no such key"),
        ("{name: A b, size: 10}", "is no name of a volume"),
        ("{name: a, size: 0}", "size"),
        ("{name: a, size: 2000, config: {disk_tier: low}}", "size: 1 to 1024 GB"),
        ("{name: a, size: 10, config: {disk_tier: hihg}}", "config.disk_tier: hihg"),
        ("{name: a, size: 10, infra: k8s}", "kubernetes is not served"),
        ("{name: a, size: 10, infra: gcp}", "gcp is not served"),
        ("{name: a, size: 10, type: runpod-network-volume}", "it is RunPod's"),
        ("{name: a, size: 10, use_existing: true}", "not taken up"),
        ("{name: a, size: 10, labels: {Name: x}}", "reserved"),
        ("{name: a}\n---\n{name: b}", "one document"),
    ],
)
def test_what_is_no_volume_is_told(text: str, told: str) -> None:
    with pytest.raises(BadSpec) as caught:
        read_volume(text, {})
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("nice", "admin", "left", "told"), [(-5, True, -5, 0), (-5, False, 0, 1), (5, False, 5, 0)]
)
def test_only_administrators_pass_the_jobs_of_others(
    nice: int, admin: bool, left: int, told: int
) -> None:
    made = Translated(task().model_copy(update={"nice": nice}), {})
    found = settled(made, known={}, owner=DATA.owner, admin=admin)
    assert (found.spec.nice, len(found.notes)) == (left, told)
