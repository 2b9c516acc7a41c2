"""What is done now and then about machines of EC2."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import structlog

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.offer import Market
from broker.model.reports import Journal, Report
from broker.model.stopping import NodeStopping
from broker.providers.ec2.interruptions import Interruptions
from gateway.cloud import Cloud
from tests.unit.broker.made import machine
from tests.unit.broker.providers.ec2.test_interruptions import URL, Queue, event

MACHINE = machine(launch=7, market=Market.SPOT)
NODE = Node(
    name=NodeName("ec2-1"),
    launch=7,
    state=NodeState.UP,
    whole=Tres(2),
    partitions=("ec2",),
    machine=MACHINE,
    journal=120,
)


def test_an_interruption_out_of_a_queue_is_told_until_its_node_is_drained() -> None:
    queue = Queue({"r1": event("i-1"), "r2": event("i-foreign")})
    nodes = {NODE.name: NODE}
    told: list[Report] = []
    far = float("inf")
    cloud = Cloud(
        provider=None,  # type: ignore[arg-type]
        guard=None,  # type: ignore[arg-type]
        reach=None,  # type: ignore[arg-type]
        nodes=lambda: nodes,
        regions=tuple,
        interruptions=Interruptions(queue, {"us-east-1": URL}),
        quotas=None,  # type: ignore[arg-type]
        lease=0,
        log=structlog.get_logger(),
        next={"leftovers": far, "reserved": far, "quotas": far},
    )
    for _ in range(2):
        cloud.tidy(told.append, lambda node: False)
    record = {"kind": "notice", "action": "terminate", "when": "2026-11-29T21:00:00Z"}
    journal = Journal(node=NODE.name, launch=7, start=120, position=120, records=(record,))
    assert told == [journal, journal]
    assert list(queue.bodies) == ["r1"]
    nodes[NODE.name] = replace(NODE, drain=True)
    cloud.tidy(told.append, lambda node: False)
    assert (len(told), queue.bodies) == (2, {})


def test_a_node_is_woken_as_soon_as_it_answers_and_by_the_end_of_a_connection() -> None:
    woken: list[NodeName] = []
    connections = SimpleNamespace(knocker=SimpleNamespace())
    outside: dict[str, Any] = dict.fromkeys(
        ("guard", "interruptions", "lease", "log", "quotas", "regions")
    )
    other = replace(NODE, name=NodeName("ec2-2"), machine=machine(launch=8, address="10.9.9.9"))
    cloud = Cloud(
        nodes=lambda: {one.name: one for one in (NODE, other)},
        reach=SimpleNamespace(connections=connections),  # type: ignore[arg-type]
        provider=SimpleNamespace(seen=lambda one: one),  # type: ignore[arg-type]
        **outside,
    )
    cloud.attended(lambda report: None, woken.append, posts=lambda node: False)
    connections.knocker.greeted(MACHINE.address)
    connections.ended("10.9.9.9")
    connections.ended("10.0.0.99")
    assert woken == ["ec2-1", "ec2-2"]


def test_a_machine_that_stops_is_not_spoken_to_as_before() -> None:
    gone: list[str] = []
    outside: dict[str, Any] = {
        "reach": SimpleNamespace(connections=SimpleNamespace(forget=gone.append)),
        **dict.fromkeys(
            ("guard", "provider", "interruptions", "lease", "log", "quotas", "regions")
        ),
    }
    cloud = Cloud(nodes=lambda: {NODE.name: NODE}, **outside)
    cloud.hear([NodeStopping(node=NODE.name, launch=7, at=1, keeper=JobId(3))])
    assert gone == [MACHINE.address]
