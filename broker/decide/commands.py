"""What users and operators ask of jobs that exist: cancel, signal, hold, requeue, update."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from accounting.ids import JobId
from broker.decide.arrays import split, without
from broker.decide.draining import draining
from broker.decide.ending import cancelled, never_ran
from broker.decide.gang import members
from broker.decide.reserved import possible_here
from broker.decide.rules import Decision, KeeperNow, QuoteFor, may_change
from broker.decide.stopping import started
from broker.decide.submit import fresh_ids
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.errors import ACCESS_DENIED, BadOption, Conflict, Denied, SpzError, Unknown
from broker.model.evolve import made
from broker.model.ids import StepId
from broker.model.job import IMPOSSIBLE, Hold, Job, JobState, Owner, PendingSignal
from broker.model.lifecycle import SIGCONT, SIGKILL, SIGSTOP, Life, life
from broker.model.node import Node
from broker.schedule import priority
from broker.world import World
from sbatch_shim.grammar.arrays import show_indexes

UNKNOWN_JOB = "Invalid job id specified"
PENDING = "Job is pending execution"
NOT_PENDING = "Job is no longer pending execution"
DISABLED = "Requested operation is presently disabled"
NOT_WHOLE = "Operation not permitted on individual component of heterogeneous job"
OVER = "Job/step already completing or completed"
NO_ERROR = "No error"


def records(world: World, target: cmd.Target, by: Owner) -> list[Job]:
    """The records that a target names and `by` may change. Raises Unknown or Denied."""
    found = _named(world, target)
    if not found:
        raise Unknown(UNKNOWN_JOB)
    for job in found:
        if not may_change(by, job, world.site):
            raise Denied(ACCESS_DENIED)
    return found


def _named(world: World, target: cmd.Target) -> list[Job]:
    one = world.jobs.get(target.job)
    if one is not None and one.het is not None and target.tasks is None:
        every = one.het.offset == 0 and not target.alone
        return members(world, one) if every else [one]
    if target.job not in world.elements:
        return [one] if one is not None and target.tasks is None else []
    whole = world.array_jobs(target.job)
    if target.tasks is None:
        return whole
    return [job for job in whole if _touches(job, target.tasks)]


def _touches(job: Job, tasks: tuple[int, ...]) -> bool:
    if job.array is None:
        return False
    if job.array.task is not None:
        return job.array.task in tasks
    return any(task in job.array.waiting for task in tasks)


def each(
    world: World, target: cmd.Target, by: Owner, *, now: int
) -> Iterator[tuple[Job, list[ev.JobEvent]]]:
    """Records to act on, elements that still wait in the array's record split off first."""
    ids = fresh_ids(world)
    for job in records(world, target, by):
        if target.tasks is None or job.array is None or job.array.task is not None:
            yield job, []
            continue
        rest = job
        for task in (task for task in target.tasks if task in job.array.waiting):
            facts, element = split(rest, task, ids, now=now)
            rest = without(rest, task)
            made = next((f.record for f in facts if isinstance(f, ev.Queued)), rest)
            yield (made if element != job.id else rest), facts


def by_record(
    found: Iterable[tuple[Job, list[ev.JobEvent]]], act: Callable[[Job], list[ev.Event]]
) -> Decision:
    """Acts on each record; where some of an array cannot be, its reply has a line for each fate.

    As in 22.05, `1-3: No error`. Raises Conflict where none can be, or one of no array.
    """
    facts: list[ev.Event] = []
    fates: dict[str, list[int]] = {}
    first: Conflict | None = None
    for job, before in found:
        fate = NO_ERROR
        try:
            facts += [*before, *act(job)]
        except Conflict as error:
            if job.array is None or before:
                raise
            first, fate = first or error, error.message
        fates.setdefault(fate, []).extend(_tasks(job))
    if first is None:
        return Decision(facts)
    if NO_ERROR not in fates:
        raise first
    told = (f"{show_indexes(sorted(tasks))}: {fate}\n" for fate, tasks in fates.items())
    return Decision(facts, "".join(told))


def _tasks(job: Job) -> tuple[int, ...]:
    if job.array is None:
        return ()
    return job.array.waiting if job.array.task is None else (job.array.task,)


def decide_cancel(world: World, asked: cmd.Cancel, now: int) -> Decision:
    """Ends jobs. Raises Conflict when all of them are over already."""
    return Decision(_ends(world, records(world, asked.target, asked.by), asked=asked, now=now))


def decide_cancel_all(world: World, asked: cmd.CancelAll, now: int) -> Decision:
    """What an earlier id ends is over for the later ones."""
    facts: list[ev.Event] = []
    replies: list[SpzError | None] = []
    ended: set[JobId] = set()
    for job_id in asked.jobs:
        one = made(cmd.Cancel, target=cmd.Target(job_id), by=asked.by)
        try:
            found = [j for j in records(world, one.target, one.by) if j.id not in ended]
            ends = _ends(world, found, asked=one, now=now)
        except SpzError as error:
            replies.append(error)
            continue
        for end in ends:
            facts.append(end)
            ended.add(end.job)
        replies.append(None)
    return Decision(facts, replies)


def _ends(world: World, jobs: list[Job], *, asked: cmd.Cancel, now: int) -> list[ev.JobEvent]:
    facts: list[ev.JobEvent] = []
    for job in jobs:
        stands = life(job)
        if stands in (Life.OVER, Life.COMPLETING):
            continue
        if asked.alone and job.id != asked.target.job:
            continue
        part = job.het is not None and (asked.alone or asked.target.job != job.het.base)
        if part and stands is Life.PENDING:
            raise Conflict(NOT_WHOLE, slurm_errno=2108)
        facts.append(_cancelled(job, asked, now))
        if never_ran(world, job):
            facts.append(ev.Released(job=job.id, at=now))
    if not facts:
        raise Conflict(OVER)
    return facts


def _cancelled(job: Job, asked: cmd.Cancel, now: int) -> ev.JobEvent:
    """Tasks that still wait in the array's record just leave it (Slurm 25.11)."""
    wanted = asked.target.tasks
    if wanted and job.array is not None and job.array.task is None:
        dropped = tuple(task for task in job.array.waiting if task in wanted)
        if len(dropped) < len(job.array.waiting):
            return ev.ElementsDropped(job=job.id, at=now, actor=asked.by.uid, tasks=dropped)
    return cancelled(job, by=asked.by.uid, now=now)


def decide_signal(world: World, asked: cmd.Signal, now: int) -> Decision:
    """Notes the signal; the nodes get it next. Raises Conflict for jobs that do not run.

    SIGKILL ends what waits, also where only the batch script was meant (22.05).
    """
    found = records(world, asked.target, asked.by)
    running = [job for job in found if life(job) is Life.RUNNING]
    waiting = _killed(found, asked, now=now)
    if waiting and not running:
        return Decision(waiting)
    if not running:
        over = all(job.over for job in found)
        raise Conflict(OVER if over else "Job is pending execution")
    if asked.step is not None and all(_done(job, asked.step) for job in running):
        raise Conflict(OVER)
    return Decision([*(_signal(world, job, asked, now=now) for job in running), *waiting])


def _killed(found: list[Job], asked: cmd.Signal, *, now: int) -> list[ev.Event]:
    if asked.number != SIGKILL or asked.step is not None:
        return []
    end = cmd.Cancel(target=asked.target, by=asked.by)
    return [_cancelled(job, end, now) for job in found if life(job) is Life.PENDING]


def _done(job: Job, step_id: StepId) -> bool:
    step = job.step(step_id)
    return step is None or step.state.final


def _signal(world: World, job: Job, asked: cmd.Signal, *, now: int) -> ev.Event:
    serial = world.last_event + 1 + job.id
    scope = asked.scope if asked.step is None else "full"
    pending = PendingSignal(asked.number, scope, serial=serial, step=asked.step)
    return ev.SignalAsked(job=job.id, at=now, actor=asked.by.uid, signal=pending)


def decide_hold(
    world: World, asked: cmd.SetHold, now: int, *, quote: QuoteFor, keeper: KeeperNow
) -> Decision:
    """Holds or releases. Raises Denied when a user releases an operator's hold.

    A released job that no node could ever run stays held, for that reason.
    """
    operates = world.site.operates(asked.by.uid)

    def held(job: Job) -> list[ev.Event]:
        if job.over:
            raise Conflict(OVER)
        if asked.hold is None and job.hold is Hold.ADMIN and not operates:
            raise Denied(ACCESS_DENIED)
        if asked.hold is None and job.kept:
            return list(started(world, job, now, keeper=keeper(), actor=asked.by.uid))
        if asked.hold is None and job.hold and not _could_run(world, job, quote):
            return [ev.Waits(job=job.id, at=now, reason=IMPOSSIBLE)]
        value = priority.initial(job.id, held=asked.hold is not None)
        return [ev.HoldSet(job=job.id, at=now, actor=asked.by.uid, hold=asked.hold, priority=value)]

    found = each(world, asked.target, asked.by, now=now)
    shown = (
        (job, [*before, *([] if job.hold else _rest_shows_none(before, now))])
        for job, before in found
    )
    return by_record(shown, held)


def _could_run(world: World, job: Job, quote: QuoteFor) -> bool:
    try:
        possible_here(world, job, quote)
    except BadOption:
        return False
    return True


def _rest_shows_none(split_off: list[ev.JobEvent], now: int) -> list[ev.JobEvent]:
    """An array of which a task was held shows no reason until it is looked at again (25.11)."""
    bases = {fact.job for fact in split_off if isinstance(fact, ev.Split)}
    return [ev.Waits(job=base, at=now, reason="None") for base in bases]


def decide_suspend(world: World, asked: cmd.Suspend, now: int) -> Decision:
    """Stops or continues a job's processes; it keeps its nodes."""
    if not world.site.operates(asked.by.uid):
        raise Denied(ACCESS_DENIED)
    found = [job for job in records(world, asked.target, asked.by) if not job.over]
    if not found:
        raise Conflict(OVER)
    return Decision([fact for job in found for fact in _suspended(world, job, asked, now=now)])


def _suspended(world: World, job: Job, asked: cmd.Suspend, *, now: int) -> list[ev.JobEvent]:
    state = JobState.SUSPENDED if asked.resume else JobState.RUNNING
    if job.state is not state or life(job) is not Life.RUNNING:
        raise Conflict(PENDING if job.state is JobState.PENDING else DISABLED)
    signal = PendingSignal(
        SIGCONT if asked.resume else SIGSTOP, "full", serial=world.last_event + 1 + job.id
    )
    kind = ev.Resumed if asked.resume else ev.Suspended
    by = asked.by.uid
    return [
        kind(job=job.id, at=now, actor=by, limit_serial=signal.serial),
        ev.SignalAsked(job=job.id, at=now, actor=by, signal=signal),
    ]


def decide_requeue(world: World, asked: cmd.Requeue, now: int) -> Decision:
    """Back to the queue under the same id. Raises Conflict for pending jobs."""
    facts: list[ev.Event] = []
    for job in records(world, asked.target, asked.by):
        if life(job) in (Life.PENDING, Life.REQUEUING):
            raise Conflict("Job is pending execution")
        if job.spec.requeue is False or (job.spec.requeue is None and not world.site.job_requeue):
            raise Conflict("Requested operation is presently disabled")
        facts += _requeue(world, job, asked, now=now)
    return Decision(facts)


def _requeue(world: World, job: Job, asked: cmd.Requeue, *, now: int) -> list[ev.Event]:
    hold = Hold.USER if asked.hold else None
    back = ev.Requeued(
        job=job.id,
        at=now,
        actor=asked.by.uid,
        hold=hold,
        not_before=now + world.site.requeue_delay,
        kill_cause="requeued" if job.shares else "",
        priority=priority.initial(job.id, held=asked.hold),
    )
    released = [ev.Released(job=job.id, at=now)] if never_ran(world, job) else []
    return [back, *released]


def decide_node(world: World, asked: cmd.SetNode, now: int) -> Decision:
    """`scontrol update node`; administrators only."""
    if asked.by.uid not in world.site.admins:
        raise Denied(ACCESS_DENIED)
    node = world.nodes.get(asked.node)
    if node is None:
        raise Unknown("Invalid node name specified")
    return Decision(OF_NODES[asked.state](node, asked, now))


def _kept_from_jobs(node: Node, asked: cmd.SetNode, now: int) -> list[ev.Event]:
    if not asked.reason:
        raise Conflict("Reason not provided")
    return [draining(node, now, reason=asked.reason, by=asked.by.uid)]


def _given_back(node: Node, asked: cmd.SetNode, now: int) -> list[ev.Event]:
    """One that takes jobs cannot be resumed (22.05); undraining it changes nothing."""
    if node.drain:
        return [draining(node, now, reason="", drain=False, by=asked.by.uid)]
    if asked.state == "resume" and node.state.takes_work:
        raise Conflict(BAD_STATE)
    return []


def _explained(node: Node, asked: cmd.SetNode, now: int) -> list[ev.Event]:
    return [
        nev.NodeRevised(
            node=node.name,
            launch=node.launch,
            at=now,
            record=replace(node, reason=asked.reason, reason_at=now, reason_uid=asked.by.uid),
        )
    ]


def _powered_down(node: Node, asked: cmd.SetNode, now: int) -> list[ev.Event]:
    """A bought machine is let go as soon as no job holds it; a declared one is always up."""
    if node.declared or not node.state.takes_work:
        raise Conflict(BAD_STATE)
    soon = nev.NodeRevised(
        node=node.name, launch=node.launch, at=now, record=replace(node, idle_seconds=0)
    )
    closed = asked.state == "power_down_asap"
    shut = draining(node, now, reason=POWERED_DOWN, by=asked.by.uid)
    return [soon, shut] if closed else [soon]


BAD_STATE = "Invalid node state specified"
POWERED_DOWN = "powered down by an administrator"
OF_NODES: Mapping[str, Callable[[Node, cmd.SetNode, int], list[ev.Event]]] = {
    "drain": _kept_from_jobs,
    "down": _kept_from_jobs,
    "resume": _given_back,
    "undrain": _given_back,
    "reason": _explained,
    "power_down": _powered_down,
    "power_down_asap": _powered_down,
}
"""What each state that can be asked for comes to."""
