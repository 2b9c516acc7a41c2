"""What was seen outside, turned into facts; late and repeated words change nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accounting.ids import JobId
from broker.decide.ending import (
    TAKEN_BACK,
    WITHDRAWN,
    Outcome,
    lost,
    never_ran,
    not_cleared,
)
from broker.decide.gang import unplaced_with
from broker.decide.managed import run_over
from broker.decide.recovery import judged
from broker.decide.reduced import goes_on, reduced
from broker.decide.replacing import replaced
from broker.decide.rules import NOTHING, Decision
from broker.decide.step_ends import begun, ended
from broker.decide.stopping import (
    HALTED,
    cleared,
    fell_back,
    keeper_lost,
    keeper_of,
    stopped_behind,
)
from broker.decide.taken import may_requeue, on_notice
from broker.decide.telling import unkillable
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model import reports as rep
from broker.model.errors import Refusal, Width, quota_reason
from broker.model.ids import BATCH, NodeName, parse_step_key
from broker.model.job import IMPOSSIBLE, ExitCode, Hold, Job, JobState, Step, StepState
from broker.model.kin import kindred
from broker.model.lifecycle import Life, life
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, MachineState, Market, Unstarted
from broker.schedule.demand import demand
from broker.schedule.fit import Room, even_shares, room
from broker.schedule.holding import schedulable
from broker.world import World

PART = "others that its job needs beside it cannot be had"
TOLD_REFUSALS = 3
"""So many of a purchase's refusals are told in the job's record."""


def _of_group(world: World, group: str) -> list[Node]:
    return [world.nodes[name] for name in sorted(world.nodes) if world.nodes[name].group == group]


def decide_launched(world: World, seen: rep.Launched, now: int) -> Decision:
    """Machines stand behind the group's nodes; what they really are is known now."""
    facts: list[ev.Event] = []
    by_name = {machine.node: machine for machine in seen.machines}
    bought: dict[NodeName, Node] = {}
    for node in _of_group(world, seen.group):
        machine = by_name.get(node.name)
        if machine is None or machine.launch != node.launch or node.machine is not None:
            continue
        fact = _bought(world, node, machine, now=now)
        bought[node.name] = replace(node, whole=fact.whole)
        facts.append(fact)
    holders = {job.id: job for name in bought for job in world.holders_of(name)}
    rooms = {name: room(node, ()) for name, node in bought.items()}
    for job in holders.values():
        facts += _resized(world, job, rooms | _beside(world, job, rooms), now=now)
    return Decision(facts)


def _beside(world: World, job: Job, rooms: Mapping[NodeName, Room]) -> dict[NodeName, Room]:
    """Its other machines where they were bought in several batches, as far as is known."""
    nodes = [world.nodes[share.node] for share in job.shares]
    if not any(node.after for node in nodes):
        return {}
    return {node.name: room(node, ()) for node in nodes if node.name not in rooms}


def _bought(world: World, node: Node, machine: Machine, *, now: int) -> nev.MachineBought:
    offers = [
        rung.offer
        for rung in node.rungs
        if (rung.offer.instance_type, rung.offer.region, rung.offer.market)
        == (machine.instance_type, machine.region, machine.market)
    ]
    # The same may be on the list as reserved, at no price, and as bought.
    offer = max(offers, key=lambda one: one.micro_usd_per_hour == machine.micro_usd_per_hour)
    partition = next((p for p in world.site.partitions if p.name in node.partitions), None)
    elastic = partition.elastic if partition else None
    whole = schedulable(offer, elastic) if elastic else node.whole
    return nev.MachineBought(
        node=node.name, launch=node.launch, at=now, machine=machine, offer=offer, whole=whole
    )


def _resized(
    world: World, job: Job, rooms: Mapping[NodeName, Room], *, now: int
) -> list[ev.JobEvent]:
    """A job for which these nodes were bought: another type has other GPUs, or more in all.

    One bought in place of another is of the same type.
    """
    if any(share.node not in rooms for share in job.shares):
        return []
    ask = demand(job.spec, world.site.partition(job.partition))
    shares = even_shares(ask, [rooms[share.node] for share in job.shares])
    for share in shares:
        rooms[share.node].take(share)
    return [] if shares == job.shares else [ev.Resized(job=job.id, at=now, shares=shares)]


def decide_not_launched(world: World, seen: rep.NotLaunched, now: int) -> Decision:
    """Nothing was bought: those who were to have the nodes go back to the queue."""
    detail = _refusals(seen.tried)
    reason = quota_reason(seen.tried) or "Resources"
    facts: list[ev.Event] = []
    for node in _of_group(world, seen.group):
        facts += _unplace(world, node, now, detail=detail, reason=reason)
        facts.append(nev.LaunchFailed(node=node.name, launch=node.launch, at=now, detail=detail))
    for fact in [one for one in facts if isinstance(one, ev.Unplaced)]:
        facts += unplaced_with(world, fact, now)
    facts += _given_back(world, facts, seen.group, now=now)
    if seen.tried and all(_is_unfit(one) for one in seen.tried):
        unplaced = dict.fromkeys(fact.job for fact in facts if isinstance(fact, ev.Unplaced))
        for job in unplaced:
            facts.append(ev.HoldSet(job=job, at=now, hold=Hold.USER, priority=0))
            facts.append(ev.Waits(job=job, at=now, reason=IMPOSSIBLE, detail=detail))
    return Decision(_once(facts))


def _given_back(
    world: World, facts: Iterable[ev.Event], group: str, *, now: int
) -> Iterator[ev.Event]:
    """All or none: the job's and its gang's other machines where one batch cannot be had, but for
    those that somebody else holds by now.
    """
    jobs = dict.fromkeys(fact.job for fact in facts if isinstance(fact, ev.Unplaced))
    shares = [share for job in jobs for share in world.jobs[job].shares]
    nodes = [world.nodes[share.node] for share in shares if share.node in world.nodes]
    if len(jobs) == 1 and not any(node.after for node in nodes):
        return
    for node in nodes:
        others = any(job.id not in jobs for job in world.holders_of(node.name))
        if node.group == group or node.declared or others:
            continue
        if node.state is NodeState.LAUNCHING:
            yield nev.LaunchFailed(node=node.name, launch=node.launch, at=now, detail=PART)
        else:
            yield nev.NodeDoomed(node=node.name, launch=node.launch, at=now, why=PART)


def _is_unfit(one: rep.Tried) -> bool:
    """Whether what the job asks for is wrong and stays so, and no offer is to blame."""
    return one.refusal is Refusal.INVALID and one.width is Width.NOTHING


def _refusals(tried: Sequence[rep.Tried]) -> str:
    """Each text once, the first few of them."""
    texts = list(dict.fromkeys(one.message for one in tried))
    more = len(texts) - TOLD_REFUSALS
    return "; ".join(texts[:TOLD_REFUSALS]) + (f"; and {more} more refusals" if more > 0 else "")


def _unplace(
    world: World, node: Node, now: int, *, detail: str, reason: str = "Resources"
) -> list[ev.Event]:
    facts: list[ev.Event] = []
    for job in world.holders_of(node.name):
        if life(job) is Life.CONFIGURING:
            facts.append(ev.Unplaced(job=job.id, at=now, reason=reason, detail=detail))
        elif job.completing:
            facts.append(ev.Released(job=job.id, at=now))
    return facts


def _once(facts: list[ev.Event]) -> list[ev.Event]:
    """A job on several of the nodes is unplaced once."""
    return list(dict.fromkeys(facts)) if all(_hashable(f) for f in facts) else facts


def _hashable(fact: ev.Event) -> bool:
    known = ev.Unplaced | ev.Released | nev.LaunchFailed | nev.NodeDoomed | ev.HoldSet | ev.Waits
    return isinstance(fact, known)


def decide_booted(world: World, seen: rep.Booted, now: int) -> Decision:
    node = world.present(seen.node, seen.launch)
    if node is None or node.state not in (NodeState.BOOTING, NodeState.DOWN):
        return NOTHING
    facts: list[ev.Event] = [
        nev.NodeBooted(node=node.name, launch=node.launch, at=now, machine=seen.machine)
    ]
    if not world.holders.get(node.name) and not node.declared:
        facts.append(nev.NodeIdle(node=node.name, launch=node.launch, at=now, idle_since=now))
    return Decision(facts)


def decide_not_booted(world: World, seen: rep.NotBooted, now: int) -> Decision:
    """An elastic machine that does not come up is let go; a declared node is down."""
    node = world.present(seen.node, seen.launch)
    if node is None or node.state is not NodeState.BOOTING:
        return NOTHING
    keeper = keeper_of(world, node)
    if keeper is not None:
        return Decision(fell_back(world, keeper, now, why=seen.message))
    facts = replaced(world, node, now, why=seen.message)
    facts = facts or _unplace(world, node, now, detail=seen.message)
    if node.declared:
        ends: nev.NodeEvent = nev.NodeDown(
            node=node.name, launch=node.launch, at=now, why=seen.message
        )
    else:
        ends = nev.NodeDoomed(
            node=node.name, launch=node.launch, at=now, why=seen.message, failed_boot=True
        )
    return Decision([*facts, ends])


def decide_terminated(world: World, seen: rep.Terminated, now: int) -> Decision:
    node = world.present(seen.node, seen.launch)
    if node is None or node.state is not NodeState.TERMINATING:
        return NOTHING
    facts = _let_go(world, node, now, why="machine terminated")
    gone = nev.NodeGone(node=node.name, launch=node.launch, at=now, machine=seen.machine)
    return Decision([*facts, gone])


def decide_vanished(world: World, seen: rep.Vanished, now: int) -> Decision:
    """The machine ended without us: its jobs are lost for certain."""
    node = world.present(seen.node, seen.launch)
    if node is None or node.declared or node.state is NodeState.LAUNCHING:
        return NOTHING
    if seen.machine is not None and seen.machine.state is MachineState.STOPPED:
        return Decision(_halted(world, node, seen.machine, now=now))
    why, late = _how_it_ended(seen.machine), seen.machine.unstarted if seen.machine else None
    facts = _let_go(world, node, now, why=why, late=late)
    if node.state is not NodeState.TERMINATING:
        by_itself = not _was_taken(seen.machine)
        facts.append(
            nev.NodeDoomed(
                node=node.name, launch=node.launch, at=now, why=why, failed_boot=by_itself
            )
        )
    machine = seen.machine
    facts.append(nev.NodeGone(node=node.name, launch=node.launch, at=now, machine=machine))
    return Decision(facts)


def _was_taken(machine: Machine | None) -> bool:
    """Whether its provider ended it, or could not start it, for no fault of its image."""
    if machine is None:
        return False
    if machine.unstarted is not None:
        return machine.unstarted.width is not Width.NOTHING  # else it is the job's own
    return machine.ended_by_provider


def _how_it_ended(machine: Machine | None) -> str:
    if machine is not None and machine.unstarted is not None:
        told = machine.unstarted.message
        return f"{WITHDRAWN}: {told}" if _was_taken(machine) else told
    if machine is None or not machine.ended_by_provider:
        return "machine vanished"
    return TAKEN_BACK if machine.market is Market.SPOT else WITHDRAWN


def _halted(world: World, node: Node, machine: Machine, *, now: int) -> list[ev.Event]:
    """Somebody else stopped it: a cluster is stopped then, for any other job it is lost."""
    if node.state is not NodeState.UP:
        return []
    kept = stopped_behind(world, node, machine, now=now)
    if kept:
        return kept
    doomed = nev.NodeDoomed(node=node.name, launch=node.launch, at=now, why=HALTED)
    return [*_let_go(world, node, now, why=HALTED), doomed]


def _let_go(
    world: World, node: Node, now: int, *, why: str, late: Unstarted | None = None
) -> list[ev.Event]:
    keeper = keeper_of(world, node)
    if keeper is not None:
        return keeper_lost(keeper, now, why=why)
    again = late.refusal is Refusal.TRANSIENT if late else why != TAKEN_BACK
    facts = replaced(world, node, now, why=why) if again else []
    reason = quota_reason([late] if late else ()) or "Resources"
    for job in () if facts else world.holders_of(node.name):
        if never_ran(world, job):
            facts.append(ev.Unplaced(job=job.id, at=now, reason=reason, detail=why))
        elif goes_on(job, node):
            facts += reduced(job, node, now=now, why=why)
        else:
            requeue = may_requeue(world, job)
            facts += lost(job, node, now=now, why=why, requeue=requeue)
    return facts


def decide_step_refused(world: World, seen: rep.StepRefused, now: int) -> Decision:
    """The agent will never start it: the job fails as Slurm's launch failures do."""
    found = _live_step(world, seen.key)
    if found is None:
        return NOTHING
    record = {"cause": "launch_failed", "code": 0, "signal": 0, "key": seen.key}
    facts = _exited(world, found, record, node=seen.node, now=now)
    return Decision([_because(fact, seen.message) for fact in facts])


def _because(fact: ev.Event, why: str) -> ev.Event:
    """An end bears the words of who would not begin it."""
    return replace(fact, why=why) if isinstance(fact, ev.Ended) else fact


def told_of(records: Iterable[Mapping[str, Any]]) -> int:
    """The highest job id in a journal, 0 without one: a restored store may not know it."""
    attempts = (str(record.get("attempt", "")).partition("/")[0] for record in records)
    return max((int(one) for one in attempts if one.isdecimal() and len(one) < 10), default=0)


def decide_signal_done(world: World, seen: rep.SignalDone, now: int) -> Decision:
    job = world.jobs.get(seen.job)
    if job is None or all(one.serial != seen.serial for one in job.signals):
        return NOTHING
    return Decision([ev.SignalSent(job=job.id, at=now, serial=seen.serial)])


def _live_step(world: World, key: str) -> tuple[Job, Step] | None:
    """The step of a live attempt; late words of an old attempt are not found."""
    try:
        job_id, attempt, step_id = parse_step_key(key)
    except ValueError:
        return None
    job = world.jobs.get(job_id)
    if job is None or job.attempt != attempt or not job.shares:
        return None
    step = job.step(step_id)
    return None if step is None or step.state.final else (job, step)


def journal_record(
    world: World, record: Mapping[str, Any], *, node: NodeName, now: int
) -> Sequence[ev.Event]:
    """Facts of one line of a node's journal; applied before the next line is read."""
    return judged(world, _journal_record(world, record, node=node, now=now), now)


def _journal_record(
    world: World, record: Mapping[str, Any], *, node: NodeName, now: int
) -> Sequence[ev.Event]:
    kind = record.get("kind")
    if kind == "notice":
        return on_notice(world, node, str(record.get("when")), now=now)
    if kind == "gone":
        return _gone(world, str(record.get("attempt")), node=node, now=now)
    if kind == "unkillable":
        return unkillable(world, node, now=now)
    found = _live_step(world, str(record.get("key")))
    if found is None:
        return []
    job, step = found
    if kind == "started":
        return begun(job, step, node=node, now=now)
    if kind in ("exited", "refused"):
        cause = {"cause": "launch_failed"} if kind == "refused" else {}
        return _exited(world, found, {**record, **cause}, node=node, now=now)
    return []


def _gone(world: World, attempt: str, *, node: NodeName, now: int) -> Sequence[ev.Event]:
    """No process of the attempt is left on the node; once that holds for all, they are free."""
    job_id, _, number = attempt.partition("/")
    job = world.jobs.get(JobId(int(job_id))) if job_id.isdigit() and number else None
    if job is None or job.key != attempt or not job.completing or node in job.cleared:
        return []
    if not_cleared(job, but=node):
        return [ev.NodeCleared(job=job.id, at=now, node=node)]
    return [
        *(_step_cut(job, step, now) for step in job.steps if not step.state.final),
        *cleared(world, job, now),
    ]


def _step_cut(job: Job, step: Step, now: int) -> ev.StepEnded:
    return ev.StepEnded(
        job=job.id, at=now, step=step.id, state=StepState.CANCELLED, exit=ExitCode(0, 15)
    )


def _exited(
    world: World,
    found: tuple[Job, Step],
    record: Mapping[str, Any],
    *,
    node: NodeName | None,
    now: int,
) -> list[ev.JobEvent]:
    job, step = found
    facts, result = ended(job, step, record, node=node, now=now)
    if result is None:
        return facts
    if step.id != BATCH:
        tasks = [one for fact in facts if isinstance(fact, ev.StepEnded) for one in fact.tasks]
        return facts + run_over(job, step, result, tasks=tasks, now=now)
    if job.completing and not job.runs_batch:
        return facts  # what held it open has no exit code of its own
    if job.completing:
        lost_node = job.state is JobState.NODE_FAIL
        code = ExitCode(int(record.get("code") or 0), int(record.get("signal") or 0))
        return facts if lost_node else [*facts, ev.ExitSeen(job=job.id, at=now, exit=code)]
    held = [world.nodes[share.node] for share in job.shares if share.node in world.nodes]
    cleans = bool(world.site.epilog or world.site.tmpdir or kindred(held) or job.in_containers)
    return facts + _job_end(job, result, cleans=cleans, now=now)


def _job_end(job: Job, result: Outcome, *, cleans: bool, now: int) -> list[ev.JobEvent]:
    """The batch step is over, so is the job; steps that run, or may by now, are ended first, and
    nodes that are cleaned behind jobs are waited for.
    """
    others = cleans or any(s.id != BATCH and not s.state.final for s in job.steps)
    cause = "time_limit" if result.state is JobState.TIMEOUT else "batch_ended"
    end = ev.Ended(
        job=job.id,
        at=now,
        state=result.state,
        reason=result.reason,
        exit=result.exit if job.spec.batch else ExitCode(result.exit.code),
        kill_cause=cause if others else "",
    )
    return [end] if others else [end, ev.Released(job=job.id, at=now)]
