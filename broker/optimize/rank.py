"""Need and offers to a ranked tuple, with the reason for each rank.

The lists of a catalogue stand cheapest first within each shape, and shapes by their cheapest line.
So the ranking is a lazy merge: a shape is looked at only when nothing found so far is cheaper than
the least that it could cost.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, count, islice

from broker.model import constraint
from broker.model.errors import Refusal
from broker.model.offer import (
    ALL_RESERVATIONS,
    BLOCK,
    RESERVED,
    TARGETED,
    BuyPolicy,
    Market,
    Need,
    Offer,
    Ranked,
)
from broker.optimize.cooldown import Cooldown, Cooling, Place
from broker.optimize.query import BOOT_WEIGHTS, Query, boot_weight, queries
from broker.optimize.reasons import Candidate, Found, notes, old_figures, reason
from broker.optimize.shelf import shelve

FIRST = 50
MARKETS = tuple(Market)
CLOSED = frozenset((TARGETED, BLOCK))


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
        yield _ranked(candidate, asked, first=first, place=place, now=now)


def paid_for(
    need: Need, offers: Iterable[Offer], cool: Cooldown, *, target: BuyPolicy, now: int
) -> Iterator[Ranked]:
    """Of these reservations and capacity blocks those that have room for the job, as rungs.

    They cost the same whether they are used or not: they go before everything that is bought.
    Their capacity is there for sure; only refusals for other reasons speak against them.
    """
    seconds = need.run_seconds + target.boot_seconds
    usable = [
        offer
        for offer in offers
        if offer.free >= need.nodes
        and (offer.until is None or offer.until >= now + seconds)
        and _may_be_used(offer, need, target)
    ]
    if not usable:
        return
    cool = Cooldown(one for one in cool.entries(now) if one.refusal is not Refusal.CAPACITY)
    for rung in ranking(need, usable, cool, target=target, now=now):
        if rung.cooling_until is None:
            yield replace(rung, reason=f"paid for already: {rung.offer.reservation}")


def _may_be_used(offer: Offer, need: Need, target: BuyPolicy) -> bool:
    """Into open reservations every launch goes; others are named by the partition or the job."""
    if CLOSED.isdisjoint(offer.features) or ALL_RESERVATIONS in target.reservations:
        return True
    asked = constraint.names(constraint.of_need(need.constraint))
    keys = {RESERVED, offer.reservation, *CLOSED.intersection(offer.features)}
    return offer.reservation in target.reservations or not keys.isdisjoint(asked)


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
    """Single offers in the order of liking."""
    lines = _allowed_first(asked, cool, now)
    for found, over in lines if len(asked) == 1 else _once(lines):
        split = _split(asked[found.query], found, cool, now=now)
        yield from split if over is None else (replace(one, cooling=over) for one in split)


def _once(lines: Iterable[tuple[Found, Cooling | None]]) -> Iterator[tuple[Found, Cooling | None]]:
    """A zone only once, whatever alternatives it meets."""
    told: dict[tuple[int, int], set[str]] = {}
    for found, over in lines:
        before = told.setdefault((found.market, found.row), set())
        zones = found.zones or ("",)
        fresh = tuple(zone for zone in zones if zone not in before)
        before.update(fresh)
        if fresh:
            yield found._replace(zones=fresh if found.zones else ()), over


def _allowed_first(
    asked: tuple[Query, ...], cool: Cooldown, now: int
) -> Iterator[tuple[Found, Cooling | None]]:
    """What would surely be refused behind the rest, whatever it costs, with the reason."""
    catalog = asked[0].catalog
    allowances = cool.allowances(catalog.provider)
    if allowances is None:
        yield from ((found, None) for found in _in_order(asked))
        return
    later: list[tuple[Found, Cooling]] = []
    for found in _in_order(asked):
        region, shape = catalog.regions[found.region].name, catalog.shapes[found.shape]
        place = Place(catalog.provider, region, "", shape.name, shape.family, MARKETS[found.market])
        over = allowances.against(place, nodes=asked[found.query].need.nodes, now=now)
        if over is None:
            yield found, None
        else:
            later.append((found, over))
    yield from later


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
            _Walk(query, number, market, weights=weights)
            for number, query in asked
            for market in query.markets
        ]
        yield from heapq.merge(*walks)


class _Walk:
    """Price lines of one market that serve a query, by cost, of shapes with these boot weights.

    Lines of a shape stand by price. What else a line costs (work that spot is expected to lose,
    data to be moved) is only looked at when nothing found so far costs less than its price alone.
    """

    def __init__(
        self, query: Query, number: int, market: Market, *, weights: tuple[int, ...]
    ) -> None:
        self._query = query
        self._number = number
        self._market = market
        self._weights = weights
        self._lines = query.catalog.prices[market]
        self._within = query.within[market]
        self._paid: dict[tuple[int, int], int] = {}
        """Seconds by boot weight and band."""
        self._found: list[Found] = []
        self._waiting: list[tuple[int, int, int]] = []
        """The least that a shape's next line costs, the shape, the line."""

    def __iter__(self) -> Iterator[Found]:
        query, lines = self._query, self._lines
        if not any(self._within):
            return
        seconds = query.seconds(self._weights[0])
        for number in query.order(self._market):
            shape = query.catalog.shapes[number]
            limit = query.least(lines.price[lines.start[number]], seconds)
            if self._costs_less(limit):
                yield from self._below(limit)
            if query.fits(shape) and boot_weight(shape) in self._weights:
                self._put(number, lines.start[number])
        yield from self._below(None)

    def _costs_less(self, limit: int) -> bool:
        """Whether anything may: there are many shapes, and a generator for each is dear."""
        found, waiting = self._found, self._waiting
        return bool((waiting and waiting[0][0] < limit) or (found and found[0].liked < limit))

    def _below(self, limit: int | None) -> Iterator[Found]:
        """Everything that costs less, the cheapest first."""
        while self._waiting or self._found:
            least = self._waiting[0][0] if self._waiting else None
            if self._found and (least is None or self._found[0].liked < least):
                if limit is not None and self._found[0].liked >= limit:
                    return
                yield heapq.heappop(self._found)
            elif least is not None and (limit is None or least < limit):
                self._look()
            else:
                return

    def _look(self) -> None:
        """At the line that could be the cheapest: it is found if it serves."""
        _, number, row = heapq.heappop(self._waiting)
        shape = self._query.catalog.shapes[number]
        if (zones := self._query.zones(shape, self._market, row)) is not None:
            heapq.heappush(self._found, self._line(number, row, zones))
        self._put(number, row + 1)

    def _put(self, number: int, row: int) -> None:
        """The shape's next line: where a place is asked for, nearly all are elsewhere."""
        query, price, end = self._query, self._lines.price, self._lines.start[number + 1]
        while row < end and not self._within[self._lines.region[row]]:
            row += 1
        if row < end and query.affords(price[row]):
            least = query.least(price[row], self._seconds(number, 0))
            least = query.liked(query.catalog.shapes[number], least)
            heapq.heappush(self._waiting, (least, number, row))

    def _seconds(self, number: int, band: int) -> int:
        weight = boot_weight(self._query.catalog.shapes[number])
        known = self._paid.get((weight, band))
        if known is None:
            known = self._paid[weight, band] = self._query.seconds(weight, band)
        return known

    def _line(self, number: int, row: int, zones: tuple[str, ...]) -> Found:
        query, lines = self._query, self._lines
        price, band, region = lines.price[row], lines.band[row], lines.region[row]
        cost = query.cost(price, self._seconds(number, band), region) + query.moved[region]
        return Found(
            liked=query.liked(query.catalog.shapes[number], cost),
            cost=cost,
            price=price,
            estimate=query.catalog.sources[lines.source[row]].estimate,
            band=band,
            region=region,
            shape=number,
            market=MARKETS.index(self._market),
            row=row,
            query=self._number,
            zones=zones,
        )


def _split(query: Query, found: Found, cool: Cooldown, *, now: int) -> Iterator[Candidate]:
    """The line as single offers; of an on-demand one the zones that are open, if any is."""
    market, quiet = MARKETS[found.market], cool.quiet()
    for zones in query.catalog.lots(market, found.zones):
        if quiet:
            yield Candidate(found, _offer(query, found, zones))
            continue
        refusals = _refusals(query, found, cool, zones=zones or ("",), now=now)
        open_zones = tuple(zone for zone in zones if refusals[zone] is None)
        standing = None if None in refusals.values() else _soonest(refusals.values())
        yield Candidate(found, _offer(query, found, open_zones or zones), standing)


def _offer(query: Query, found: Found, zones: tuple[str, ...]) -> Offer:
    market, own = MARKETS[found.market], query.policy.features
    sold = query.catalog.offer(market, found.row, shape=found.shape, zones=zones)
    return replace(sold, features=(*sold.features, *own)) if own else sold


def _refusals(
    query: Query, found: Found, cool: Cooldown, *, zones: tuple[str, ...], now: int
) -> dict[str, Cooling | None]:
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
    candidate: Candidate, asked: tuple[Query, ...], *, first: Candidate, place: int, now: int
) -> Ranked:
    query = asked[candidate.found.query]
    cooling = candidate.cooling
    return Ranked(
        offer=candidate.offer,
        expected_micro_usd=candidate.found.cost,
        reason=reason(candidate, asked, first=first, place=place),
        notes=tuple(notes(candidate, query, now)),
        cooling_until=cooling.until if cooling else None,
        old_price=old_figures(query, candidate, now),
        beside_micro_usd=query.beside[candidate.found.region],
    )
