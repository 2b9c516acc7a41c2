"""Nodes that cannot take jobs are drained, and resumed when they can."""

import pytest

from broker.model import commands as cmd
from broker.model import reports as rep
from tests.unit.broker.test_engine import DECLARED, ROOT, Bench

FULL = "disk of the agent is full: 0 MiB are free"


def say(bench: Bench, text: str, launch: int = 0) -> None:
    node = bench.world.nodes["n1"]  # type: ignore[index]
    bench.step(rep.NodeTrouble(node=node.name, launch=launch, text=text))


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def test_a_node_in_trouble_gets_no_jobs_until_it_is_well(bench: Bench) -> None:
    say(bench, FULL)
    node = bench.world.nodes["n1"]  # type: ignore[index]
    assert (node.drain, node.reason, node.reason_uid) == (True, FULL, 0)
    first = bench.submit()
    assert bench.world.jobs[first].shares[0].node == "n2"
    say(bench, "")
    assert not bench.world.nodes["n1"].drain  # type: ignore[index]
    second = bench.submit()
    assert bench.world.jobs[second].shares[0].node == "n1"


def test_words_of_another_machine_change_nothing(bench: Bench) -> None:
    say(bench, FULL, launch=7)
    assert not bench.world.nodes["n1"].drain  # type: ignore[index]


def test_an_operators_drain_stays(bench: Bench) -> None:
    node = bench.world.nodes["n1"]  # type: ignore[index]
    asked = cmd.SetNode(node=node.name, by=ROOT, state="drain", reason="fan")
    bench.step(asked)
    say(bench, FULL)
    assert bench.world.nodes["n1"].reason == "fan"  # type: ignore[index]
