"""Volumes on machines: what a node's agent says of a mount."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.model import effects as ef
from broker.model.node import Node
from broker.model.reports import StepRefused
from broker.model.volume import VolumeAttached
from broker.ports import Done, Place
from broker.providers.local_volumes import LocalVolumes
from broker.run.agent.disk import NOT_YET
from broker.run.disks import attach, detach
from tests.unit.broker.test_volumes import Disks


class Answers:
    """A node on which every command ends alike; both a Reach and its Channel."""

    def __init__(self, done: Done) -> None:
        self.done = done

    def place(self, node: Node) -> Place:
        return Place(self, "/agent")

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        return self.done

    def put(self, data: bytes, path: str, mode: int) -> None:
        raise AssertionError("nothing is put there")

    def read(self, path: str, offset: int) -> bytes:
        raise AssertionError("nothing is read there")

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        raise AssertionError("its agent is not asked")


def due() -> ef.AttachVolume:
    bench = Disks()
    bench.make()
    bench.cluster("one")
    bench.up()
    (effect,) = bench.of(ef.AttachVolume)
    assert isinstance(effect, ef.AttachVolume)
    return effect


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Done(1, b"", b"/mnt/data: no disk\n"), "volume data: /mnt/data: no disk"),
        (Done(137, b"", b""), "volume data: mounting it ended with 137"),
    ],
)
def test_a_mount_that_fails_ends_the_step_whatever_is_said_of_it(
    tmp_path: Path, done: Done, said: str
) -> None:
    found = attach(due(), {"local": LocalVolumes(tmp_path)}, Answers(done))
    assert isinstance(found, StepRefused)
    assert found.message == said


def test_a_mount_that_is_done_is_told_with_its_machine(tmp_path: Path) -> None:
    effect = due()
    found = attach(effect, {"local": LocalVolumes(tmp_path)}, Answers(Done(0, b"", b"")))
    assert isinstance(found, VolumeAttached)
    assert (found.node, found.launch, found.path) == (*effect.node.identity, "/mnt/data")


def test_a_disk_that_is_not_to_be_seen_yet_is_asked_for_again(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not yet"):
        attach(due(), {"local": LocalVolumes(tmp_path)}, Answers(Done(NOT_YET, b"", b"")))


@pytest.mark.parametrize("code", [1, 137, NOT_YET])
def test_a_disk_that_cannot_be_unmounted_is_not_taken_off(tmp_path: Path, code: int) -> None:
    there = due()
    off = ef.DetachVolume(volume=there.volume, node=there.node)
    with pytest.raises(OSError, match="volume data"):
        detach(off, {"local": LocalVolumes(tmp_path)}, Answers(Done(code, b"", b"")))
