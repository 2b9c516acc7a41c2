"""What would be bought for one job alone: how many machines, of which offers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from broker.model.job import Job
from broker.model.offer import Need
from broker.model.site import Elastic
from broker.schedule.demand import Demand, need_for
from broker.schedule.view import TARGETS, Quote

MOST_NODES = 4
LEAST_CPUS = 64
"""A job without -N is spread over several machines only if each part has so many cpus."""
WORTH_A_NODE = 0.9
"""And only if that costs at most this share of what it costs on fewer."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Machines for one job, all alike."""

    nodes: int
    need: Need
    quote: Quote

    @property
    def micro_usd(self) -> float:
        """Expected for the whole job; infinite where nothing is sold."""
        first = self.quote.first
        return first.expected_micro_usd if first else float("inf")


def liked(
    quote: Callable[[Need, Elastic], Quote], need: Need, *, elastic: Elastic, wish: str | None
) -> Quote:
    """Of machines with the features that a job prefers, if there are such, else of any."""
    if wish in TARGETS:
        return quote(need, replace(elastic, buy=replace(elastic.buy, prefer=wish)))
    if wish is not None and "*" not in wish + (need.constraint or ""):
        both = wish if need.constraint is None else f"({need.constraint})&({wish})"
        best = quote(replace(need, constraint=both), elastic)
        if best.first:
            return best
    return quote(need, elastic)


def shape(job: Job, ask: Demand, quote: Callable[[Need], Quote]) -> Shape:
    """The fewest machines that cost about the least.

    A job that says no number of nodes gets as few as its tasks take (Slurm 25.11); a single
    machine for very many cpus is rare and dear.
    """
    first, *others = _shapes(job, ask, quote)
    best = first
    for other in others:
        if other.micro_usd < best.micro_usd * WORTH_A_NODE:
            best = other
    return best


def _shapes(job: Job, ask: Demand, quote: Callable[[Need], Quote]) -> Iterator[Shape]:
    free = ask.min_nodes == 1 and ask.max_nodes is None and not ask.whole_node
    most = MOST_NODES if free else 1
    for nodes in range(ask.min_nodes, ask.min_nodes + most):
        spread = replace(ask, min_nodes=nodes)
        if nodes > ask.min_nodes and not _is_large(spread):
            return
        need = need_for(job, spread)
        yield Shape(nodes, need, quote(need))


def _is_large(ask: Demand) -> bool:
    return ask.tasks // ask.min_nodes * ask.cpus_per_task >= LEAST_CPUS
