"""What a job would hold of machines that are still to be bought, where it is more than it asks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from accounting.tres import Tres, most_of
from broker.model.offer import Offer, Ranked
from broker.model.site import Elastic
from broker.schedule.budgets import NO_OUTLAY, READY_SECONDS, Outlay
from broker.schedule.demand import Demand
from broker.schedule.sorts import Part


def schedulable(offer: Offer, elastic: Elastic) -> Tres:
    """What a machine of this offer has for jobs (95 % of the memory by default)."""
    memory = offer.mem_mib * elastic.buy.memory_share_percent // 100
    return Tres(cpu=offer.cpus, mem_mib=memory, node=1, gres=offer.gres)


def takes_all(ask: Demand) -> bool:
    """Whether the size of its nodes says how much it holds."""
    sized = isinstance(ask.mem_per_node, int) or (ask.mem_per_cpu, ask.mem_per_gpu) != (None, None)
    return ask.whole_node or not sized


Each = Sequence[Tres]
"""What a job holds of each of its nodes."""
Rungs = tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """What a job would hold of an offer's machines, and what they cost it at worst."""

    each: Each
    outlay: Outlay

    def __add__(self, other: "Bill") -> "Bill":
        one, more = self.outlay, other.outlay
        outlay = Outlay(one.rate + more.rate, max(one.boot, more.boot), max(one.once, more.once))
        return Bill((*self.each, *other.each), outlay)


NOTHING = Bill((), NO_OUTLAY)


@dataclass(frozen=True, slots=True)
class Purchase:
    """So many machines in all for one job; what bringing its data to a region costs."""

    ask: Demand
    elastic: Elastic
    nodes: int
    data: Callable[[str], int]

    def bill(self, one: Ranked, nodes: int) -> Bill:
        """Of so many of them that are of this offer, with what comes beside them."""
        each = (self._held(one.offer),) * nodes if takes_all(self.ask) else ()
        boot = self.elastic.boot_timeout + READY_SECONDS
        return Bill(each, Outlay(one.dearest * nodes, boot, self.data(one.offer.region)))

    def _held(self, offer: Offer) -> Tres:
        tasks = -(-self.ask.tasks // self.nodes)
        gpus = tuple(
            gpu.model_copy(update={"count": -(-gpu.count // self.nodes)}) for gpu in self.ask.gpus
        )
        return self.ask.on_node(tasks, schedulable(offer, self.elastic), gpus)


def within(
    purchase: Purchase, parts: Iterable[Part], reason: Callable[[Bill], str | None]
) -> tuple[list[Rungs], Bill, str | None]:
    """Of each part the offers that nothing forbids, and what all hold and pay at most.

    Where none is left of one, the reason against the best of them.
    """
    rungs: list[Rungs] = []
    most = NOTHING
    for part in parts:
        bills = [most + purchase.bill(one, part.nodes) for one in part.quote.rungs]
        why = [reason(one) for one in bills]
        left = [place for place, barred in enumerate(why) if barred is None]
        if not left:
            return rungs, most, why[0]
        rungs.append(tuple(part.quote.rungs[place] for place in left))
        most = Bill(
            [most_of(all_of) for all_of in zip(*(bills[n].each for n in left), strict=True)],
            _most(bills[place].outlay for place in left),
        )
    return rungs, most, None


def _most(outlays: Iterable[Outlay]) -> Outlay:
    rates, boots, once = zip(*((one.rate, one.boot, one.once) for one in outlays), strict=True)
    return Outlay(max(rates), max(boots), max(once))
