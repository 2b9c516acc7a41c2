"""Jobs that could share machines, planned together: on which there are, and on which to buy.

A lot holds jobs of one partition that want machines of one sort. What a place costs is the time
by which its machine has to be paid for longer; a place is taken where that is less than what
the same jobs would cost on machines bought for them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log

from broker.model.job import Job
from broker.model.offer import Need, Offer, Ranked
from broker.model.site import Elastic, Partition
from broker.model.spec import UNLIMITED
from broker.schedule.demand import Demand
from broker.schedule.eligible import Ask
from broker.schedule.view import FOREVER, Quote, Rider

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""How many jobs a machine to be bought may be made for."""
SPREAD = 0.05
"""How much longer than its mean the longest of e jobs that are alike is taken to run."""
HANDLING_MICRO_USD = 1000
"""What a start is taken to cost beside its price: calls, and the chance that it fails."""
WORTH_MORE_NODES = 1.1
"""How much dearer machines may be where there are too few names for the cheapest."""

Size = tuple[int, int, int]
"""Cpus, MiB, GPUs."""
Load = tuple[tuple["Kind", int], ...]
"""How many of each kind are on one machine, the kind that runs longest first."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One job, or one element of an array, that wants room."""

    job: Job
    task: int | None
    ask: Ask

    @property
    def rider(self) -> Rider:
        return Rider(self.job.id, self.task, self.ask.demand)


@dataclass(slots=True, eq=False)
class Kind:
    """Wishes that are alike: what each needs, and those that are not served yet."""

    need: Need
    limited: bool
    wishes: list[Wish] = field(default_factory=list)
    first: int = 0
    """Wishes before this one are served."""

    @property
    def size(self) -> Size:
        return self.need.cpus, self.need.mem_mib, self.need.gpus

    @property
    def left(self) -> int:
        return len(self.wishes) - self.first

    def next(self) -> Wish:
        """The next to be served."""
        self.first += 1
        return self.wishes[self.first - 1]

    def until(self, now: int) -> int:
        """When one that starts now is over at the latest."""
        return now + self.need.run_seconds if self.limited else FOREVER


@dataclass(slots=True)
class Lot:
    """What is planned together."""

    partition: Partition
    elastic: Elastic
    kinds: dict[tuple[Need, bool, Demand], Kind] = field(default_factory=dict)

    def add(self, wish: Wish, need: Need) -> None:
        limited = wish.job.time_limit != UNLIMITED
        key = need, limited, wish.ask.demand
        self.kinds.setdefault(key, Kind(need, limited)).wishes.append(wish)

    def open(self) -> list[Kind]:
        """Kinds of which somebody is not served: the longest first, and of those the largest."""
        left = [kind for kind in self.kinds.values() if kind.left]
        return sorted(
            left, key=lambda kind: (-kind.need.run_seconds, *(-n for n in kind.size[::-1]))
        )

    @property
    def left(self) -> Iterator[Wish]:
        return (wish for kind in self.kinds.values() for wish in kind.wishes[kind.first :])


def shares_a_machine(job: Job, ask: Demand) -> bool:
    """Whether it takes a known part of one node, and can leave the rest to others."""
    asked = job.spec.resources
    alone = ask.whole_node or ask.min_nodes != 1 or ask.max_nodes not in {None, 1}
    crowded = ask.tasks_per_node is not None and ask.tasks_per_node < ask.tasks
    laid_out = ask.tasks_per_socket is not None or ask.tasks_per_core is not None
    sized = isinstance(ask.mem_per_node, int) or ask.mem_per_node is None
    known = (ask.mem_per_cpu, ask.mem_per_gpu, ask.mem_per_node) != (None, None, None)
    own = job.het is not None or asked.nodelist or any(where.gpu for where in asked.any_of)
    return sized and known and not (alone or crowded or laid_out or own)


@dataclass(frozen=True, slots=True)
class Bought:
    """A machine to be bought, by how many of each kind it is for."""

    load: Load
    ratio: float
    """Its cost to what its load would cost on machines of their own."""

    @property
    def count(self) -> int:
        return sum(count for _, count in self.load)


@dataclass(slots=True)
class Market:
    """Prices of machines for a lot."""

    lot: Lot
    quote: Callable[[Need], Quote]
    names: int
    """Machines that may still be bought."""
    worths: dict[Kind, float] = field(default_factory=dict)

    def alone(self, kind: Kind) -> float:
        """Micro-dollars for one of them on a machine of its own; infinite where none is sold."""
        first = self.quote(roughly(kind.need)).first
        return _cost(first, 1) if first else float("inf")

    def cost(self, load: Load) -> float:
        """Micro-dollars for all of it on one machine of its own; infinite where none is sold."""
        first = self.quote(roughly(together(load))).first
        return _cost(first, sum(count for _, count in load)) if first else float("inf")

    def worth(self, kind: Kind) -> float:
        """The same on the best machine that could be bought now: what a place elsewhere saves."""
        known = self.worths.get(kind)
        if known is None:
            best = _best(self, [(kind, kind.left)], self.names) if self.names else None
            known = self.alone(kind) * min(1.0, best.ratio) if best else float("inf")
            self.worths[kind] = known
        return known


def _cost(rung: Ranked, count: int) -> float:
    """What is expected of a machine with so many jobs: the longest of them keeps it."""
    return (rung.expected_micro_usd + HANDLING_MICRO_USD) * (1 + SPREAD * log(count))


def times(need: Need, count: int) -> Need:
    """What so many of them need of one machine."""
    return replace(
        need, cpus=need.cpus * count, mem_mib=need.mem_mib * count, gpus=need.gpus * count
    )


def together(load: Iterable[tuple[Kind, int]]) -> Need:
    """What they need of one machine; the first kind runs longest."""
    pairs = list(load)
    cpus, memory, gpus = (sum(kind.size[n] * count for kind, count in pairs) for n in range(3))
    return replace(pairs[0][0].need, cpus=cpus, mem_mib=memory, gpus=gpus)


def fill(counts: Iterable[tuple[Kind, int]], free: Size) -> list[tuple[Kind, int]]:
    """How many of each, taken in this order, there is room for."""
    load = []
    left = list(free)
    for kind, most in counts:
        rooms = (have // size for have, size in zip(left, kind.size, strict=True) if size)
        count = min(most, *rooms)
        if count > 0:
            load.append((kind, count))
            left = [have - size * count for have, size in zip(left, kind.size, strict=True)]
    return load


def size_of(offer: Offer, elastic: Elastic) -> Size:
    """What a machine of this offer has for jobs."""
    memory = offer.mem_mib * elastic.buy.memory_share_percent // 100
    return offer.cpus, memory, dict(offer.gres).get("gpu", 0)


def purchases(market: Market, kinds: Sequence[Kind]) -> list[Bought]:
    """Machines for these wishes, no more than there are names; they cost about the least.

    Each next one is the machine that saves most against machines of their own. Where the names
    are too few for all of them, they go to kinds by importance.
    """
    made, served = _purchases(market, kinds)
    if not served and len(kinds) > 1:
        made, _ = _purchases(market, sorted(kinds, key=_importance))
    return made


def _importance(kind: Kind) -> tuple[int, int]:
    wish = kind.wishes[kind.first]
    return -wish.job.priority, wish.job.id


def _purchases(market: Market, kinds: Sequence[Kind]) -> tuple[list[Bought], bool]:
    left = {kind: kind.left for kind in kinds}
    made: list[Bought] = []
    for kind in kinds:
        while left[kind] and len(made) < market.names:
            rest = [(one, left[one]) for one in _beside(kind, kinds) if left[one]]
            best = _best(market, rest, market.names - len(made))
            if best is None:
                break
            alike = min(market.names - len(made), *(left[one] // n for one, n in best.load))
            made += [best] * alike
            for one, count in best.load:
                left[one] -= count * alike
    return made, not any(left.values())


def _beside(kind: Kind, kinds: Sequence[Kind]) -> list[Kind]:
    """Those that may ride along: they run no longer."""
    longest = kind.need.run_seconds
    return [kind, *(o for o in kinds if o is not kind and o.need.run_seconds <= longest)]


def _best(market: Market, rest: list[tuple[Kind, int]], names: int) -> Bought | None:
    """The machine for the first kind, and for others beside it, that saves most."""
    trials = list(_trials(market, rest))
    if not trials:
        return None
    best = min(trials, key=lambda one: (one.ratio, one.count))
    wanted = -(-sum(count for _, count in rest) // max(names, 1))
    if best.count >= wanted:
        return best
    near = [one for one in trials if one.ratio <= best.ratio * WORTH_MORE_NODES]
    enough = [one for one in near if one.count >= wanted]
    if enough:
        return min(enough, key=lambda one: (one.ratio, one.count))
    return max(near, key=lambda one: one.count)


def _trials(market: Market, rest: list[tuple[Kind, int]]) -> Iterator[Bought]:
    kind, most = rest[0]
    one = roughly(kind.need)
    for count in dict.fromkeys([n for n in LADDER if n < most] + [min(most, LADDER[-1])]):
        first = market.quote(times(one, count)).first
        if first is None:
            return
        load = tuple(fill(rest, size_of(first.offer, market.lot.elastic)))
        own = sum(market.alone(one) * n for one, n in load)
        yield Bought(load, _cost(first, sum(n for _, n in load)) / own)


def roughly(need: Need) -> Need:
    """With its seconds rounded up by a quarter at most, so that many jobs ask the same."""
    step = max(1, (1 << need.run_seconds.bit_length()) // 8)
    return replace(need, run_seconds=-(-need.run_seconds // step) * step)
