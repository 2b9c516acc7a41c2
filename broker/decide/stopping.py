"""Clusters stopped and started: their attempt ends, their machines and what is on them wait."""

from collections.abc import Iterable
from dataclasses import replace

from broker.decide.ending import NODE_FAIL_EXIT
from broker.decide.rules import NOTHING, Decision, KeeperNow, may_change
from broker.model import events as ev
from broker.model.errors import ACCESS_DENIED, Conflict, Denied, Unknown
from broker.model.facts import SYSTEM
from broker.model.ids import BATCH
from broker.model.job import Hold, Job, JobFlag, JobState, Step
from broker.model.lifecycle import Life, life
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, Market
from broker.model.stopping import (
    STOPPED,
    ClusterPower,
    Kept,
    MachineNotStarted,
    MachineStarted,
    MachineStopped,
    NodeStarted,
    NodeStarting,
    NodeStopped,
    NodeStopping,
    PowerSeen,
    StartCluster,
)
from broker.schedule import priority
from broker.schedule.accrued import payer_of
from broker.schedule.limits import Keeper, Place
from broker.world import World

USUAL_BOOT_SECONDS = 600


def decide_power(world: World, asked: ClusterPower, now: int, *, keeper: KeeperNow) -> Decision:
    """Stops or starts a cluster; one that is so already stays it.

    Raises Unknown, Denied, and Conflict where it cannot be.
    """
    job = world.jobs.get(asked.job)
    if job is None or job.state.final:
        raise Unknown("no such cluster")
    if not may_change(asked.by, job, world.site):
        raise Denied(ACCESS_DENIED)
    if isinstance(asked, StartCluster):
        if not job.kept:
            return NOTHING
        return Decision(started(world, job, now, keeper=keeper(), actor=asked.by.uid))
    if job.kept or life(job) is Life.REQUEUING:
        return NOTHING
    why = not_stoppable(world, job)
    if why:
        raise Conflict(f"cluster {job.spec.cluster!r} cannot be stopped: {why}", hint=WAY_OUT)
    return Decision(stopped(job, now, actor=asked.by.uid))


WAY_OUT = "`spz down` lets it go, `spz autostop --down` when it is idle"


def not_stoppable(world: World, job: Job) -> str:
    """Why its machines cannot be stopped now; empty where they can."""
    nodes = [world.nodes[share.node] for share in job.shares if share.node in world.nodes]
    if not job.spec.cluster or life(job) is not Life.RUNNING:
        return "it is not up"
    never = never_stops(nodes)
    if never:
        return never
    others = {one.id for node in nodes for one in world.holders_of(node.name)} - {job.id}
    return f"other jobs run on its machines: {sorted(others)}" if others else ""


def never_stops(nodes: Iterable[Node]) -> str:
    """Why machines like these are never stopped; empty where they may be."""
    machines = [node.machine for node in nodes]
    if None in machines:
        return "its nodes are declared, nobody pays for them by the hour"
    if any(one.market is Market.SPOT for one in machines if one):
        return "stopping spot machines is not supported, EC2 would end them"
    return ""


def stopped(job: Job, now: int, *, actor: int = SYSTEM) -> list[ev.Requeued]:
    """Its attempt ends; once nothing of it is left, its machines stop."""
    back = ev.Requeued(
        job=job.id, at=now, actor=actor, why=STOPPED, hold=Hold.USER, kill_cause=STOPPED
    )
    return [back]


def cleared(world: World, job: Job, now: int) -> list[ev.Event]:
    """Nothing of an attempt that was ended is left: its nodes are free, or stop and wait for it."""
    released = ev.Released(job=job.id, at=now)
    if job.kill_cause != STOPPED or JobFlag.REQUEUED not in job.flags:
        return [released]
    return [Kept(job=job.id, at=now), released, *_stopping(world, job, now)]


HALTED = "its machine was stopped by somebody else"


def stopped_behind(world: World, node: Node, machine: Machine, *, now: int) -> list[ev.Event]:
    """A cluster of which somebody else stopped a machine is stopped; empty where it is none."""
    holding = world.holders_of(node.name)
    if len(holding) != 1 or not_stoppable(world, holding[0]):
        return []
    (job,) = holding
    down = NodeStopped(node=node.name, launch=node.launch, at=now, machine=machine)
    return [
        *(replace(fact, why=HALTED) for fact in stopped(job, now)),
        Kept(job=job.id, at=now),
        ev.Released(job=job.id, at=now),
        *_stopping(world, job, now),
        down,
    ]


def _stopping(world: World, job: Job, now: int) -> list[ev.Event]:
    halts = (NodeState.UP, NodeState.BOOTING, NodeState.STARTING)
    return [
        NodeStopping(node=node.name, launch=node.launch, at=now, keeper=job.id)
        for node in _nodes(world, job)
        if node.state in halts
    ]


def _nodes(world: World, job: Job) -> Iterable[Node]:
    names = [share.node for share in (*job.kept, *job.shares)]
    return [world.nodes[name] for name in names if name in world.nodes]


def started(
    world: World, job: Job, now: int, *, keeper: Keeper, actor: int = SYSTEM
) -> list[ev.Event]:
    """A new attempt on the machines that wait for it.

    Raises Conflict while one of them still stops, and where a limit or budget is in the way.
    """
    nodes = _nodes(world, job)
    place = Place(names=[share.node for share in job.kept])
    barred = keeper.reason(job, job.partitions[0], place)
    if barred is not None:
        raise Conflict(
            f"cluster {job.spec.cluster!r} cannot be started now: {barred}",
            hint="`sacctmgr show assoc`, `sacctmgr show qos` and `spz budget show` list the limits",
        )
    slow = [node.name for node in nodes if node.state is NodeState.STOPPING]
    if slow:
        raise Conflict(
            f"cluster {job.spec.cluster!r} is still being stopped ({', '.join(slow)})",
            hint="ask again in a minute",
        )
    payer = payer_of(job, job.attempt + 1)
    partition = world.site.partition(job.partitions[0])
    elastic = partition.elastic if partition else None
    deadline = now + (elastic.boot_timeout if elastic else USUAL_BOOT_SECONDS)
    wakes = [
        NodeStarting(
            node=node.name, launch=node.launch, at=now, cause=payer, boot_deadline=deadline
        )
        for node in nodes
    ]
    ready = priority.initial(job.id, held=False)
    return [
        ev.HoldSet(job=job.id, at=now, actor=actor, hold=None, priority=ready),
        ev.Placed(
            job=job.id,
            at=now,
            actor=actor,
            partition=job.partitions[0],
            shares=job.kept,
            choice=job.choice,
        ),
        ev.StepAdded(job=job.id, at=now, step=Step(id=BATCH, name="batch", asked=now)),
        *wakes,
    ]


def fell_back(world: World, job: Job, now: int, *, why: str) -> list[ev.Event]:
    """A start that came to nothing: all of its machines stop again, none is let go."""
    return [
        Kept(job=job.id, at=now),
        ev.Unplaced(job=job.id, at=now, reason="Resources", detail=why),
        ev.HoldSet(job=job.id, at=now, hold=Hold.USER, priority=0),
        *_stopping(world, job, now),
    ]


def keeper_of(world: World, node: Node) -> Job | None:
    """The job for which the machine of a node is kept, as long as it wants it."""
    job = None if node.keeper is None else world.jobs.get(node.keeper)
    if job is None or job.state.final:
        return None
    wanted = {share.node for share in (*job.kept, *job.shares)}
    return job if node.name in wanted else None


def keeper_lost(job: Job, now: int, *, why: str) -> list[ev.Event]:
    """A machine that was kept for it is gone, and its disk with it."""
    end = ev.Ended(
        job=job.id,
        at=now,
        why=why,
        state=JobState.NODE_FAIL,
        reason="NodeDown",
        exit=NODE_FAIL_EXIT,
    )
    return [end, ev.Released(job=job.id, at=now)] if job.shares else [end]


def decide_seen(world: World, seen: PowerSeen, now: int) -> Decision:
    """What became of a machine that was to be stopped or started; late words change nothing."""
    node = world.present(seen.node, seen.launch)
    match seen:
        case MachineStopped():
            if node is None or node.state is not NodeState.STOPPING:
                return NOTHING
            fact = NodeStopped(node=seen.node, launch=seen.launch, at=now, machine=seen.machine)
            return Decision([fact])
        case MachineStarted():
            if node is None or node.state is not NodeState.STARTING:
                return NOTHING
            up = NodeStarted(node=seen.node, launch=seen.launch, at=now, machine=seen.machine)
            return Decision([up])
        case MachineNotStarted():
            job = None if node is None else keeper_of(world, node)
            if node is None or job is None or node.state is not NodeState.STARTING:
                return NOTHING
            return Decision(fell_back(world, job, now, why=seen.message))
