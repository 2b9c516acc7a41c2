"""Need and offers to a ranked tuple, with the reason for each rank.

The lists of a catalogue stand cheapest first within each shape, and shapes by their cheapest line.
So the ranking is a lazy merge: a shape is looked at only when nothing found so far is cheaper than
the least that it could cost.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice

from broker.model.offer import BuyPolicy, Market, Need, Offer, Ranked
from broker.optimize.cooldown import Cooldown, Cooling, Place
from broker.optimize.query import BOOT_WEIGHTS, Query, boot_weight, queries
from broker.optimize.reasons import Candidate, Found, notes, reason
from broker.optimize.shelf import shelve

FIRST = 50
MARKETS = tuple(Market)


def rank(
    need: Need, offers: Iterable[Offer], cool: Cooldown, *, target: BuyPolicy, now: int
) -> tuple[Ranked, ...]:
    """The first 50 offers by `target.prefer`, those refused lately behind all others.

    Raises BadOption for a constraint that cannot be read. Nothing fits: an empty tuple, and
    `explain` says why.
    """
    return tuple(islice(ranking(need, offers, cool, target=target, now=now), FIRST))


def ranking(
    need: Need, offers: Iterable[Offer], cool: Cooldown, *, target: BuyPolicy, now: int
) -> Iterator[Ranked]:
    """All that fit, in the order of `rank`, found as they are taken."""
    asked = queries(need, shelve(offers), target)
    first: Candidate | None = None
    for place, candidate in zip(count(), _cooled_last(asked, cool, now), strict=False):
        first = first or candidate
        yield _ranked(candidate, asked, first=first, place=place)


def _cooled_last(asked: tuple[Query, ...], cool: Cooldown, now: int) -> Iterator[Candidate]:
    """Those that were refused lately behind the others; all alike where the provider refuses."""
    if cool.against(Place(asked[0].catalog.provider), now=now, nodes=asked[0].need.nodes):
        yield from _candidates(asked, cool, now)
        return
    later: list[Candidate] = []
    for candidate in _candidates(asked, cool, now):
        if candidate.cooling is None:
            yield candidate
        else:
            later.append(candidate)
    yield from later


def _candidates(asked: tuple[Query, ...], cool: Cooldown, now: int) -> Iterator[Candidate]:
    """Single offers in the order of liking; a zone only once, whatever alternatives it meets."""
    told: dict[tuple[int, int], set[str]] = {}
    for found in _in_order(asked):
        before = told.setdefault((found.market, found.row), set())
        zones = found.zones or ("",)
        fresh = tuple(zone for zone in zones if zone not in before)
        before.update(fresh)
        if fresh:
            narrowed = found._replace(zones=fresh if found.zones else ())
            yield from _split(asked[found.query], narrowed, cool, now=now)


def _in_order(asked: tuple[Query, ...]) -> Iterator[Found]:
    if not asked[0].need.ordered:
        return _by_target(list(enumerate(asked)))
    return chain.from_iterable(_by_target([one]) for one in enumerate(asked))


def _by_target(asked: list[tuple[int, Query]]) -> Iterator[Found]:
    """By cost; where time is preferred, by time to boot and then by cost."""
    policy = asked[0][1].policy
    by_time = policy.prefer == "time" and policy.boot_seconds > 0
    for weights in [(weight,) for weight in BOOT_WEIGHTS] if by_time else [BOOT_WEIGHTS]:
        walks = [
            _Walk(query, number, market, weights)
            for number, query in asked
            for market in query.markets
        ]
        yield from heapq.merge(*walks)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Price lines of one market that serve a query, by cost, of shapes with these boot weights."""

    query: Query
    number: int
    market: Market
    weights: tuple[int, ...]

    def __iter__(self) -> Iterator[Found]:
        query, lines = self.query, self.query.catalog.prices[self.market]
        heap: list[Found] = []
        seconds = query.seconds(self.weights[0])
        for number in query.order(self.market):
            shape = query.catalog.shapes[number]
            least = query.cost(lines.price[lines.start[number]], seconds)
            while heap and heap[0].cost < least:
                yield self._take(heap)
            if boot_weight(shape) in self.weights and query.fits(shape):
                self._put(heap, number, lines.start[number])
        while heap:
            yield self._take(heap)

    def _take(self, heap: list[Found]) -> Found:
        cheapest = heapq.heappop(heap)
        self._put(heap, cheapest.shape, cheapest.row + 1)
        return cheapest

    def _put(self, heap: list[Found], number: int, row: int) -> None:
        """Adds the shape's next line that serves, from `row` on."""
        query, lines = self.query, self.query.catalog.prices[self.market]
        shape, end = query.catalog.shapes[number], lines.start[number + 1]
        while row < end and query.affords(lines.price[row]):
            if (zones := query.zones(shape, self.market, row)) is not None:
                heapq.heappush(heap, self._found(number, row, zones))
                return
            row += 1

    def _found(self, number: int, row: int, zones: tuple[str, ...]) -> Found:
        query, lines = self.query, self.query.catalog.prices[self.market]
        price = lines.price[row]
        seconds = query.seconds(boot_weight(query.catalog.shapes[number]))
        return Found(
            cost=query.cost(price, seconds),
            price=price,
            estimate=query.catalog.sources[lines.source[row]].estimate,
            band=lines.band[row],
            region=lines.region[row],
            shape=number,
            market=MARKETS.index(self.market),
            row=row,
            query=self.number,
            zones=zones,
        )


def _split(query: Query, found: Found, cool: Cooldown, *, now: int) -> Iterator[Candidate]:
    """The line as single offers; of an on-demand one the zones that are open, if any is."""
    market = MARKETS[found.market]
    for zones in query.catalog.lots(market, found.zones):
        refusals = _refusals(query, found, cool, zones=zones or ("",), now=now)
        open_zones = tuple(zone for zone in zones if refusals[zone] is None)
        offer = query.catalog.offer(market, found.row, shape=found.shape, zones=open_zones or zones)
        standing = None if None in refusals.values() else _soonest(refusals.values())
        yield Candidate(found, offer, standing)


def _refusals(
    query: Query, found: Found, cool: Cooldown, *, zones: tuple[str, ...], now: int
) -> dict[str, Cooling | None]:
    if cool.quiet():
        return dict.fromkeys(zones)
    catalog = query.catalog
    shape, region = catalog.shapes[found.shape], catalog.regions[found.region].name
    market, nodes = MARKETS[found.market], query.need.nodes
    return {
        zone: cool.against(
            Place(catalog.provider, region, zone, shape.name, shape.family, market),
            now=now,
            nodes=nodes,
        )
        for zone in zones
    }


def _soonest(refusals: Iterable[Cooling | None]) -> Cooling | None:
    return min(filter(None, refusals), key=lambda entry: (entry.until, entry.key), default=None)


def _ranked(
    candidate: Candidate, asked: tuple[Query, ...], *, first: Candidate, place: int
) -> Ranked:
    query = asked[candidate.found.query]
    cooling = candidate.cooling
    return Ranked(
        offer=candidate.offer,
        expected_micro_usd=candidate.found.cost,
        reason=reason(candidate, asked, first=first, place=place),
        notes=tuple(notes(candidate, query)),
        cooling_until=cooling.until if cooling else None,
    )
