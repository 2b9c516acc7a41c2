"""What the passing of time and the end of other jobs bring about."""

from collections.abc import Iterable
from dataclasses import replace

from accounting.ids import JobId
from broker.decide.arrays import split, without
from broker.decide.ending import cancelled
from broker.decide.mail import near_limit
from broker.decide.managed import group_end
from broker.decide.possible import declared
from broker.decide.replacing import replaced, straggles
from broker.decide.reserving import reservations_due
from broker.decide.stepping import idle_end
from broker.decide.stopping import fell_back, keeper_of
from broker.decide.submit import fresh_ids
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.facts import SYSTEM
from broker.model.job import Job, JobState
from broker.model.lifecycle import Life, life
from broker.model.node import Node, NodeState
from broker.model.spec import UNLIMITED, Dependency, DependencyKind
from broker.schedule.budgets import over_of
from broker.schedule.depend import named, standing
from broker.world import World

NEVER = "DependencyNeverSatisfied"


def dependency_facts(world: World, job: Job, now: int) -> list[ev.JobEvent]:
    """What is left of a pending job's dependencies, where that changed."""
    if not job.after or job.state is not JobState.PENDING or job.completing:
        return []
    plain = tuple(w for w in job.after if not _elementwise(job, w))
    left = standing(plain, lambda wish: find(world, job, wish), now, any_one=job.spec.after_any)
    rest = (*left.open, *(w for w in job.after if _elementwise(job, w)))
    if left.never and job.spec.kill_on_invalid_dep:
        return [_given_up(job, now)]
    hopeless = _hopeless_tasks(world, job, now) if job.spec.kill_on_invalid_dep else []
    if hopeless:
        return _tasks_given_up(world, job, hopeless, now=now)
    reason = _reason(job, left.never, bool(rest))
    if rest == job.after and reason == job.reason:
        return []
    settled = not rest and job.eligible is None
    eligible = max(now, job.spec.begin or now) if settled else None
    return [
        ev.Waits(
            job=job.id, at=now, reason=reason, after=rest, eligible=eligible, detail=job.detail
        )
    ]


def _given_up(job: Job, now: int) -> ev.Ended:
    """Its dependency can never be met, and it asked to be ended then."""
    return replace(cancelled(replace(job, reason=NEVER), by=SYSTEM, now=now), by=None)


def _hopeless_tasks(world: World, job: Job, now: int) -> list[int]:
    """Waiting tasks whose counterparts of `aftercorr` have failed."""
    if job.array is None or not any(_elementwise(job, wish) for wish in job.after):
        return []
    return [t for t in job.array.waiting if element_waits(world, job, t, now=now) == NEVER]


def _tasks_given_up(world: World, job: Job, tasks: list[int], *, now: int) -> list[ev.JobEvent]:
    facts: list[ev.JobEvent] = []
    ids = fresh_ids(world)
    for task in tasks:
        apart, element = split(job, task, ids, now=now)
        facts += [*apart, _given_up(replace(job, id=element), now)]
        job = without(job, task)
    return facts


def _reason(job: Job, never: bool, still: bool) -> str:
    if job.hold is not None:
        return job.reason
    if never:
        return NEVER
    return "Dependency" if still else "None"


def _elementwise(job: Job, wish: Dependency) -> bool:
    return (
        wish.kind is DependencyKind.AFTERCORR and job.array is not None and job.array.task is None
    )


def find(world: World, job: Job, wish: Dependency) -> list[Job] | None:
    """The records that a dependency names; None if they are not known any more."""
    if wish.kind is DependencyKind.SINGLETON:
        return _before(world, job)
    return named(wish, world.array_jobs, world.jobs.get)


def _before(world: World, job: Job) -> list[Job]:
    """Live jobs of the same name and user that were submitted earlier."""
    base = job.array.base if job.array else job.id
    same = world.singletons.get((job.owner.user, job.spec.name), set())
    earlier = (world.jobs[other] for other in same if other < base)
    return [other for other in earlier if not other.over]


def element_waits(world: World, job: Job, task: int, *, now: int) -> str | None:
    """Why the element's `aftercorr` dependencies keep it waiting, None once they are met."""
    wishes = tuple(
        wish.model_copy(update={"task": task}) for wish in job.after if _elementwise(job, wish)
    )
    left = standing(wishes, lambda wish: find(world, job, wish), now)
    if left.never:
        return NEVER
    return "Dependency" if left.open else None


def dependents(world: World, ended: Iterable[JobId]) -> set[JobId]:
    """Pending jobs to look at again because these changed."""
    found: set[JobId] = set()
    for job_id in ended:
        job = world.jobs.get(job_id)
        if job is None:
            continue
        found |= world.waiters.get(job_id, set())
        if job.array is not None:
            found |= world.waiters.get(job.array.base, set())
        found |= world.waiters.get((job.owner.user, job.spec.name), set())
    return found & world.pending


def due(world: World, now: int) -> list[ev.Event]:
    """Facts that are true now because of the time alone."""
    facts: list[ev.Event] = []
    for job_id in sorted(world.timed):
        job = world.jobs[job_id]
        facts += _pending_due(world, job, now) or group_end(world, job, now)
    for job_id in sorted(world.active):
        job = world.jobs[job_id]
        late = _active_due(world, job, now) or idle_end(world, job, now)
        facts += late or group_end(world, job, now)
    return [*facts, *_nodes_due(world, now), *reservations_due(world, now)]


def _nodes_due(world: World, now: int) -> list[ev.Event]:
    """Where a job gets another machine for one, its others are looked at a second later."""
    facts: list[ev.Event] = []
    moved: set[JobId] = set()
    for name in sorted(world.nodes):
        if not moved.intersection(world.holders.get(name, ())):
            found = _node_due(world, world.nodes[name], now)
            moved |= {fact.job for fact in found if isinstance(fact, ev.Resized)}
            facts += found
    return facts


def _pending_due(world: World, job: Job, now: int) -> list[ev.JobEvent]:
    deadline = job.spec.deadline
    if deadline is not None and now >= deadline:
        state = JobState.DEADLINE
        return [ev.Ended(job=job.id, at=now, state=state, reason="DeadLine")]
    if any(wish.delay for wish in job.after):
        return dependency_facts(world, job, now)
    return []


def _active_due(world: World, job: Job, now: int) -> list[ev.JobEvent]:
    """A job far beyond its limit: its node should have ended it."""
    if job.time_limit == UNLIMITED or life(job) is not Life.RUNNING:
        return []
    if job.ran(now) < int(job.time_limit) + over_of(world.site, job.partition):
        near = near_limit(job, now) if job.spec.mail_types else None
        return [] if near is None else [near]
    return [
        ev.Ended(
            job=job.id,
            at=now,
            state=JobState.TIMEOUT,
            reason="TimeLimit",
            kill_cause="time_limit",
        )
    ]


LATE = {
    NodeState.LAUNCHING: "its provider did not say in time whether there is one",
    NodeState.BOOTING: "did not boot in time",
}
"""Why a machine is given up at its deadline."""


def _node_due(world: World, node: Node, now: int) -> list[ev.Event]:
    if node.declared or node.state is NodeState.TERMINATING:
        return []
    if node.keeper is not None:
        return _kept_due(world, node, now)
    unused = not world.holders.get(node.name)
    if unused and node.after and node.state is NodeState.LAUNCHING:
        return [_doomed(node, now, "its job went before it was bought")]
    if unused and _idle_too_long(node, now):
        return [_doomed(node, now, f"idle for {node.idle_seconds} s")]
    return _late(world, node, now) if node.state in LATE else []


def _late(world: World, node: Node, now: int) -> list[ev.Event]:
    """One that is not up in time is let go, and one that keeps others waiting for long."""
    late = node.boot_deadline is not None and now >= node.boot_deadline
    if late or straggles(world, node, now):
        other = replaced(world, node, now, why=LATE[node.state])
        if other:
            return [*other, _doomed(node, now, LATE[node.state], failed_boot=True)]
    if late:
        held: list[ev.Event] = [
            ev.Unplaced(job=j.id, at=now, reason="Resources", detail=f"{node.name} did not boot")
            for j in world.holders_of(node.name)
            if life(j) is Life.CONFIGURING
        ]
        freed: list[ev.Event] = [
            ev.Released(job=j.id, at=now) for j in world.holders_of(node.name) if j.completing
        ]
        return [*held, *freed, _doomed(node, now, LATE[node.state], failed_boot=True)]
    return []


def _kept_due(world: World, node: Node, now: int) -> list[ev.Event]:
    """Kept as long as its job wants it; one that does not come up again in time stops again."""
    keeper = keeper_of(world, node)
    if keeper is None:
        return [_doomed(node, now, "nobody wants what is on it any more")]
    late = node.boot_deadline is not None and now >= node.boot_deadline
    if late and node.state in (NodeState.STARTING, NodeState.BOOTING):
        return fell_back(world, keeper, now, why=f"{node.name} did not come up in time")
    return []


def _idle_too_long(node: Node, now: int) -> bool:
    if node.state is not NodeState.UP or node.idle_since is None or node.idle_seconds is None:
        return False
    return now >= node.idle_since + node.idle_seconds


def _doomed(node: Node, now: int, why: str, *, failed_boot: bool = False) -> nev.NodeDoomed:
    return nev.NodeDoomed(
        node=node.name, launch=node.launch, at=now, why=why, failed_boot=failed_boot
    )


def leaves_late(world: World, now: int) -> bool:
    """Whether a job that ended a short while ago still leaves its nodes: nothing is started
    meanwhile, so that its successor finds them together (CompleteWait, 22.05)."""
    wait = world.site.complete_wait
    if not wait:
        return False
    ending = (job for job in map(world.jobs.__getitem__, world.active) if job.completing)
    return any(job.ended is not None and now < job.ended + wait for job in ending)


def configured_nodes(world: World, now: int) -> list[ev.Event]:
    """Declared nodes as the configuration has them now."""
    facts: list[ev.Event] = []
    for wanted in world.site.nodes:
        fresh = declared(wanted, world.site)
        known = world.nodes.get(wanted.name)
        if known is None:
            facts.append(nev.NodeMade(node=fresh.name, launch=0, at=now, record=fresh))
        elif known.declared:
            facts += _revised(known, fresh, now)
    wanted_names = {node.name for node in world.site.nodes}
    for known in world.nodes.values():
        if known.declared and known.name not in wanted_names:
            facts += _left_out(world, known, now)
    return facts


def _left_out(world: World, node: Node, now: int) -> list[ev.Event]:
    """A node that is configured no more is gone; while jobs hold it, it takes no others."""
    if not world.holders.get(node.name):
        return [nev.NodeRemoved(node=node.name, launch=node.launch, at=now)]
    closed = replace(node, partitions=())
    if closed == node:
        return []
    return [nev.NodeRevised(node=node.name, launch=node.launch, at=now, record=closed)]


KEPT = (
    "state",
    "journal",
    "drain",
    "reason",
    "reason_at",
    "reason_uid",
    "booted",
    "since",
    "meter",
)


def _revised(known: Node, fresh: Node, now: int) -> list[ev.Event]:
    record = replace(fresh, **{name: getattr(known, name) for name in KEPT})
    if record == known:
        return []
    return [nev.NodeRevised(node=known.name, launch=0, at=now, record=record)]
