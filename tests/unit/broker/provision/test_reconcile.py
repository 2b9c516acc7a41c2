"""What exists against what we hold: strays, losses, and ends that are certain."""

from dataclasses import dataclass, field, replace

import pytest

from accounting.tres import Tres
from broker.model.build import Build
from broker.model.effects import Terminate
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, MachineState, Market, Offer, Unstarted
from broker.model.reports import Terminated
from broker.providers.fake import Delays, FakeCloud
from broker.provision.reconcile import difference, terminate
from tests.unit.broker.made import machine

NAME = NodeName("ec2-1")
OFFER = Offer("fake", "us-east-1", ("z1",), "m7i.large", Market.ON_DEMAND, 100, 2, 8192)


class Clock:
    time = 1000

    def now(self) -> int:
        return self.time


def node(state: NodeState, launch: int = 1, *, declared: bool = False) -> Node:
    return Node(
        name=NAME,
        launch=launch,
        state=state,
        whole=Tres(cpu=2, node=1),
        partitions=("ec2",),
        declared=declared,
    )


@dataclass
class Two:
    """A provider that has bought twice."""

    held: list[Machine]
    ended: list[Machine] = field(default_factory=list)

    def machines(self) -> list[Machine]:
        return self.held

    def terminate(self, machines: list[Machine]) -> None:
        self.ended += machines


def cloud_with_a_machine(clock: Clock, *, stop: int = 0) -> FakeCloud:
    cloud = FakeCloud(clock, [], delays=Delays(boot=0, stop=stop))
    cloud.launch(OFFER, [(NAME, 1)], token="1/1")
    return cloud


def machines(there: str) -> list[Machine]:
    clock = Clock()
    if there == "none":
        return []
    cloud = cloud_with_a_machine(clock)
    if there == "ended":
        cloud.interrupt(NAME, 1, at=clock.time)
    return cloud.machines()


@pytest.mark.parametrize(
    ("nodes", "there", "stray", "lost"),
    [
        ([], "running", 1, 0),
        ([], "ended", 0, 0),
        ([node(NodeState.UP)], "running", 0, 0),
        ([node(NodeState.UP)], "ended", 0, 1),
        ([node(NodeState.UP)], "none", 0, 1),
        ([node(NodeState.BOOTING)], "ended", 0, 1),
        ([node(NodeState.DOWN)], "none", 0, 1),
        ([node(NodeState.LAUNCHING)], "none", 0, 0),
        ([node(NodeState.LAUNCHING)], "running", 0, 0),
        ([node(NodeState.TERMINATING)], "ended", 0, 0),
        ([node(NodeState.UP, launch=2)], "running", 1, 1),
        ([node(NodeState.UP, launch=0, declared=True)], "none", 0, 0),
    ],
)
def test_a_sweep_finds_machines_of_nobody_and_nodes_without_machine(
    nodes: list[Node], there: str, stray: int, lost: int
) -> None:
    found = difference({one.name: one for one in nodes}, machines(there))
    assert (len(found.stray), len(found.lost)) == (stray, lost)


def test_of_two_machines_of_one_node_the_other_is_a_stray_and_both_have_to_end() -> None:
    own, other = machine(), machine(id="i-2")
    up = replace(node(NodeState.UP), machine=own)
    found = difference({NAME: up}, [other, own])
    assert (found.stray, found.lost) == ((other,), ())
    gone = replace(own, state=MachineState.TERMINATED, terminated_at=9)
    found = difference({NAME: up}, [gone, other])
    assert (found.stray, [one.machine for one in found.lost]) == ((other,), [gone])
    cloud = Two([gone, other])
    effect = Terminate(NAME, 1, own, "1/1")
    assert terminate(effect, {"two": cloud}) is None  # type: ignore[dict-item]
    assert cloud.ended == [other]


def test_of_a_machine_that_somebody_copied_the_one_that_is_known_ends_first_and_is_told() -> None:
    own, copy = machine(id="i-9"), machine(id="i-2")
    effect = Terminate(NAME, 1, own, "1/1")
    cloud = Two([copy, own])
    assert terminate(effect, {"two": cloud}) is None  # type: ignore[dict-item]
    assert cloud.ended == [own]
    both = [replace(one, state=MachineState.TERMINATED, terminated_at=9) for one in (copy, own)]
    told = terminate(effect, {"two": Two(both)})  # type: ignore[dict-item]
    assert told is not None and told.machine == both[1]


def test_an_end_is_told_when_the_provider_is_certain_and_not_before() -> None:
    clock = Clock()
    cloud = cloud_with_a_machine(clock, stop=20)
    effect = Terminate(NAME, 1, None, "1/1")
    assert terminate(effect, {"fake": cloud}) is None
    clock.time += 19
    assert terminate(effect, {"fake": cloud}) is None
    clock.time += 1
    seen = terminate(effect, {"fake": cloud})
    assert isinstance(seen, Terminated)
    assert seen.machine is not None
    assert seen.machine.terminated_at == 1020


def test_a_machine_that_never_was_is_at_its_end() -> None:
    effect = Terminate(NAME, 1, None, "1/1")
    seen = terminate(effect, {"fake": FakeCloud(Clock(), [])})
    assert seen == Terminated(node=NAME, launch=1, machine=None)


@pytest.mark.parametrize(
    ("own", "refusal", "width"),
    [
        (False, Refusal.TRANSIENT, Width.REGION),
        (True, Refusal.TRANSIENT, Width.NOTHING),
        (True, Refusal.QUOTA, Width.REGION),
    ],
    ids=["the site's image", "the job's own image", "its own, and no room for volumes"],
)
def test_that_a_machine_could_not_be_started_may_be_for_the_jobs_own_image(
    own: bool, refusal: Refusal, width: Width
) -> None:
    late = Unstarted(refusal, Width.REGION, "so EC2 says")
    build = Build(images=(("", "ami-1"),)) if own else None
    held = replace(node(NodeState.BOOTING), build=build)
    gone = machine(state=MachineState.TERMINATED, unstarted=late)
    (lost,) = difference({NAME: held}, [gone]).lost
    assert lost.machine == replace(gone, unstarted=replace(late, width=width))
