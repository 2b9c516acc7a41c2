"""What a job would cost that is only asked about: at the prices of now, and at worst."""

from dataclasses import dataclass

from broker.decide.rules import QuoteFor
from broker.model.job import Job
from broker.model.site import Elastic, Partition, Site
from broker.schedule.budgets import HOUR, Outlay, data_cost, over_of
from broker.schedule.demand import Demand, demand, expected_seconds
from broker.schedule.holding import Purchase, within
from broker.schedule.shapes import shape
from broker.schedule.sorts import Part


@dataclass(frozen=True, slots=True)
class Cost:
    """Micro-dollars until its limit, an hour without one."""

    now: int
    """On the best offer at present prices."""
    most: int
    """On the dearest of the offers that would be tried, until it is ended: as a budget counts."""
    old_price: str = ""
    """What is to be said of the best offer's price if it is old."""


def cost_of(job: Job, partition: Partition, quote: QuoteFor, *, site: Site) -> Cost:
    """In a partition where it could start."""
    ask, seconds = demand(job.spec, partition), expected_seconds(job)
    most_seconds = seconds + over_of(site, partition.name)
    elastic = partition.elastic
    if elastic is None:
        outlay = Outlay(site.dearest(partition) * ask.min_nodes)
        return Cost(-(-outlay.rate * seconds // HOUR), outlay.for_seconds(most_seconds))
    parts = shape(job, ask, lambda need: quote(need, elastic)).parts
    firsts = [(part.nodes, first) for part in parts if (first := part.quote.first)]
    rate = sum(n * (one.offer.micro_usd_per_hour + one.beside_micro_usd) for n, one in firsts)
    outlay = _outlay(job, ask, elastic, parts=parts, site=site)
    old = next((one.old_price for _, one in firsts if one.old_price), "")
    return Cost(-(-rate * seconds // HOUR), outlay.for_seconds(most_seconds), old)


def _outlay(
    job: Job, ask: Demand, elastic: Elastic, *, parts: tuple[Part, ...], site: Site
) -> Outlay:
    nodes = sum(part.nodes for part in parts)
    whole = Purchase(ask, elastic, nodes, lambda region: data_cost(job, (region,), site.rates))
    return within(whole, parts, lambda _: None)[1].outlay
