"""Whether the prices of machines are old: one rule for every table and text that shows some."""

from collections.abc import Iterable

from broker.model.node import Node, NodeState
from broker.model.site import Site
from broker.optimize.ages import OLD_DAYS, old
from gateway.query.dollars import oldest


def old_price(nodes: Iterable[Node], site: Site, now: int) -> str | None:
    """What is said of the oldest of their prices by the hour; None where none is old."""
    return oldest(_of(node, site, now) for node in nodes)


def _of(node: Node, site: Site, now: int) -> str:
    """A stopped one is billed for what is kept of it, not by its machine's price."""
    if node.machine is None or node.state is NodeState.STOPPED:
        return ""
    return old(node.machine.price_of, now, old_days=_patience(node, site))


def _patience(node: Node, site: Site) -> int:
    """As the partition has it that bought it."""
    found = (site.partition(name) for name in node.partitions)
    return next((part.elastic.buy.old_days for part in found if part and part.elastic), OLD_DAYS)
