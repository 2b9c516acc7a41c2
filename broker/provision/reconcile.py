"""What exists against what we hold: machines nobody knows are let go, losses are told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.model.effects import Terminate
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, MachineState
from broker.model.pricing import repriced
from broker.model.reports import Repriced, Terminated, Vanished
from broker.model.site import Elastic
from broker.ports import Provider
from broker.world import Snapshot

Held = tuple[Provider, Machine]


def held(
    node: tuple[NodeName, int], providers: Mapping[str, Provider], known: Machine | None
) -> Held | None:
    """The node's machine, and who holds it; of two one that still is, first the one that is known.

    Two there are where one was bought in doubt, or somebody copied one with its tags.
    """
    id = known.id if known else None
    found = [
        (provider, machine)
        for provider in providers.values()
        for machine in provider.machines()
        if machine.identity == node
    ]
    return min(
        found,
        key=lambda one: (one[1].state is MachineState.TERMINATED, one[1].id != id),
        default=None,
    )


def terminate(effect: Terminate, providers: Mapping[str, Provider]) -> Terminated | None:
    """Terminated once the provider confirms it; None while it is still on the way."""
    node = effect.node, effect.launch
    found = held(node, providers, effect.machine)
    if found is not None and found[1].state is not MachineState.TERMINATED:
        found[0].terminate([found[1]])
        found = held(node, providers, effect.machine)
    if found is not None and found[1].state is not MachineState.TERMINATED:
        return None
    last = effect.machine if found is None else found[1]
    return Terminated(node=effect.node, launch=effect.launch, machine=last)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a sweep found; `stray` machines belong to nobody, `lost` nodes have no machine.

    Machines of `repriced` ones cost otherwise than is known.
    """

    stray: tuple[Machine, ...]
    lost: tuple[Vanished, ...]
    repriced: tuple[Repriced, ...] = ()


def nodes_of(seen: Snapshot, provider: str) -> Mapping[NodeName, Node]:
    """Those whose machines come from this provider: of others it holds none."""
    names = {
        part.name for part in seen.site.partitions if part.elastic and _from(part.elastic, provider)
    }
    return {
        name: node
        for name, node in seen.nodes.items()
        if not node.declared and names.intersection(node.partitions)
    }


def _from(elastic: Elastic, provider: str) -> bool:
    return elastic.buy.provider == provider


def difference(
    nodes: Mapping[NodeName, Node], machines: Iterable[Machine], *, lately: int | None = None
) -> Difference:
    """Compares by identity (name, launch number). Nodes still being bought are left alone.

    One bought since the instant `lately` may not be shown by its provider yet: it is not lost. Of
    two machines of one node, bought in doubt, the other one is a stray.
    """
    known = {node.identity: node for node in nodes.values()}
    seen: dict[tuple[NodeName, int], Machine] = {}
    others: list[Machine] = []
    for machine in machines:
        node = known.get(machine.identity)
        if node is None or (node.machine is not None and node.machine.id != machine.id):
            others.append(machine)
        else:
            seen[machine.identity] = machine
    stray = tuple(
        machine
        for machine in sorted(others, key=lambda one: (one.identity, one.id))
        if machine.state is not MachineState.TERMINATED
    )
    lost = tuple(
        Vanished(node=node.name, launch=node.launch, machine=_blamed(node, seen))
        for node in _ours(nodes.values())
        if (_over(seen.get(node.identity)) or _halted(node, seen.get(node.identity)))
        and not _too_new(node, seen, lately)
    )
    return Difference(stray, lost, tuple(_repriced(nodes.values(), seen)))


def _repriced(
    nodes: Iterable[Node], seen: Mapping[tuple[NodeName, int], Machine]
) -> Iterator[Repriced]:
    for node in nodes:
        machine = seen.get(node.identity)
        if machine is None or node.meter is None or repriced(node.meter, machine) == node.meter:
            continue
        yield Repriced(node=node.name, launch=node.launch, machine=machine)


IN_BETWEEN = frozenset({NodeState.LAUNCHING, NodeState.TERMINATING})
"""Nodes whose machine may not be there yet, or no longer."""


def _ours(nodes: Iterable[Node]) -> Sequence[Node]:
    return [node for node in nodes if not node.declared and node.state not in IN_BETWEEN]


def _blamed(node: Node, seen: Mapping[tuple[NodeName, int], Machine]) -> Machine | None:
    """Its machine; where a job's own image may be why it never ran, no place is to blame."""
    machine = seen.get(node.identity)
    late = None if machine is None else machine.unstarted
    if machine is None or late is None or late.refusal is not Refusal.TRANSIENT:
        return machine
    own = node.build is not None and node.build.image(machine.region)
    return replace(machine, unstarted=replace(late, width=Width.NOTHING)) if own else machine


def _over(machine: Machine | None) -> bool:
    return machine is None or machine.state is MachineState.TERMINATED


def _halted(node: Node, machine: Machine | None) -> bool:
    """Whether somebody stopped it behind our back."""
    halts = machine is not None and machine.state is MachineState.STOPPED
    return halts and node.state is NodeState.UP


def _too_new(node: Node, seen: Mapping[tuple[NodeName, int], Machine], lately: int | None) -> bool:
    if lately is None or node.machine is None or node.identity in seen:
        return False
    return node.machine.launched_at > lately
