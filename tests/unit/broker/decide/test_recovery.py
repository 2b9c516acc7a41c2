"""What a failure is taken for, and what follows; restarts that would not help are held."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.decide.ending import TAKEN_BACK
from broker.decide.recovery import (
    CHOICE,
    FEWEST_LOST,
    MOST_RESTARTS,
    WINDOW,
    Evidence,
    choose,
    classify,
    judged,
)
from broker.model import events as ev
from broker.model.ids import NodeName
from broker.model.job import Hold, JobState, Share
from broker.model.offer import Machine
from broker.model.recovery import POLICY, Action, Decided, Failure
from broker.world import World
from tests.contract import records
from tests.sim.site import SITE
from tests.unit.broker import made

NOW = 1_800_000_000
GONE = "machine vanished"

CLASSES = (
    (Evidence(None, TAKEN_BACK), Failure.PREEMPTION),
    (Evidence(None, "preempted"), Failure.PREEMPTION),
    (Evidence(JobState.PREEMPTED), Failure.PREEMPTION),
    (Evidence(None, GONE), Failure.NODE_LOSS),
    (Evidence(JobState.NODE_FAIL, reason="NodeDown"), Failure.NODE_LOSS),
    (Evidence(JobState.FAILED, reason="NonZeroExitCode"), Failure.APPLICATION),
    (Evidence(JobState.OUT_OF_MEMORY, reason="OutOfMemory"), Failure.APPLICATION),
    (Evidence(None, own=True), Failure.APPLICATION),
    (Evidence(JobState.FAILED, reason="SystemFailure"), Failure.WORKER_CRASH),
    (Evidence(JobState.FAILED, "/x: no such folder to bring to n"), Failure.DATA),
    (Evidence(JobState.FAILED, "s3://b/k: NoSuchBucket"), Failure.STORAGE),
    (Evidence(JobState.FAILED, "No space left on device"), Failure.STORAGE),
    (Evidence(JobState.FAILED, "GPU 3 fell off the bus (Xid 79)"), Failure.ACCELERATOR),
    (Evidence(JobState.FAILED, "NCCL timed out"), Failure.COMMUNICATION),
    (Evidence(JobState.FAILED, "no route to host"), Failure.NETWORK),
    (Evidence(JobState.FAILED, "checkpoint 4 is corrupt"), Failure.ARTIFACT),
    (Evidence(JobState.FAILED, "unknown blob 12"), Failure.CONTROL_PLANE),
    (Evidence(None, "something"), Failure.UNKNOWN),
    (Evidence(None, GONE, lost=FEWEST_LOST, up=FEWEST_LOST), Failure.CORRELATED),
    (Evidence(None, GONE, lost=FEWEST_LOST, up=FEWEST_LOST + 1), Failure.NODE_LOSS),
    (Evidence(None, GONE, lost=FEWEST_LOST - 1), Failure.NODE_LOSS),
    (Evidence(None, TAKEN_BACK, lost=50), Failure.PREEMPTION),
)


@pytest.mark.parametrize(("evidence", "failure"), CLASSES)
def test_evidence_has_a_class(evidence: Evidence, failure: Failure) -> None:
    assert classify(evidence) is failure


ACTIONS = (
    (Failure.APPLICATION, Evidence(JobState.FAILED), Action.FAIL),
    (Failure.NODE_LOSS, Evidence(JobState.NODE_FAIL), Action.FAIL),
    (Failure.APPLICATION, Evidence(None), Action.RETRY),
    (Failure.NODE_LOSS, Evidence(None), Action.REPLACE_NODE),
    (Failure.NODE_LOSS, Evidence(None, nodes=4), Action.RESTART_GANG),
    (Failure.PREEMPTION, Evidence(None), Action.REPLACE_NODE),
    (Failure.CORRELATED, Evidence(None, nodes=4), Action.FREEZE),
    (Failure.NODE_LOSS, Evidence(None, restarts=MOST_RESTARTS), Action.PAUSE),
)


@pytest.mark.parametrize(("failure", "evidence", "action"), ACTIONS)
def test_a_class_has_an_action(failure: Failure, evidence: Evidence, action: Action) -> None:
    assert choose(failure, evidence) is action


def test_every_class_has_one() -> None:
    assert set(CHOICE) == set(Failure)


def world(*, machines: int, lost: int, ago: int = 0) -> World:
    """One job on the first of some machines; others lost theirs before."""
    made = World(SITE)
    for number in range(1, machines + 1):
        node = records.node(f"ec2-{number}", machine=machine(number))
        made.nodes[node.name] = node
    share = Share(NodeName("ec2-1"), 1, Tres(cpu=1))
    made.jobs[JobId(1)] = records.job(1, shares=(share,))
    for number in range(2, 2 + lost):
        gone = {"lost_machine": f"gone-{number}.1", "lost_at": NOW - ago}
        made.jobs[JobId(number)] = records.job(number, **gone)
    return made


def machine(number: int) -> Machine:
    return made.machine(
        id=f"i-{number}", node=NodeName(f"ec2-{number}"), launched_at=NOW, address="10.0.0.1"
    )


def back(why: str) -> ev.Requeued:
    return ev.Requeued(job=JobId(1), at=NOW, why=why, priority=7)


def test_a_decision_stands_before_what_it_led_to() -> None:
    decided, fact = judged(world(machines=3, lost=0), [back(GONE)], NOW)
    assert isinstance(decided, Decided)
    assert (decided.failure, decided.action) == (Failure.NODE_LOSS, Action.REPLACE_NODE)
    assert decided.policy == POLICY
    assert str(decided) == (
        f"node loss: replace the node (machine vanished, restart 1; policy {POLICY})"
    )
    assert fact == back(GONE)


def test_a_correlated_incident_holds_jobs_instead_of_starting_them_again() -> None:
    decided, fact = judged(world(machines=3, lost=FEWEST_LOST), [back(GONE)], NOW)
    assert isinstance(decided, Decided)
    assert decided.failure is Failure.CORRELATED
    assert fact == replace(back(GONE), hold=Hold.ADMIN, priority=0)


@pytest.mark.parametrize(("ago", "why"), [(WINDOW, GONE), (0, TAKEN_BACK)])
def test_old_losses_and_spot_are_no_incident(ago: int, why: str) -> None:
    facts = judged(world(machines=3, lost=FEWEST_LOST, ago=ago), [back(why)], NOW)
    assert facts[-1] == back(why)


WANTED = (
    replace(back(GONE), actor=1000),
    ev.Ended(job=JobId(1), at=NOW, state=JobState.COMPLETED, reason="None"),
    ev.Ended(job=JobId(1), at=NOW, state=JobState.CANCELLED, reason="None"),
    ev.Ended(job=JobId(1), at=NOW, state=JobState.TIMEOUT, reason="TimeLimit"),
    ev.Released(job=JobId(1), at=NOW),
)


@pytest.mark.parametrize("fact", WANTED)
def test_what_somebody_wanted_is_no_failure(fact: ev.JobEvent) -> None:
    assert list(judged(world(machines=3, lost=0), [fact], NOW)) == [fact]


def test_declared_nodes_decide_nothing() -> None:
    there = world(machines=1, lost=0)
    there.nodes.update(
        (name, replace(node, machine=None)) for name, node in list(there.nodes.items())
    )
    assert list(judged(there, [back(GONE)], NOW)) == [back(GONE)]
