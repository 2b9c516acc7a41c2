"""What would be bought for one job alone: how many machines, of which offers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from broker.model.job import Job
from broker.model.offer import Need
from broker.model.site import Elastic
from broker.schedule.demand import Demand, need_for
from broker.schedule.sorts import Part, of_sorts
from broker.schedule.view import TARGETS, Quote

MOST_NODES = 4
LEAST_CPUS = 64
"""A job without -N is spread over several machines only if each part has so many cpus."""
WORTH_A_NODE = 0.9
"""And only if that costs at most this share of what it costs on fewer, or on machines alike."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Machines for one job: one part where they are all alike."""

    parts: tuple[Part, ...]

    @property
    def nodes(self) -> int:
        return sum(part.nodes for part in self.parts)

    @property
    def need(self) -> Need:
        """Of the first of them: of all that is alike."""
        return self.parts[0].need

    @property
    def micro_usd(self) -> float:
        """Expected for the whole job; infinite where nothing is sold."""
        return sum(part.micro_usd for part in self.parts)

    @property
    def lacking(self) -> Quote | None:
        """Where nothing is sold; None if all of it is."""
        return next((part.quote for part in self.parts if part.quote.first is None), None)


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
        yield Shape((Part(need, quote(need)),))
        if ask.kinds and nodes > 1:
            yield Shape(of_sorts(need, ask.kinds, quote))


def _is_large(ask: Demand) -> bool:
    return ask.tasks // ask.min_nodes * ask.cpus_per_task >= LEAST_CPUS
