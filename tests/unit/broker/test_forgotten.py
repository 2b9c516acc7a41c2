"""Nodes whose agent began anew are known by a journal that is shorter than what was read of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.decide.forgotten import FORGOTTEN
from broker.model import commands as cmd
from broker.model import effects as ef
from broker.model import reports as rep
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.ports import Done, Place
from broker.run import steps
from broker.run.pushed import Pushes
from tests.unit.broker.test_engine import ALICE, DECLARED, ELASTIC, Bench
from tests.unit.broker.test_engine_lost import bring_up_all

NAME = NodeName("n1")


def forget(bench: Bench, node: NodeName, *attempts: str) -> None:
    """Its agent began anew, and knows these attempts alone."""
    records = tuple({"kind": "accepted", "attempt": one} for one in attempts)
    launch = bench.world.nodes[node].launch
    bench.step(rep.JournalLost(node=node, launch=launch, records=records))


def running(bench: Bench) -> JobId:
    job = bench.submit()
    bench.journal("n1", {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    return job


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def test_a_job_that_the_new_agent_does_not_know_has_failed_and_is_not_begun_again(
    bench: Bench,
) -> None:
    job = running(bench)
    forget(bench, NAME)
    assert bench.state(job) == "NODE_FAIL"
    assert not bench.world.jobs[job].shares
    node = bench.world.nodes[NAME]
    assert (node.journal, node.drain, node.reason) == (0, True, FORGOTTEN)


def test_a_job_that_ends_when_its_node_forgets_it_does_not_end_for_ever(bench: Bench) -> None:
    job = running(bench)
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert bench.world.jobs[job].completing
    forget(bench, NAME)
    assert bench.state(job) == "CANCELLED"
    assert not bench.world.jobs[job].completing


def test_what_the_new_agent_knows_goes_on_and_its_journal_is_read_from_the_beginning(
    bench: Bench,
) -> None:
    bench.journal("n1", {"kind": "unheard of"})
    job = bench.submit()
    key = bench.world.jobs[job].key
    forget(bench, NAME, key)
    assert bench.state(job) == "CONFIGURING"
    assert (bench.world.nodes[NAME].journal, bench.world.nodes[NAME].drain) == (0, False)
    bench.run(job)
    assert bench.state(job) == "COMPLETED"


def test_a_free_node_that_was_made_anew_takes_jobs_as_before(bench: Bench) -> None:
    bench.journal("n1", {"kind": "unheard of"})
    forget(bench, NAME)
    job = bench.submit()
    assert bench.world.jobs[job].shares[0].node == NAME
    bench.run(job)
    assert bench.state(job) == "COMPLETED"


def test_a_bought_machine_is_let_go_and_its_job_begins_anew_once_it_is_gone() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    bring_up_all(bench)
    (share,) = bench.world.jobs[job].shares
    bench.journal(share.node, {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    forget(bench, share.node)
    node = bench.world.nodes[share.node]
    assert (node.state, bench.state(job)) == (NodeState.TERMINATING, "RUNNING")
    assert any(isinstance(effect, ef.Terminate) for effect in bench.effects)
    bench.step(rep.Terminated(node=node.name, launch=node.launch, machine=node.machine))
    again = bench.world.jobs[job]
    assert (again.attempt, again.restarts) == (2, 1)


@dataclass
class Host:
    """A node whose agent has a journal of one line."""

    line: bytes = b'{"seq": 1, "kind": "accepted", "attempt": "7/1"}\n'

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        raise AssertionError(argv)

    def put(self, data: bytes, path: str, mode: int) -> None:
        raise AssertionError(path)

    def read(self, path: str, offset: int) -> bytes:
        return self.line[offset:]

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        return json.dumps({"ok": True, "journal": len(self.line)}).encode() + b"\n"

    def place(self, node: Node) -> Place:
        return Place(self, "/n")


NODE = Node(NAME, 0, NodeState.UP, Tres(cpu=1), ("ec2",))


@pytest.mark.parametrize(("more", "anew"), [(0, False), (1, True)])
def test_a_journal_that_is_shorter_than_what_was_read_is_another(more: int, anew: bool) -> None:
    host = Host()
    node = replace(NODE, journal=len(host.line) + more)
    found = steps.follow(ef.Follow(node, check=True), host, Pushes())
    told = ({"seq": 1, "kind": "accepted", "attempt": "7/1"},)
    assert found == (rep.JournalLost(node=NAME, launch=0, records=told) if anew else None)
