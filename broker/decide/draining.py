"""A node that is to take no more work, or may take some again."""

from broker.model.node import Node
from broker.model.nodeevents import NodeDrain

ROOT = 0


def draining(node: Node, now: int, *, reason: str, drain: bool = True, by: int = ROOT) -> NodeDrain:
    """`by` stands behind the reason in `sinfo -R`: root for what the service does itself."""
    return NodeDrain(
        node=node.name, launch=node.launch, at=now, actor=by, drain=drain, reason=reason
    )
