"""The transition table of nodes, and `apply_node`: the only code that gives a node a state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from broker.model import nodeevents as nev
from broker.model import stopping as stop
from broker.model.errors import IllegalTransition
from broker.model.node import Node, NodeState

NODE_TRANSITIONS: dict[tuple[NodeState, type], NodeState | None] = {
    (NodeState.LAUNCHING, nev.MachineBought): NodeState.BOOTING,
    (NodeState.LAUNCHING, nev.LaunchFailed): None,
    (NodeState.LAUNCHING, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.BOOTING, nev.NodeBooted): NodeState.UP,
    (NodeState.BOOTING, nev.NodeDown): NodeState.DOWN,
    (NodeState.BOOTING, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.UP, nev.NodeDown): NodeState.DOWN,
    (NodeState.UP, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.DOWN, nev.NodeBooted): NodeState.UP,
    (NodeState.DOWN, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.TERMINATING, nev.MachineBought): NodeState.TERMINATING,
    (NodeState.TERMINATING, nev.NodeGone): None,
    (NodeState.UP, stop.NodeStopping): NodeState.STOPPING,
    (NodeState.BOOTING, stop.NodeStopping): NodeState.STOPPING,
    (NodeState.STARTING, stop.NodeStopping): NodeState.STOPPING,
    (NodeState.STOPPING, stop.NodeStopped): NodeState.STOPPED,
    (NodeState.STOPPED, stop.NodeStarting): NodeState.STARTING,
    (NodeState.STARTING, stop.NodeStarted): NodeState.BOOTING,
    (NodeState.STOPPING, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.STOPPED, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.STARTING, nev.NodeDoomed): NodeState.TERMINATING,
    (NodeState.BOOTING, nev.NodeRemoved): None,
    (NodeState.UP, nev.NodeRemoved): None,
    (NodeState.DOWN, nev.NodeRemoved): None,
}
"""None: the record goes to history."""

NODE_MOVING = frozenset(kind for _, kind in NODE_TRANSITIONS)


def apply_node(node: Node | None, event: nev.NodeEvent) -> Node | None:
    """The node after the event; None when its record goes to history.

    Raises IllegalTransition if the table has no row for it, or there is no such machine.
    """
    if isinstance(event, nev.NodeMade):
        if node is not None:
            raise IllegalTransition(f"node {event.node} exists already")
        return event.record
    if node is None or node.launch != event.launch:
        raise IllegalTransition(f"{type(event).__name__} of unknown {event.node}.{event.launch}")
    changed = NODE_EFFECT[type(event)](node, event)
    if type(event) not in NODE_MOVING:
        return _counted(changed, event.at)
    if (node.state, type(event)) not in NODE_TRANSITIONS:
        raise IllegalTransition(
            f"node {node.name} is {node.state.label}: no {type(event).__name__} from there"
        )
    state = NODE_TRANSITIONS[node.state, type(event)]
    if state is None:
        return None
    return _counted(replace(changed, state=state, since=event.at), event.at)


def _counted(node: Node, at: int) -> Node:
    """Since when it takes no work, or that it does again."""
    out = node.drain or node.state is NodeState.DOWN
    if out == (node.out_since is not None):
        return node
    return replace(node, out_since=at if out else None)


def _bought(node: Node, event: nev.MachineBought) -> Node:
    offer = event.offer
    rungs = tuple(rung for rung in node.rungs if rung.offer == offer)
    return replace(
        node,
        machine=event.machine,
        dearest=max((rung.dearest for rung in rungs), default=node.dearest),
        micro_usd_per_hour=event.machine.micro_usd_per_hour,
        rungs=rungs,
        whole=event.whole,
        features=_features(event),
        real_memory_mib=event.whole.mem_mib,
        cores_per_socket=offer.cpus,
        gres_text=",".join(f"{name}:{n}" for name, n in event.whole.gres if ":" in name),
    )


def _features(event: nev.MachineBought) -> tuple[str, ...]:
    """Those of the offer, with the one zone that the machine is in."""
    elsewhere = set(event.offer.zones) - {event.machine.zone}
    return tuple(word for word in event.offer.features if word not in elsewhere)


def _booted(node: Node, event: nev.NodeBooted) -> Node:
    machine = event.machine or node.machine
    return replace(node, machine=machine, booted=event.at, reason="", keeper=None, rungs=())


def _starting(node: Node, event: stop.NodeStarting) -> Node:
    """As one that was bought for that attempt."""
    return replace(node, cause=event.cause, boot_deadline=event.boot_deadline, booted=None)


def _with_reason(node: Node, event: nev.NodeDown | nev.NodeDoomed) -> Node:
    return replace(node, reason=event.why or node.reason, reason_at=event.at)


def _drain(node: Node, event: nev.NodeDrain) -> Node:
    if not event.drain:
        return replace(node, drain=False, reason="", reason_at=None, reason_uid=None)
    return replace(
        node, drain=True, reason=event.reason, reason_at=event.at, reason_uid=event.actor
    )


NODE_EFFECT: dict[type, Callable[[Node, Any], Node]] = {
    nev.NodeRevised: lambda node, event: event.record,
    nev.MachineBought: _bought,
    nev.LaunchFailed: lambda node, event: node,
    nev.NodeBooted: _booted,
    nev.NodeDown: _with_reason,
    nev.NodeIdle: lambda node, event: replace(node, idle_since=event.idle_since),
    nev.NodeDrain: _drain,
    nev.NodeDoomed: _with_reason,
    nev.NodeGone: lambda node, event: replace(node, machine=event.machine or node.machine),
    nev.NodeMetered: lambda node, event: replace(node, meter=event.meter, beside=event.beside),
    stop.NodeStopping: lambda node, event: replace(node, keeper=event.keeper),
    stop.NodeStopped: lambda node, event: replace(node, machine=event.machine, booted=None),
    stop.NodeStarting: _starting,
    stop.NodeStarted: lambda node, event: replace(node, machine=event.machine),
    nev.NodeRemoved: lambda node, event: node,
    nev.JournalRead: lambda node, event: replace(node, journal=event.position),
}
