"""What a job would hold of machines that are still to be bought, where it is more than it asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accounting.tres import Tres, most_of
from broker.model.offer import Offer, Ranked
from broker.model.site import Elastic
from broker.schedule.demand import Demand


def schedulable(offer: Offer, elastic: Elastic) -> Tres:
    """What a machine of this offer has for jobs (95 % of the memory by default)."""
    memory = offer.mem_mib * elastic.buy.memory_share_percent // 100
    return Tres(cpu=offer.cpus, mem_mib=memory, node=1, gres=offer.gres)


def takes_all(ask: Demand) -> bool:
    """Whether the size of its nodes says how much it holds."""
    sized = isinstance(ask.mem_per_node, int) or (ask.mem_per_cpu, ask.mem_per_gpu) != (None, None)
    return ask.whole_node or not sized


HOUR = 3600
Each = Sequence[Tres]
"""What a job holds of each of its nodes."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a job would hold of an offer's machines, and what they cost it an hour at worst."""

    each: Each
    rate: int


def within(
    rungs: Sequence[Ranked], bill: Callable[[Ranked], Bill], reason: Callable[[Bill], str | None]
) -> tuple[tuple[Ranked, ...], Bill, str | None]:
    """Offers that nothing forbids the job, and what it would hold and pay of them at most.

    Where none is left, the reason against the best of them.
    """
    bills = [bill(one) for one in rungs]
    why = [reason(one) for one in bills]
    left = [place for place, barred in enumerate(why) if barred is None]
    most = Bill(
        [most_of(column) for column in zip(*(bills[place].each for place in left), strict=True)],
        max((bills[place].rate for place in left), default=0),
    )
    return tuple(rungs[place] for place in left), most, None if left else why[0]


def bill(ask: Demand, elastic: Elastic, one: Ranked, *, nodes: int, seconds: int) -> Bill:
    """Of so many such machines for so long, with what comes beside them."""
    each = held(ask, elastic, one.offer, nodes=nodes) if takes_all(ask) else ()
    whole = -(-one.expected_micro_usd * HOUR // max(1, seconds))
    return Bill(each, max(whole, one.offer.micro_usd_per_hour * nodes))


def held(ask: Demand, elastic: Elastic, offer: Offer, *, nodes: int) -> Each:
    """What it would hold of each of so many of these machines."""
    tasks = -(-ask.tasks // nodes)
    gpus = tuple(gpu.model_copy(update={"count": -(-gpu.count // nodes)}) for gpu in ask.gpus)
    return (ask.on_node(tasks, schedulable(offer, elastic), gpus),) * nodes
