"""One of a job's machines that fails before the job has begun: another takes its place, alone.

The others stay as they are, and the job begins once all of them are up: all or nothing still holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from broker.decide.ending import never_ran
from broker.decide.placing import Placing, in_order
from broker.decide.submit import fresh_ids
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.ids import NodeName
from broker.model.job import Job, Share
from broker.model.lifecycle import Life, life
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, Ranked
from broker.model.site import Elastic, Site
from broker.schedule.accrued import payer_of
from broker.schedule.view import Batch
from broker.world import World

STRAGGLES = 2
"""So many times as long as the others took, a machine may take until another is bought for it."""
LEAST_LAG = 60
"""Seconds by which it has to be behind them, at least."""


def replaced(world: World, node: Node, now: int, *, why: str) -> list[ev.Event]:
    """Facts that buy its job another machine for it; none where all have to be given back.

    The same type in the same zone, and on the same fabric where one joins them. Where more than
    half, or one in place of another, have failed they are tried elsewhere.
    """
    job = _waiting_for(world, node)
    if job is None or node.is_second:
        return []
    others = _standing(world, job, now, but=node.name)
    rung = _rung([node, *_alike(node, others)])
    elastic = _bought_by(world.site, job)
    name = None if elastic is None else _unused(world, elastic)
    if rung is None or elastic is None or name is None or 2 * len(others) < len(job.shares):
        return []
    placing = Placing(world, fresh_ids(world), now)
    payer = payer_of(job, job.attempt)
    made = placing.intended(Batch((name,), (rung,)), elastic, name, payer=payer)
    group = f"{made.group}+{made.launch}"
    fresh = replace(made, group=group, is_second=True, build=node.build)
    shares = in_order(_moved(share, node, fresh) for share in job.shares)
    told = f"{fresh.name} in place of {node.name}: {why}"
    return [
        nev.NodeMade(node=fresh.name, launch=fresh.launch, at=now, record=fresh),
        ev.Resized(job=job.id, at=now, why=told, shares=shares),
    ]


def straggles(world: World, node: Node, now: int) -> bool:
    """Whether it boots for much longer than the others of its job did, which wait for it."""
    job = _waiting_for(world, node)
    if job is None or node.machine is None:
        return False
    took: list[int] = []
    for one in _others(world, job, but=node.name):
        if one is None or one.booted is None or not _stands(one, now):
            return False  # at the first: a thousand that boot are looked at each second
        took += [_took(one)] if _alike(node, [one]) else []
    if not took:
        return False
    usual = median(took)
    return now - node.machine.launched_at >= max(STRAGGLES * usual, usual + LEAST_LAG)


def _alike(node: Node, others: Iterable[Node]) -> list[Node]:
    """Those that were bought with it."""
    return [one for one in others if one.group == node.group]


def _took(node: Node) -> int:
    """Seconds from its launch until its agent answered; it is up, and was bought."""
    launched = node.machine.launched_at if node.machine else node.since
    return max(0, (node.booted or launched) - launched)


def _waiting_for(world: World, node: Node) -> Job | None:
    """The job of several machines that waits for this one, and holds it alone."""
    holding = world.holders_of(node.name)
    if len(holding) != 1 or node.declared or node.keeper is not None:
        return None
    (job,) = holding
    waits = life(job) is Life.CONFIGURING and len(job.shares) > 1 and not job.kept
    return job if waits and never_ran(world, job) else None


def _standing(world: World, job: Job, now: int, *, but: NodeName) -> list[Node]:
    """The job's other machines that are up, or on their way and not late."""
    others = _others(world, job, but=but)
    return [one for one in others if one is not None and _stands(one, now)]


def _others(world: World, job: Job, *, but: NodeName) -> Iterator[Node | None]:
    """The job's other machines; None for one that is gone."""
    return (world.present(share.node, share.launch) for share in job.shares if share.node != but)


def _stands(node: Node, now: int) -> bool:
    late = node.boot_deadline is not None and now >= node.boot_deadline
    boots = node.state is NodeState.BOOTING and not late
    return node.machine is not None and (boots or node.state is NodeState.UP)


def _rung(nodes: Sequence[Node]) -> Ranked | None:
    """What they were bought as, in the zone that they are in; None where none is known any more."""
    found = ((rung, node.machine) for node in nodes for rung in node.rungs if node.machine)
    rung, machine = next(found, (None, None))
    if rung is None or machine is None:
        return None
    return replace(rung, offer=replace(rung.offer, zones=_zones(rung, machine)))


def _zones(rung: Ranked, machine: Machine) -> tuple[str, ...]:
    return (machine.zone,) if machine.zone in rung.offer.zones else rung.offer.zones


def _bought_by(site: Site, job: Job) -> Elastic | None:
    partition = site.partition(job.partition)
    return partition.elastic if partition else None


def _unused(world: World, elastic: Elastic) -> NodeName | None:
    """The lowest name that nobody bears, where one more machine may be bought."""
    most, taken = world.site.max_bought, world.nodes.keys() | world.held_names()
    bought = sum(not one.declared for one in world.nodes.values())
    if most is not None and bought >= most:
        return None
    names = (NodeName(f"{elastic.prefix}{n}") for n in range(1, elastic.max_nodes + 1))
    return next((name for name in names if name not in taken), None)


def _moved(share: Share, gone: Node, fresh: Node) -> Share:
    if share.node != gone.name:
        return share
    return replace(share, node=fresh.name, launch=fresh.launch)
