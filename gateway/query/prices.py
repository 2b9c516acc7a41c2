"""Whether the prices of machines are old: one rule for every table and text that shows some."""

from collections.abc import Iterable
from dataclasses import replace

from broker.model.node import Node, NodeState
from broker.model.offer import BuyPolicy
from broker.model.site import Site
from broker.optimize.ages import old
from broker.optimize.reasons import old_rates
from gateway.query.dollars import oldest


def old_price(nodes: Iterable[Node], site: Site, now: int) -> str | None:
    """What is said of the oldest of their prices by the hour; None where none is old."""
    return oldest(_of(node, site, now) for node in nodes)


def _of(node: Node, site: Site, now: int) -> str:
    """Of its price, else of the rates beside it; a stopped one is billed for its volume alone."""
    machine, buy = node.machine, _policy(node, site)
    if machine is None:
        return ""
    stopped = node.state is NodeState.STOPPED
    told = "" if stopped else old(machine.price_of, now, old_days=buy.old_days)
    beside = replace(buy, public_address=False) if stopped else buy
    return told or old_rates(beside, machine.region, site.rates, now=now)


def _policy(node: Node, site: Site) -> BuyPolicy:
    """As the partition has it that bought it."""
    found = (site.partition(name) for name in node.partitions)
    return next((part.elastic.buy for part in found if part and part.elastic), BuyPolicy())
