"""What a job would hold of machines that are still to be bought, where it is more than it asks."""

from collections.abc import Callable, Sequence

from accounting.tres import Tres, most_of
from broker.model.offer import Offer, Ranked
from broker.model.site import Elastic
from broker.schedule.demand import Demand


def schedulable(offer: Offer, elastic: Elastic) -> Tres:
    """What a machine of this offer has for jobs (HOUSE 8: 95 % of the memory by default)."""
    memory = offer.mem_mib * elastic.buy.memory_share_percent // 100
    return Tres(cpu=offer.cpus, mem_mib=memory, node=1, gres=offer.gres)


def takes_all(ask: Demand) -> bool:
    """Whether the size of its nodes says how much it holds."""
    sized = isinstance(ask.mem_per_node, int) or (ask.mem_per_cpu, ask.mem_per_gpu) != (None, None)
    return ask.whole_node or not sized


Each = Sequence[Tres]
"""What a job holds of each of its nodes."""


def within(
    rungs: Sequence[Ranked], size: Callable[[Offer], Each], reason: Callable[[Each], str | None]
) -> tuple[tuple[Ranked, ...], Each, str | None]:
    """Offers of which nothing forbids what the job would hold, and how much that is at most.

    Where none is left, the reason against the best of them.
    """
    why = [reason(size(one.offer)) for one in rungs]
    left = tuple(one for one, barred in zip(rungs, why, strict=True) if barred is None)
    sizes = [size(one.offer) for one in left]
    most = [most_of(column) for column in zip(*sizes, strict=True)]
    return left, most, None if left else why[0]


def held(ask: Demand, elastic: Elastic, offer: Offer, *, nodes: int) -> Each:
    """What it would hold of each of so many of these machines."""
    tasks = -(-ask.tasks // nodes)
    gpus = tuple(gpu.model_copy(update={"count": -(-gpu.count // nodes)}) for gpu in ask.gpus)
    return (ask.on_node(tasks, schedulable(offer, elastic), gpus),) * nodes
