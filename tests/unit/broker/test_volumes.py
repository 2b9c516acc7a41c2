"""Volumes in the engine: made, given to one job at a time, steps wait for them, who pays."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import effects as ef
from broker.model import reports as rep
from broker.model.build import Build
from broker.model.errors import Conflict, Denied, Unknown
from broker.model.facts import folded
from broker.model.rates import PUBLISHED
from broker.model.spec import Attached, Resources, StepSpec
from broker.model.volume import (
    ApplyVolume,
    DeleteVolume,
    NamedVolume,
    VolumeAttached,
    VolumeDetached,
    VolumeDropped,
    VolumeMade,
    VolumeNotMade,
    VolumeState,
)
from broker.optimize.costs import hourly
from tests.unit.broker.test_engine import ALICE, BOB, Bench, machine
from tests.unit.broker.test_stopping import SITE

ASKED = ApplyVolume(
    by=ALICE,
    name="data",
    gib=100,
    tier=None,
    labels=(),
    provider="local",
    region="us-east-1",
    zone="use1-az1",
)
STEPS = (StepSpec(name="run"),)


class Disks(Bench):
    """An engine, and what becomes of alice's volume."""

    def __init__(self) -> None:
        super().__init__(SITE)

    @property
    def volume(self) -> NamedVolume:
        return self.world.volumes["data"]

    def make(self) -> None:
        self.ask(ASKED)
        self.step(VolumeMade(name="data", asked_at=self.volume.asked_at, id="vol-1"))

    def ask(self, order: object) -> Any:
        (reply,) = self.step(order, seconds=1)  # type: ignore[arg-type]
        return reply

    def end(self, job: JobId) -> None:
        """It is cancelled, and nothing of it is left."""
        self.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
        record = self.world.jobs[job]
        self.journal(record.shares[0].node, {"kind": "gone", "attempt": record.key})

    def cluster(self, name: str, path: str = "/mnt/data") -> JobId:
        wants = (Attached(volume="data", path=path),)
        whole = Resources(min_nodes=1, max_nodes=1, exclusive=True)
        return self.submit(
            resources=whole, batch=None, steps=STEPS, cluster=name, volumes=wants, requeue=False
        )

    def up(self) -> None:
        """What was bought is up."""
        (launch,) = self.of(ef.Launch)
        self.step(rep.Launched(group=launch.group, machines=machine(launch, self.now)))
        (prepare,) = self.of(ef.Prepare)
        self.step(rep.Booted(node=prepare.node.name, launch=prepare.node.launch), seconds=20)

    def of(self, kind: type) -> list[Any]:
        return [one for one in self.effects if isinstance(one, kind)]

    def attached(self, effect: ef.AttachVolume | None = None, *, launch: int | None = None) -> None:
        (told,) = [effect] if effect else self.of(ef.AttachVolume)
        self.step(
            VolumeAttached(
                name="data",
                asked_at=self.volume.asked_at,
                node=told.node.name,
                launch=told.node.launch if launch is None else launch,
                path=told.path,
            )
        )

    def detached(self) -> None:
        self.step(VolumeDetached(name="data", asked_at=self.volume.asked_at))


def test_a_volume_is_made_once_and_keeps_its_size() -> None:
    bench = Disks()
    assert bench.ask(ASKED) == "data"
    assert [one.volume.name for one in bench.of(ef.MakeVolume)] == ["data"]
    bench.step(VolumeMade(name="data", asked_at=bench.volume.asked_at, id="vol-1"))
    assert (bench.volume.state, bench.effects) == (VolumeState.READY, [])
    assert bench.ask(ASKED) == "data"
    assert isinstance(bench.ask(replace(ASKED, gib=200)), Conflict)
    assert isinstance(bench.ask(replace(ASKED, by=BOB)), Denied)
    assert folded(bench.store.volume_facts()) == bench.world.volumes


def test_one_that_cannot_be_made_says_why_and_may_be_asked_for_again() -> None:
    bench = Disks()
    bench.ask(ASKED)
    bench.step(VolumeNotMade(name="data", asked_at=bench.volume.asked_at, message="quota"))
    assert (bench.volume.state, bench.volume.told) == (VolumeState.FAILED, "quota")
    job = bench.cluster("dev")
    bench.step(seconds=1)
    assert bench.world.jobs[job].reason == "Licenses"
    assert bench.world.jobs[job].detail == "volume data is quota"
    bench.ask(ASKED)
    assert bench.volume.state is VolumeState.CREATING


def test_steps_wait_for_the_volume_and_the_next_job_for_its_end() -> None:
    bench = Disks()
    bench.make()
    first, second = bench.cluster("one"), bench.cluster("two")
    bench.step(seconds=1)
    waiting = bench.world.jobs[second]
    assert (waiting.reason, waiting.detail) == ("Licenses", "volume data is held by one")
    bench.up()
    assert bench.of(ef.StartStep) == []
    bench.attached()
    assert {one.job.id for one in bench.of(ef.StartStep)} == {first}
    assert isinstance(bench.ask(DeleteVolume(by=ALICE, name="data")), Conflict)
    purge = DeleteVolume(by=ALICE, name="data", purge=True)
    assert isinstance(bench.ask(purge), Conflict), "what is mounted is not forgotten"

    bench.end(first)
    (detach,) = bench.of(ef.DetachVolume)
    assert detach.node.name == bench.volume.host
    bench.detached()
    bench.attached()
    assert {one.job.id for one in bench.of(ef.StartStep)} == {second}
    assert bench.of(ef.DetachVolume) == []


@pytest.mark.parametrize("path", ["/mnt/data", "/data"])
def test_what_takes_it_off_is_done_before_the_next_job_has_a_machine(path: str) -> None:
    """It cannot be called back, and would take it from under the next one's steps."""
    bench = Disks()
    bench.make()
    first = bench.cluster("one")
    bench.up()
    bench.attached()
    bench.end(first)
    second = bench.cluster("two", path)
    bench.step(seconds=1)
    waiting = bench.world.jobs[second]
    assert (waiting.shares, waiting.reason) == ((), "Licenses")
    assert waiting.detail == f"volume data is being taken off {bench.volume.host}"
    assert (len(bench.of(ef.DetachVolume)), bench.of(ef.StartStep)) == (1, [])
    bench.detached()
    bench.attached()
    assert {one.job.id for one in bench.of(ef.StartStep)} == {second}


def test_a_late_word_that_it_came_to_another_machine_changes_nothing() -> None:
    bench = Disks()
    bench.make()
    bench.cluster("one")
    bench.up()
    (late,) = bench.of(ef.AttachVolume)
    bench.attached()
    before = bench.volume
    bench.attached(late, launch=late.node.launch - 1)
    assert (bench.volume, bench.of(ef.DetachVolume)) == (before, [])


def test_another_machine_of_that_name_waits_for_the_volume_too() -> None:
    bench = Disks()
    bench.make()
    first = bench.cluster("one")
    bench.up()
    bench.attached()
    node = bench.world.jobs[first].shares[0].node
    gone = bench.world.nodes[node]
    bench.step(rep.Vanished(node=node, launch=gone.launch))
    second = bench.cluster("two")
    bench.step(seconds=1)
    bench.up()
    assert bench.world.nodes[node].launch > gone.launch
    assert bench.world.jobs[second].shares[0].node == node
    (detach,) = bench.of(ef.DetachVolume)
    assert (detach.node, bench.of(ef.StartStep)) == (None, [])


def test_its_owner_pays_from_the_making_to_the_end() -> None:
    bench = Disks()
    bench.make()
    bench.step(seconds=3600)
    so_far = sum(entry.cost for entry in bench.store.entries.values())
    price = hourly(Build().volume(100), "us-east-1", PUBLISHED)
    assert so_far == price
    bench.ask(DeleteVolume(by=ALICE, name="data"))
    assert [one.volume.id for one in bench.of(ef.DropVolume)] == ["vol-1"]
    asked_at = bench.volume.asked_at
    bench.step(VolumeDropped(name="data", asked_at=asked_at), seconds=1799)
    assert bench.world.volumes == {}
    entries = bench.store.entries.values()
    assert sum(entry.cost for entry in entries) == price * 5400 // 3600
    assert {(entry.user, entry.job) for entry in entries} == {("alice", None)}


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (DeleteVolume(by=ALICE, name="none"), Unknown),
        (DeleteVolume(by=BOB, name="data"), Denied),
    ],
)
def test_only_its_owner_deletes_what_is_there(order: DeleteVolume, error: type) -> None:
    bench = Disks()
    bench.make()
    assert isinstance(bench.ask(order), error)


def test_a_word_of_an_earlier_volume_of_that_name_changes_nothing() -> None:
    bench = Disks()
    bench.ask(ASKED)
    before = bench.volume
    bench.step(VolumeDropped(name="data", asked_at=before.asked_at - 1))
    assert bench.volume is before
