"""Machines chosen one after the other, looked at in pairs: what was left over fits better."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from broker.schedule.lots import Bought, Kind, Load, Market

MOST_TRIALS = 24
"""Machines whose price is asked for one lot: what is left over is little."""
ROUNDING = 1e-9
MOST_TOGETHER = 8
"""Machines that are also looked at all together."""
Group = tuple[Load, ...]


def mended(market: Market, made: Sequence[Bought]) -> list[Load]:
    """The same wishes on machines that cost no more in all, and are no more.

    Two of them become one, or one of them gives a wish to the other, where that is cheaper; few
    become one.
    """
    prices, found = _Prices(market), Counter(one.load for one in made)
    while _better(found, prices):
        pass
    return list(found.elements())


@dataclass(slots=True)
class _Prices:
    """Of machines by their loads; a trial is a price that nobody asked for before."""

    market: Market
    known: dict[Load, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return MOST_TRIALS - len(self.known)

    def of(self, loads: Sequence[Load]) -> float:
        for load in loads:
            if load not in self.known:
                self.known[load] = self.market.cost(load)
        return sum(self.known[load] for load in loads)


def _better(found: Counter[Load], prices: _Prices) -> bool:
    """Changes the first that are cheaper otherwise, the least of them first."""
    for group, other in _trials(found):
        if prices.left <= 0:
            return False
        if prices.of(other) < prices.of(group) * (1 - ROUNDING):
            _change(found, group, other)
            return True
    return False


def _trials(found: Counter[Load]) -> Iterator[tuple[Group, Group]]:
    if 2 < found.total() <= MOST_TOGETHER:
        every = tuple(found.elements())
        yield every, (_load(sum((Counter(dict(load)) for load in every), Counter())),)
    for pair in combinations_with_replacement(sorted(found, key=_size), 2):
        if pair[0] != pair[1] or found[pair[0]] > 1:
            yield from ((pair, other) for other in _changes(*pair))


def _change(found: Counter[Load], group: Group, other: Group) -> None:
    """As often as there is such a group."""
    taken = Counter(group)
    alike = min(found[load] // count for load, count in taken.items())
    for loads, sign in ((taken, -1), (Counter(other), 1)):
        for load, count in loads.items():
            found[load] += sign * alike * count
    for load in taken:
        if not found[load]:
            del found[load]


def _size(load: Load) -> int:
    return sum(count for _, count in load)


def _changes(one: Load, other: Load) -> Iterator[Group]:
    """Both on one machine; or one wish of one of them on the other."""
    mine, theirs = Counter(dict(one)), Counter(dict(other))
    yield (_load(mine + theirs),)
    for giver, taker in ((mine, theirs), (theirs, mine)):
        if giver.total() > 1:
            for kind in giver:
                unit = Counter({kind: 1})
                yield _load(giver - unit), _load(taker + unit)


def _load(counts: Counter[Kind]) -> Load:
    return tuple(sorted(counts.items(), key=lambda two: -two[0].need.run_seconds))
