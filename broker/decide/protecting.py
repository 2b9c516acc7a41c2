"""Protected mode: a kind of machine that never comes up is not bought again and again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from broker.decide.rules import Decision
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.boots import BootsGone, BootsSet, BuyAgain, FailedBoots
from broker.model.errors import ACCESS_DENIED, Denied, Unknown
from broker.model.node import Node
from broker.optimize.protected import MOST_FAILED, PROTECTED_SECONDS, kind_of
from broker.world import World


def after(world: World, fact: ev.Event) -> list[ev.Event]:
    """What follows from a machine that came up, or never did, for its kind."""
    found = AFTER.get(type(fact))
    return [] if found is None else found(world, fact)


def _came_up(world: World, fact: nev.NodeBooted) -> list[ev.Event]:
    kind = _kind(world, world.nodes[fact.node])
    return [BootsGone(at=fact.at, name=kind)] if kind in world.boots else []


def _did_not(world: World, fact: nev.NodeDoomed) -> list[ev.Event]:
    """One that comes up with its disk of before says nothing."""
    node = world.nodes[fact.node]
    kind = _kind(world, node)
    if kind is None or node.booted is not None or node.keeper or not fact.failed_boot:
        return []
    known = world.boots.get(kind) or FailedBoots(name=kind, failed=0, since=fact.at)
    failed = known.failed + 1
    until = fact.at + PROTECTED_SECONDS if failed >= MOST_FAILED else None
    record = replace(known, failed=failed, until=until, why=fact.why)
    return [BootsSet(at=fact.at, record=record)]


def _kind(world: World, node: Node) -> str | None:
    """None of what was not bought, or not yet."""
    part = world.site.partition(node.partitions[0]) if node.partitions else None
    if node.machine is None or part is None or part.elastic is None or node.declared:
        return None
    return kind_of(part.elastic.buy.provider, node.machine, node.build)


AFTER: Mapping[type, Callable[[World, Any], list[ev.Event]]] = {
    nev.NodeBooted: _came_up,
    nev.NodeDoomed: _did_not,
}


def due(world: World, now: int) -> list[ev.Event]:
    """Kinds of which one may be bought again: it shows whether they come up now."""
    over = (one for one in world.boots.values() if one.until is not None and now >= one.until)
    return [BootsSet(at=now, record=replace(one, until=None)) for one in over]


def decide_again(world: World, asked: BuyAgain, now: int) -> Decision:
    """Raises Denied, Unknown."""
    if not world.site.is_run_by(asked.by.uid):
        raise Denied(ACCESS_DENIED)
    names = [*world.boots] if asked.name is None else [asked.name]
    unknown = [name for name in names if name not in world.boots]
    if unknown:
        raise Unknown(
            f"{unknown[0]!r} is no kind of machine that did not come up",
            hint="`spz unprotect` lists them",
        )
    return Decision([BootsGone(at=now, actor=asked.by.uid, name=name) for name in names], names)
