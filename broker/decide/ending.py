"""How jobs end: outcomes from exit codes, ends that were asked for, ends by loss of a node."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.model import events as ev
from broker.model.evolve import made
from broker.model.ids import NodeName
from broker.model.job import ExitCode, Job, JobState, Step, StepState
from broker.model.left import PREEMPTED
from broker.model.node import Node, NodeState
from broker.world import World

OOM_SIGNAL = 125
"""Slurm's made-up signal number of OUT_OF_MEMORY."""
LAUNCH_SIGNAL = 53
"""What Slurm reports when a job's output could not be opened (`0:53`)."""
NODE_FAIL_EXIT = ExitCode(1, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    state: JobState
    reason: str
    exit: ExitCode
    step: StepState


def outcome(cause: str, exit_code: ExitCode) -> Outcome:
    """What a batch step's end means for its job (Slurm 25.11; slurm_grammars section 10)."""
    fixed = BY_CAUSE.get(cause)
    if fixed is not None:
        state, reason, step, override = fixed
        return Outcome(state, reason, override or exit_code, step)
    if exit_code.signal:
        return Outcome(JobState.FAILED, raised(exit_code.signal), exit_code, StepState.CANCELLED)
    if exit_code.code:
        return Outcome(JobState.FAILED, "NonZeroExitCode", exit_code, StepState.FAILED)
    return Outcome(JobState.COMPLETED, "None", exit_code, StepState.COMPLETED)


BY_CAUSE: Mapping[str, tuple[JobState, str, StepState, ExitCode | None]] = {
    "time_limit": (JobState.TIMEOUT, "TimeLimit", StepState.CANCELLED, None),
    "out_of_memory": (
        JobState.OUT_OF_MEMORY,
        "OutOfMemory",
        StepState.OUT_OF_MEMORY,
        ExitCode(0, OOM_SIGNAL),
    ),
    "launch_failed": (
        JobState.FAILED,
        "RaisedSignal:53(Real-time signal 19)",
        StepState.CANCELLED,
        ExitCode(0, LAUNCH_SIGNAL),
    ),
    "node_fail": (JobState.NODE_FAIL, "NodeDown", StepState.NODE_FAIL, NODE_FAIL_EXIT),
    "supervisor_lost": (JobState.FAILED, "SystemFailure", StepState.FAILED, ExitCode(1, 0)),
}


def raised(number: int) -> str:
    """Slurm's reason for a job that a signal ended, such as `RaisedSignal:9(Killed)`."""
    text = signal.strsignal(number) if 0 < number < signal.NSIG else None
    return f"RaisedSignal:{number}({text or f'Unknown signal {number}'})"


def step_state(exit_code: ExitCode) -> StepState:
    """State of a step by its exit code alone."""
    return outcome("exit", exit_code).step


def cancelled(job: Job, *, by: int, now: int) -> ev.Ended:
    """`scancel` of a job; one that never started keeps the reason it waited for (25.11)."""
    return made(
        ev.Ended,
        job=job.id,
        at=now,
        actor=by,
        state=JobState.CANCELLED,
        reason=job.reason if job.state is JobState.PENDING else "None",
        by=by,
        kill_cause="cancelled" if job.shares else "",
    )


TAKEN_BACK = "machine taken back"
"""Why a job was lost that its provider pushed out: that is preemption."""
WITHDRAWN = "machine ended by its provider"
"""Why one was lost whose machine its provider took otherwise: of the reason's beginning."""


def lost(job: Job, node: Node, *, now: int, why: str, requeue: bool) -> list[ev.JobEvent]:
    """The node is gone for certain: back to the queue if it may, else NODE_FAIL 1:0 (PREEMPTED
    where its provider took it back).

    Its end is certain only if nothing of it can live elsewhere; else it is ended there first.
    """
    over, taken = _only_there(job, node.name), why == TAKEN_BACK
    cause = "" if over else "node_fail"
    facts: list[ev.JobEvent] = []
    if not job.completing and requeue:
        back = ev.Requeued(
            job=job.id,
            at=now,
            why=why,
            hold=job.hold,
            priority=job.priority,
            kill_cause=PREEMPTED if taken else cause,
            region=region_of(node),
        )
        facts.append(back)
    elif not job.completing:
        end = ev.Ended(
            job=job.id,
            at=now,
            why=why,
            state=JobState.PREEMPTED if taken else JobState.NODE_FAIL,
            reason="None" if taken else "NodeDown",
            exit=ExitCode(0, signal.SIGTERM) if taken else NODE_FAIL_EXIT,
            kill_cause=PREEMPTED if taken else cause,
        )
        facts.append(end)
    if over:
        return [*_cut(job, job.steps, now), *facts, ev.Released(job=job.id, at=now, why=why)]
    hit = [step for step in job.steps if node.name in places(job, step)]
    return [*_cut(job, hit, now), *facts, ev.NodeCleared(job=job.id, at=now, node=node.name)]


def region_of(node: Node) -> str | None:
    """Where its machine is, or was."""
    return node.machine.region if node.machine else None


def _cut(job: Job, steps: Iterable[Step], now: int) -> list[ev.JobEvent]:
    return [
        ev.StepEnded(job=job.id, at=now, step=s.id, state=StepState.NODE_FAIL, exit=NODE_FAIL_EXIT)
        for s in steps
        if not s.state.final
    ]


def places(job: Job, step: Step) -> tuple[NodeName, ...]:
    """Nodes on which a step lives, or did."""
    if step.shares:
        return tuple(share.node for share in step.shares)
    return tuple(share.node for share in job.shares[:1]) if step.spec is None else ()


def _only_there(job: Job, node: NodeName) -> bool:
    """Whether nothing of the job can live on any other node that is not known to be clear."""
    if job.completing:
        return not not_cleared(job, but=node)
    living = [step for step in job.steps if not step.state.final]
    there = {place for step in living for place in places(job, step)}
    return (there or {job.shares[0].node}) <= {node}


def not_cleared(job: Job, *, but: NodeName) -> list[NodeName]:
    """Other nodes where something of an attempt that ends may be left."""
    nodes = (share.node for share in job.shares)
    return [node for node in nodes if node != but and node not in job.cleared]


def never_ran(world: World, job: Job) -> bool:
    """Its nodes were not all up: nothing can have been started on them."""
    if not job.configuring or not job.shares:
        return False
    nodes = (world.nodes.get(share.node) for share in job.shares)
    return any(node is None or node.state is not NodeState.UP for node in nodes)
