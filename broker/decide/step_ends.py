"""Steps begin and end: on their one node, or part by part on several (Slurm 25.11)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker.decide.ending import Outcome, outcome, step_state
from broker.model import events as ev
from broker.model.ids import BATCH, NodeName
from broker.model.job import ExitCode, Job, Part, Step, StepState, Usage
from broker.model.lifecycle import Life, life
from broker.schedule.ranks import ranks

WORST_FIRST = ("node_fail", "supervisor_lost", "launch_failed", "out_of_memory", "time_limit")
"""Of several nodes' causes the one that names the step's end."""
DOOMING = ("node_fail", "supervisor_lost", "launch_failed", "task_failure")
"""Causes of an end on one node after which the step is ended on the others."""


def begun(job: Job, step: Step, *, node: NodeName | None, now: int) -> list[ev.JobEvent]:
    """It runs on that node; a step of several runs as soon as it does on one."""
    facts: list[ev.JobEvent] = []
    if step.more and node is not None and step.part(node) is None:
        facts.append(ev.StepPart(job=job.id, at=now, step=step.id, part=Part(node)))
    if step.state is StepState.PENDING:
        facts.append(ev.StepStarted(job=job.id, at=now, step=step.id))
        if step.id == BATCH and life(job) is Life.CONFIGURING:
            facts.append(ev.Started(job=job.id, at=now))
    return facts


def ended(
    job: Job, step: Step, record: Mapping[str, Any], *, node: NodeName | None, now: int
) -> tuple[list[ev.JobEvent], Outcome | None]:
    """Facts of an end in a node's journal; the outcome once the whole step is over."""
    facts = begun(job, step, node=node, now=now) if record.get("started") else []
    if not step.more or node is None:
        end = _end(job, step, _part(record, node or NodeName("")), now=now)
        return [*facts, replace_phase(end, record)], _outcome(record)
    known = step.part(node)
    if known is not None and known.ended:
        return [], None
    own = _part(record, node)
    facts.append(ev.StepPart(job=job.id, at=now, step=step.id, part=own))
    parts = [*(part for part in step.parts if part.node != node), own]
    over = {part.node for part in parts if part.ended}
    if all(share.node in over for share in step.shares):
        whole = merged(step, parts)
        return [*facts, _end(job, step, whole, now=now)], _outcome_of(whole)
    doom = _doom(step, own)
    if doom:
        facts.append(ev.StepDoomed(job=job.id, at=now, step=step.id, cause=doom))
    return facts, None


def _doom(step: Step, part: Part) -> str:
    """Why the step is to be ended on its other nodes; empty where it is not."""
    if step.kill_cause:
        return ""
    failed = part.exit != ExitCode() and step.spec is not None and step.spec.kill_on_bad_exit
    return part.cause if part.cause in DOOMING else "task_failure" if failed else ""


def replace_phase(end: ev.StepEnded, record: Mapping[str, Any]) -> ev.StepEnded:
    return replace(end, phase=str(record.get("phase") or ""))


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return _outcome_of(_part(record, NodeName("")))


def _outcome_of(part: Part) -> Outcome:
    return outcome(part.cause, part.exit)


def _part(record: Mapping[str, Any], node: NodeName) -> Part:
    code = ExitCode(int(record.get("code") or 0), int(record.get("signal") or 0))
    ends = sorted(record.get("tasks") or (), key=lambda end: int(end["rank"]))
    tasks = tuple(ExitCode(int(end["code"]), int(end["signal"])) for end in ends)
    return Part(
        node=node,
        ended=True,
        cause=str(record.get("cause") or "exit"),
        exit=code,
        usage=_usage(record),
        tasks=() if all(one == code for one in tasks) else tasks,
    )


def _usage(record: Mapping[str, Any]) -> Usage:
    util = record.get("gpu_util")
    return Usage(
        user_us=int(record.get("user_us") or 0),
        system_us=int(record.get("sys_us") or 0),
        max_rss_kib=int(record.get("max_rss_kib") or 0),
        max_size_kib=int(record.get("max_size_kib") or 0),
        read=int(record.get("read") or 0),
        written=int(record.get("written") or 0),
        pages=int(record.get("pages") or 0),
        gpu_util=None if util is None else int(util),
        gpu_util_max=int(record.get("gpu_util_max") or 0),
        gpu_mem_mib=int(record.get("gpu_mem_mib") or 0),
    )


def _end(job: Job, step: Step, part: Part, *, now: int) -> ev.StepEnded:
    result = _outcome_of(part)
    state = result.step
    if step.id != BATCH and state is StepState.COMPLETED:
        state = step_state(result.exit)
    if step.numbered and part.cause == "time_limit":
        state = StepState.TIMEOUT  # its own limit; that of its job cancels it
    killed = step.kill_cause and step.kill_cause not in DOOMING
    if killed or (job.completing and result.exit.signal):
        state = StepState.CANCELLED
    same = all(one == result.exit for one in part.tasks)
    return ev.StepEnded(
        job=job.id,
        at=now,
        step=step.id,
        state=state,
        exit=result.exit,
        usage=part.usage,
        tasks=() if same else part.tasks,
    )


# ---------------------------------------------------------------- several nodes


def merged(step: Step, parts: Iterable[Part]) -> Part:
    """One end from those of all nodes: the worst of the tasks', the sum of what they used."""
    by_node = {part.node: part for part in parts}
    found = [by_node[share.node] for share in step.shares]
    by_rank = {
        rank: end
        for part, own in zip(found, ranks(step), strict=True)
        for rank, end in zip(own, part.tasks or (part.exit,) * len(own), strict=False)
    }
    tasks = tuple(by_rank[rank] for rank in sorted(by_rank))
    causes = {part.cause for part in found}
    return Part(
        node=found[0].node,
        ended=True,
        cause=next((cause for cause in WORST_FIRST if cause in causes), "exit"),
        exit=max((part.exit for part in found), key=_as_waited),
        usage=_together([part.usage for part in found]),
        tasks=tasks,
    )


def _as_waited(end: ExitCode) -> tuple[int, int]:
    """As slurmctld compares nodes' ends, by wait(2)'s word: a code is above any signal (22.05).

    So a task that failed is not outshone by those that were ended because of it.
    """
    return end.code, end.signal


def _together(parts: Sequence[Usage]) -> Usage:
    """Times, bytes and page faults are summed; of all else the node with the most counts."""
    utils = [part.gpu_util for part in parts if part.gpu_util is not None]
    return Usage(
        user_us=sum(part.user_us for part in parts),
        system_us=sum(part.system_us for part in parts),
        max_rss_kib=max(part.max_rss_kib for part in parts),
        max_size_kib=max(part.max_size_kib for part in parts),
        read=sum(part.read for part in parts),
        written=sum(part.written for part in parts),
        pages=sum(part.pages for part in parts),
        gpu_util=max(utils, default=None),
        gpu_util_max=max(part.gpu_util_max for part in parts),
        gpu_mem_mib=max(part.gpu_mem_mib for part in parts),
    )
