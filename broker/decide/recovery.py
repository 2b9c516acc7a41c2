"""How jobs go on after a failure: a class from evidence, an action from the class. Pure.

What follows from a message is judged once more before it counts: each failure on machines that were
bought gets its decision, told with what it rests on, and restarts that would not help are held.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from broker.decide.ending import TAKEN_BACK
from broker.model import events as ev
from broker.model.facts import SYSTEM
from broker.model.job import Hold, Job, JobState
from broker.model.node import Node, NodeState
from broker.model.recovery import POLICY, Action, Decided, Failure
from broker.world import World

WINDOW = 300
"""Seconds within which losses count as one incident."""
FEWEST_LOST = 5
"""So many machines at least, and as many as are left: then it is no chance."""
MOST_RESTARTS = 100
"""A job that came back so often does not mend by coming back."""
BY_WORDS: Sequence[tuple[re.Pattern[str], Failure]] = tuple(
    (re.compile(pattern, re.IGNORECASE), failure)
    for pattern, failure in (
        (r"\bgpu\b|nvidia|xid|neuron", Failure.ACCELERATOR),
        (r"nccl|rendezvous|\befa\b|\bmpi\b", Failure.COMMUNICATION),
        (r"at most .* brought|no such folder to bring|cannot be brought", Failure.DATA),
        (r"checkpoint .*corrupt|is not what was (put|written)", Failure.ARTIFACT),
        (r"s3://|no space left|disk|input/output error|read-only file", Failure.STORAGE),
        (r"no route|timed out|unreachable|connection|does not answer", Failure.NETWORK),
        (r"cannot be had|blob|journal|configuration", Failure.CONTROL_PLANE),
    )
)
"""What words of ours and of nodes are evidence of; the first that fits."""
BY_STATE: Mapping[JobState, Failure] = {
    JobState.FAILED: Failure.APPLICATION,
    JobState.OUT_OF_MEMORY: Failure.APPLICATION,
    JobState.NODE_FAIL: Failure.NODE_LOSS,
    JobState.BOOT_FAIL: Failure.NODE_LOSS,
    JobState.PREEMPTED: Failure.PREEMPTION,
}
"""Ends that are failures; all others are what somebody wanted."""
BY_REASON: Mapping[str, Failure] = {
    "SystemFailure": Failure.WORKER_CRASH,
    "NodeDown": Failure.NODE_LOSS,
}
CHOICE: Mapping[Failure, Action] = {
    Failure.APPLICATION: Action.RETRY,
    Failure.DATA: Action.FAIL,
    Failure.WORKER_CRASH: Action.RETRY,
    Failure.NODE_LOSS: Action.REPLACE_NODE,
    Failure.ACCELERATOR: Action.REPLACE_NODE,
    Failure.COMMUNICATION: Action.RESTART_GANG,
    Failure.NETWORK: Action.RETRY,
    Failure.STORAGE: Action.RETRY,
    Failure.ARTIFACT: Action.RETRY,
    Failure.PREEMPTION: Action.REPLACE_NODE,
    Failure.CORRELATED: Action.FREEZE,
    Failure.CONTROL_PLANE: Action.RETRY,
    Failure.UNKNOWN: Action.RETRY,
}
"""For a job that goes back to the queue; of one that does not, the failure stands."""
HELD = frozenset({Action.PAUSE, Action.FREEZE})
LOSSES = frozenset({Failure.NODE_LOSS, Failure.CORRELATED})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a failure."""

    state: JobState | None
    """The outcome; None where the job goes back to the queue."""
    why: str = ""
    reason: str = ""
    own: bool = False
    """Whether its own program failed, after which it may start again."""
    nodes: int = 1
    restarts: int = 0
    lost: int = 0
    """Machines lost lately, this one included."""
    up: int = 0
    """Machines that are left."""

    def __str__(self) -> str:
        facts = [self.why or self.reason, f"restart {self.restarts + 1}" if not self.state else ""]
        facts.append(f"{self.lost} machines lost in {WINDOW} s" if self.lost > 1 else "")
        return ", ".join(filter(None, facts))


def classify(evidence: Evidence) -> Failure:
    """The class of a failure."""
    found = _alone(evidence)
    many = evidence.lost >= max(FEWEST_LOST, evidence.up)
    return Failure.CORRELATED if found is Failure.NODE_LOSS and many else found


def _alone(evidence: Evidence) -> Failure:
    if evidence.why == TAKEN_BACK or evidence.why.startswith("preempted"):
        return Failure.PREEMPTION
    if evidence.own:
        return Failure.APPLICATION
    if evidence.reason in BY_REASON:
        return BY_REASON[evidence.reason]
    by_words = (failure for words, failure in BY_WORDS if words.search(evidence.why))
    if found := next(by_words, None):
        return found
    if evidence.state is None:
        return Failure.NODE_LOSS if "machine" in evidence.why else Failure.UNKNOWN
    return BY_STATE.get(evidence.state, Failure.UNKNOWN)


def choose(failure: Failure, evidence: Evidence) -> Action:
    """What is done."""
    if evidence.state is not None:
        return Action.FAIL
    if evidence.restarts >= MOST_RESTARTS:
        return Action.PAUSE
    action = CHOICE[failure]
    gang = action in {Action.RETRY, Action.REPLACE_NODE} and evidence.nodes > 1
    return Action.RESTART_GANG if gang else action


def judged(world: World, facts: Sequence[ev.Event], now: int) -> Sequence[ev.Event]:
    """The facts with the decision before each end or return that a failure caused."""
    if not any(isinstance(fact, ev.Requeued | ev.Ended) for fact in facts):
        return facts
    found: list[ev.Event] = []
    for fact in facts:
        found += _judged(world, fact, now) if isinstance(fact, ev.Requeued | ev.Ended) else [fact]
    return found


def _judged(world: World, fact: ev.Requeued | ev.Ended, now: int) -> Sequence[ev.Event]:
    job = world.jobs.get(fact.job)
    node = None if job is None else _bought(world, job)
    state = fact.state if isinstance(fact, ev.Ended) else None
    wanted = fact.actor != SYSTEM or (state is not None and state not in BY_STATE)
    if job is None or node is None or wanted:
        return [fact]
    evidence = _evidence(world, job, fact, node=node, now=now)
    failure = classify(evidence)
    action = choose(failure, evidence)
    decided = Decided(
        job=job.id,
        at=now,
        failure=failure,
        action=action,
        policy=POLICY,
        evidence=str(evidence),
        machine=node.label if failure in LOSSES else "",
    )
    if action in HELD and isinstance(fact, ev.Requeued):
        fact = replace(fact, hold=Hold.ADMIN, priority=0)
    return [decided, fact]


def _evidence(
    world: World, job: Job, fact: ev.Requeued | ev.Ended, *, node: Node, now: int
) -> Evidence:
    lost = {
        one.lost_machine
        for one in world.jobs.values()
        if one.lost_at is not None and now - one.lost_at < WINDOW
    } | {node.label}
    return Evidence(
        state=fact.state if isinstance(fact, ev.Ended) else None,
        why=fact.why or node.reason,
        reason=fact.reason if isinstance(fact, ev.Ended) else "",
        own=isinstance(fact, ev.Requeued) and fact.failed,
        nodes=len(job.shares),
        restarts=job.restarts,
        lost=len(lost),
        up=sum(
            one.state is NodeState.UP and not one.declared and one.label not in lost
            for one in world.nodes.values()
        ),
    )


def _bought(world: World, job: Job) -> Node | None:
    """The first of its nodes that is a machine which was bought."""
    nodes = (world.nodes.get(share.node) for share in job.shares)
    return next((node for node in nodes if node is not None and node.machine), None)
