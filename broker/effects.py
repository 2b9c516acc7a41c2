"""What has to be done outside, computed from the world alone: a restart computes it again."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from broker.model import effects as ef
from broker.model.ids import NodeName
from broker.model.job import Job, PendingSignal, Step, StepState
from broker.model.kin import kindred
from broker.model.node import Node, NodeState
from broker.model.volume import NamedVolume, VolumeState
from broker.optimize.protected import barred
from broker.schedule.ranks import shares_files
from broker.world import World


def effects_due(world: World) -> list[ef.Effect]:
    """Every effect whose state asks for it; doing one twice does nothing."""
    return [*_of_nodes(world), *_of_jobs(world), *_of_volumes(world)]


def _of_nodes(world: World) -> Iterator[ef.Effect]:
    groups: dict[str, list[Node]] = {}
    for name in sorted(world.todo_nodes):
        node = world.nodes[name]
        if node.state is NodeState.LAUNCHING:
            groups.setdefault(node.group, []).append(node)
        else:
            yield OF_STATE[node.state](node)
    for group, nodes in groups.items():
        if nodes[0].after in groups or _is_given_up(world, nodes[0]):
            continue
        rungs, tried = barred(nodes[0].rungs, nodes[0].build, world.boots)
        yield ef.Launch(group, tuple(node.identity for node in nodes), rungs, tried)


def _is_given_up(world: World, node: Node) -> bool:
    """Whether the job went, for which it was to be bought after others."""
    return bool(node.after) and not world.holders.get(node.name)


def _terminate(node: Node) -> ef.Effect:
    return ef.Terminate(node.name, node.launch, node.machine, node.group)


OF_STATE: Mapping[NodeState, Callable[[Node], ef.Effect]] = {
    NodeState.BOOTING: ef.Prepare,
    NodeState.STOPPING: ef.StopMachine,
    NodeState.STARTING: ef.StartMachine,
    NodeState.TERMINATING: _terminate,
}
"""What the state of a node asks for, but for those that are bought together."""


def _of_jobs(world: World) -> Iterator[ef.Effect]:
    for job_id in sorted(world.todo_jobs):
        job = world.jobs[job_id]
        nodes = _nodes_up(world, job)
        left = tuple(node for node in nodes if node.name not in job.cleared)
        if job.completing and left:
            yield ef.Kill(job, left)
        elif nodes and job.state.holds_nodes and _stands(world, job, nodes):
            yield from _to_attach(world, job, nodes[0])
            if _has_volumes(world, job, nodes[0]):
                yield from _of_running(job, nodes, _gang(world, job))


def _to_attach(world: World, job: Job, node: Node) -> Iterator[ef.Effect]:
    """Volumes that are to come to its first node."""
    for wanted in job.spec.volumes:
        volume = world.volumes.get(wanted.volume)
        if volume is not None and volume.host is None:
            yield ef.AttachVolume(volume, wanted.path, job, node)


def _has_volumes(world: World, job: Job, node: Node) -> bool:
    """Whether its first node has them all: its steps wait for that."""
    found = ((wanted, world.volumes.get(wanted.volume)) for wanted in job.spec.volumes)
    return all(one and _is_at(one, node, wanted.path) for wanted, one in found)


def _is_at(volume: NamedVolume, node: Node, path: str) -> bool:
    """Another machine of that name does not have what an earlier one had."""
    return (volume.host, volume.host_launch, volume.path) == (*node.identity, path)


def _of_volumes(world: World) -> Iterator[ef.Effect]:
    for volume in world.volumes.values():
        if volume.state is VolumeState.CREATING:
            yield ef.MakeVolume(volume)
        elif volume.host is not None and not world.serves(volume):
            node = world.present(volume.host, volume.host_launch)
            yield ef.DetachVolume(volume, node if node and node.state is NodeState.UP else None)
        elif volume.state is VolumeState.DELETING:
            yield ef.DropVolume(volume)


def _gang(world: World, job: Job) -> tuple[Job, ...]:
    """Components that steps are told of; none for a job that is no heterogeneous one."""
    ids = job.het.ids if job.het else ()
    return tuple(world.jobs[job_id] for job_id in ids if job_id in world.jobs)


def _stands(world: World, job: Job, nodes: tuple[Node, ...]) -> bool:
    """Whether all of its nodes are up, and those of the other components too."""
    if len(nodes) != len(job.shares):
        return False
    if job.het is None or not job.configuring or (job.spec.managed and job.restarts):
        return True
    found = (world.jobs.get(job_id) for job_id in job.het.ids)
    others = (one for one in found if not (job.spec.managed and (one is None or one.over)))
    return all(
        one is not None and one.shares and len(_nodes_up(world, one)) == len(one.shares)
        for one in others
    )


def _of_running(job: Job, nodes: tuple[Node, ...], gang: tuple[Job, ...]) -> Iterator[ef.Effect]:
    """The batch step first; others as they get their part of the allocation, once it stands."""
    for step in job.steps:
        for node in _hosts(step, nodes):
            if step.kill_cause and not _over_on(step, node):
                yield ef.KillStep(job, step.id, node)
            elif not step.kill_cause and _to_start(job, step, node):
                kin = () if step.spec is not None else kindred(nodes)
                yield ef.StartStep(job, step.id, node, gang, kin)
    for signal in job.signals:
        first, *more = _addressed(job, signal, nodes)
        yield ef.SendSignal(job.id, job.attempt, signal, first, tuple(more))
    for notice in job.notices:
        yield ef.SendNotice(job.id, job.attempt, notice, nodes[0])
    yield from _limits(job, nodes)


def _hosts(step: Step, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes of a step: its own, the job's first for the batch step; none while it waits."""
    if step.spec is None:
        return nodes[:1]
    own = {share.node for share in step.shares}
    return tuple(node for node in nodes if node.name in own)


def _over_on(step: Step, node: Node) -> bool:
    part = step.part(node.name)
    return step.state.final or (part is not None and part.ended)


def _to_start(job: Job, step: Step, node: Node) -> bool:
    """Whether it has not begun there. Files that all nodes write are made anew by the first."""
    if not step.more:
        return step.state is StepState.PENDING
    if step.state.final or step.part(node.name) is not None:
        return False
    first = step.shares[0].node
    if node.name == first or step.part(first) is not None:
        return True
    return not shares_files(step, job.spec.output)


def _addressed(job: Job, signal: PendingSignal, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes that a signal goes to: of one step, or of all that may have any."""
    step = None if signal.step is None else job.step(signal.step)
    if step is not None:
        return _hosts(step, nodes) or nodes[:1]
    return nodes[:1] if signal.scope == "batch" else nodes


def _limits(job: Job, nodes: tuple[Node, ...]) -> Iterator[ef.TellLimit]:
    """Only of what runs: one that is not begun may still be ordered with the limit of before."""
    if job.limit_serial and not job.configuring:
        yield ef.TellLimit(job, nodes[0], None, nodes[1:])
    for step in job.steps:
        if step.limit_serial and step.state is StepState.RUNNING:
            first, *more = _hosts(step, nodes)
            yield ef.TellLimit(job, first, step, tuple(more))


def _nodes_up(world: World, job: Job) -> tuple[Node, ...]:
    """Those of the job's nodes that can be talked to."""
    nodes = (world.nodes.get(share.node) for share in job.shares)
    return tuple(node for node in nodes if node is not None and node.state is NodeState.UP)


def follow_due(world: World, names: Iterable[NodeName], *, check: bool) -> list[ef.Follow]:
    """Journals to read, of those of the named nodes that can be talked to."""
    nodes = (world.nodes.get(name) for name in sorted(names))
    return [
        ef.Follow(node, check=check)
        for node in nodes
        if node is not None and node.state is NodeState.UP
    ]


def inhabited(world: World) -> list[NodeName]:
    """Nodes on which something lives."""
    return [name for name, held in world.holders.items() if held]
