"""Which machines of a job let each other in: several, none of which is a folder of this host."""

from collections.abc import Sequence

from broker.model.node import Node


def elsewhere(node: Node) -> bool:
    """Whether it is a machine that was bought and is reached over a network."""
    return node.machine is not None and not node.declared and "/" not in node.machine.address


def kindred(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """All nodes of a job, if they are to let each other in; else none."""
    whole = len(nodes) > 1 and all(elsewhere(node) for node in nodes)
    return tuple(nodes) if whole else ()
