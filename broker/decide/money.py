"""Machines' cost goes to the ledger just before it changes who pays: pure, from records alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accounting.ledger import (
    UNIT,
    Entry,
    Holder,
    Meter,
    StepPart,
    close,
    down,
    moved,
    settle,
    step_use,
    usage,
)
from accounting.rates import ON_DEMAND, OWNED, SPOT, Price, Terms
from broker.decide.ending import region_of
from broker.decide.rules import NOTHING, Decision
from broker.decide.stopping import keeper_of
from broker.decide.volumes import holder
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.job import Job
from broker.model.measured import held_by, sampled
from broker.model.node import Node, NodeState
from broker.model.nodelife import apply_node
from broker.model.offer import Machine, Market
from broker.model.pricing import repriced
from broker.model.reports import Repriced
from broker.model.site import units
from broker.model.stopping import NodeStarted, NodeStopped
from broker.model.volume import VolumeGone, VolumeSet
from broker.optimize.costs import VOLUME, parts
from broker.schedule.accrued import payer_of
from broker.world import World

Posted = tuple[list[ev.Event], list[Entry]]

CHANGES_HOLDERS = (ev.Placed, ev.Released, ev.Unplaced, ev.Resized)


def before(world: World, fact: ev.Event, now: int) -> Posted:
    """What has to be posted before the fact changes holders or cost: meters to keep, entries."""
    found = BEFORE.get(type(fact))
    return ([], []) if found is None else found(world, fact, now)


def after(world: World, fact: ev.Event) -> list[ev.Event]:
    """Meters that begin or learn something by the fact."""
    found = AFTER.get(type(fact))
    return [] if found is None else found(world, fact)


def _before_start(world: World, fact: ev.Started, now: int) -> Posted:
    return [], _data_brought(world, world.jobs[fact.job], now)


def _before_boot(world: World, fact: nev.NodeBooted, now: int) -> Posted:
    facts, entries = _settled(world, world.nodes[fact.node], now)
    return facts, [*entries, *_was_out(world, fact, now)[1]]


def _was_out(world: World, fact: nev.NodeEvent, now: int) -> Posted:
    """The time for which a declared node took no work, once it does again, or is no more."""
    node = world.nodes.get(fact.node)
    if node is None or not node.declared or node.out_since is None:
        return [], []
    after = apply_node(node, fact)
    if after is not None and after.out_since is not None:
        return [], []
    return [], list(down(node.label, node.whole, since=node.out_since, until=now))


def _before_stop(world: World, fact: NodeStopped, now: int) -> Posted:
    return _halted(world, world.nodes[fact.node], fact.machine, now=now)


def _before_restart(world: World, fact: NodeStarted, now: int) -> Posted:
    return _settled(world, world.nodes[fact.node], fact.machine.running_at or now)


def _before_end(world: World, fact: nev.NodeGone, now: int) -> Posted:
    return _closed(world, world.nodes[fact.node], fact.machine, now=now)


def _before_volume_goes(world: World, fact: VolumeGone, now: int) -> Posted:
    gone = world.volumes.get(fact.name)
    closed = close(gone.meter, [holder(gone)], now)[1] if gone and gone.meter else ()
    return [], list(closed)


def _after_boot(world: World, fact: nev.MachineBought | nev.NodeBooted) -> list[ev.Event]:
    node = world.nodes.get(fact.node)
    meter = _meter(world, node) if node is not None else None
    if node is None or meter is None or meter == node.meter:
        return []
    return [_metered(node, meter, _beside(world, node, meter), now=fact.at)]


def _after_restart(world: World, fact: NodeStarted) -> list[ev.Event]:
    node = world.nodes[fact.node]
    again = _meter(world, replace(node, meter=None))
    if again is None:
        return []
    return [_metered(node, again, _beside(world, node, again), now=fact.at)]


def _meter(world: World, node: Node) -> Meter | None:
    """The node's meter with what is known now; None while nobody bills for it."""
    machine = node.machine
    if node.declared:
        return node.meter or _owned(node)
    if machine is None or machine.running_at is None:
        return None
    known = node.meter or repriced(
        Meter(
            node=node.name,
            launch=node.launch,
            whole=node.whole,
            terms=_spot(world, node) if machine.market is Market.SPOT else ON_DEMAND,
            prices=(Price(machine.running_at, machine.micro_usd_per_hour),),
            running_at=machine.running_at,
            cause=node.cause,
            instance_type=machine.instance_type,
            region=machine.region,
            market=machine.market.value,
        ),
        machine,
    )
    return replace(known, booted_at=node.booted) if node.booted else known


def _spot(world: World, node: Node) -> Terms:
    partition = world.site.partition(node.partitions[0])
    elastic = partition.elastic if partition is not None else None
    return replace(SPOT, price_seconds=elastic.buy.spot_price_seconds) if elastic else SPOT


def decide_repriced(world: World, seen: Repriced, now: int) -> Decision:
    """What the machine costs from now on, and cost since its price changed."""
    node = world.present(seen.node, seen.launch)
    if node is None or node.meter is None:
        return NOTHING
    meter = repriced(node.meter, seen.machine)
    if meter == node.meter:
        return NOTHING
    return Decision([_metered(node, meter, node.beside, now=now)])


def _beside(world: World, node: Node, meter: Meter) -> tuple[Meter, ...]:
    """What is billed by itself for as long as the machine runs, whoever ends it.

    One that is started again has its volume still, and its other parts anew.
    """
    known = {one.part: one for one in node.beside if not one.closed}
    runs = node.meter is not None and not node.meter.closed
    if (node.beside and runs) or node.declared:
        return tuple(replace(one, booted_at=meter.booted_at) for one in known.values())
    partition = world.site.partition(node.partitions[0])
    if partition is None or partition.elastic is None:
        return ()
    policy, rates = partition.elastic.buy, world.site.rates
    billed = parts(policy, meter.region, rates, build=node.build)
    fresh = {
        part: replace(meter, part=part, terms=ON_DEMAND, prices=(Price(meter.running_at, price),))
        for part, price in billed.items()
    }
    return tuple((fresh | known).values())


def _owned(node: Node) -> Meter | None:
    """A declared node with a price costs it from when it is first up, used or not."""
    if not node.micro_usd_per_hour or node.booted is None:
        return None
    return Meter(
        node=node.name,
        launch=node.launch,
        whole=node.whole,
        terms=OWNED,
        prices=(Price(node.booted, node.micro_usd_per_hour),),
        running_at=node.booted,
        booted_at=node.booted,
    )


def _metered(node: Node, meter: Meter, beside: tuple[Meter, ...], *, now: int) -> nev.NodeMetered:
    return nev.NodeMetered(node=node.name, launch=node.launch, at=now, meter=meter, beside=beside)


def _before_holders(world: World, fact: ev.JobEvent, now: int) -> Posted:
    facts: list[ev.Event] = []
    entries: list[Entry] = []
    job = world.jobs.get(fact.job)
    shares = fact.shares if isinstance(fact, ev.Placed | ev.Resized) else ()
    names = {share.node for share in shares} | {share.node for share in (job.shares if job else ())}
    for name in sorted(names):
        node = world.nodes.get(name)
        if node is not None:
            more, posted = _settled(world, node, now)
            facts += more
            entries += posted
    if job is not None and isinstance(fact, ev.Released):
        entries += _used(world, job, now)
    return facts, entries


def _before_step_ends(world: World, fact: ev.StepEnded, now: int) -> Posted:
    """What it could use of its job for as long as both ran, and what was measured of it."""
    job = world.jobs[fact.job]
    step = job.step(fact.step)
    if step is None or step.started is None:
        return [], []
    tres = held_by(job, step)
    billed = units(world.site, tres, job.partition)
    part = StepPart(step.id, tres, billed, sampled(fact.usage))
    payer = payer_of(job, job.attempt)
    ran = now - step.started - (job.stood(now) - step.stood)
    return [], [step_use(payer, part, started=step.started, ended=step.started + ran)]


BEFORE: Mapping[type, Callable[[World, Any, int], Posted]] = {
    **dict.fromkeys(CHANGES_HOLDERS, _before_holders),
    ev.Started: _before_start,
    ev.StepEnded: _before_step_ends,
    nev.NodeBooted: _before_boot,
    nev.NodeDrain: _was_out,
    nev.NodeRemoved: _was_out,
    NodeStopped: _before_stop,
    NodeStarted: _before_restart,
    nev.NodeGone: _before_end,
    VolumeGone: _before_volume_goes,
}
AFTER: Mapping[type, Callable[[World, Any], list[ev.Event]]] = {
    nev.MachineBought: _after_boot,
    nev.NodeBooted: _after_boot,
    NodeStarted: _after_restart,
}


def _used(world: World, job: Job, now: int) -> tuple[Entry, ...]:
    """TRES seconds of an attempt that is over."""
    if job.started is None:
        return ()
    grade = world.site.book.qos.get(job.qos)
    factor = int((grade.usage_factor if grade else 1.0) * UNIT)
    used = usage(
        payer_of(job, job.attempt),
        job.alloc,
        billing=units(world.site, job.alloc, job.partition),
        started=job.started,
        ended=job.used_until(now),
    )
    return tuple(replace(entry, factor_millionths=factor, waited=job.waited) for entry in used)


def _settled(world: World, node: Node, now: int) -> Posted:
    if node.meter is None:
        return [], []
    every = (node.meter, *node.beside)
    if all(one.closed or now <= one.since for one in every):
        return [], []
    holders = _holders(world, node)
    return _posted(node, [settle(one, holders, now) for one in every], now)


def _posted(node: Node, made: Sequence[tuple[Meter, tuple[Entry, ...]]], now: int) -> Posted:
    """The machine's meter comes first, then those of what is beside it."""
    (meter, *beside), entries = [one for one, _ in made], [e for _, more in made for e in more]
    return [_metered(node, meter, tuple(beside), now=now)], entries


def _holders(world: World, node: Node) -> list[Holder]:
    """Who pays for it now: a machine that is stopped is paid by the job that it waits for."""
    held = world.holders.get(node.name, {})
    keeper = keeper_of(world, node)
    if keeper is not None and not held:
        return [Holder(payer_of(keeper, keeper.attempt), node.whole)]
    return [
        Holder(payer_of(world.jobs[job_id], world.jobs[job_id].attempt), share.tres)
        for job_id, share in sorted(held.items())
    ]


def _last_meter(world: World, node: Node, machine: Machine | None) -> Meter | None:
    """With the prices that are known at the end."""
    if node.meter is None or machine is None:
        return node.meter or _meter(world, replace(node, machine=machine))
    return repriced(node.meter, machine)


def _halted(world: World, node: Node, machine: Machine, *, now: int) -> Posted:
    """A machine that is stopped is billed no more, but for its volume."""
    meter = _last_meter(world, node, machine)
    if meter is None:
        return [], []
    ended = machine.stopped_at if machine.stopped_at is not None else now
    holders = _holders(world, node)
    every = (meter, *_beside(world, node, meter))
    made = [(settle if one.part == VOLUME else close)(one, holders, ended) for one in every]
    return _posted(node, made, now)


def _closed(world: World, node: Node, machine: Machine | None, *, now: int) -> Posted:
    last = machine or node.machine
    meter = _last_meter(world, node, last)
    if meter is None or last is None or all(m.closed for m in (meter, *node.beside)):
        return [], []
    ended = last.terminated_at if last.terminated_at is not None else now
    holders, back = _holders(world, node), last.ended_by_provider
    every = (meter, *_beside(world, node, meter))
    made = [close(one, holders, ended, interrupted_by_provider=back) for one in every]
    return _posted(node, made, now)


def _data_brought(world: World, job: Job, now: int) -> list[Entry]:
    """What it costs to bring a job's data from the region where it lies, once for each attempt."""
    asked, node = job.spec.resources, world.nodes.get(job.shares[0].node) if job.shares else None
    region = region_of(node) if node is not None else None
    if region is None:
        return []
    gib, source = asked.data_gib or 0, asked.data_region or ""
    cost = world.site.rates.moving(gib, source, region)
    return [moved(payer_of(job, job.attempt), cost, region=region, at=now)] if cost else []


def periodic(world: World, now: int) -> Posted:
    """Running machines brought up to date, so that cost shows while jobs run."""
    facts: list[ev.Event] = []
    entries: list[Entry] = []
    for name in sorted(world.nodes):
        node = world.nodes[name]
        if node.state in (NodeState.UP, NodeState.STOPPED):
            more, posted = _settled(world, node, now)
            facts += more
            entries += posted
    for volume in world.volumes.values():
        if volume.meter is not None and volume.meter.since < now:
            meter, due = settle(volume.meter, [holder(volume)], now)
            facts.append(VolumeSet(at=now, record=replace(volume, meter=meter)))
            entries += due
    return facts, entries
