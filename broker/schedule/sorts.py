"""Machines of several sorts for one job (`-C [a*2&b*1]`): what of each, and all in one place."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from broker.model.constraint import Counted, written
from broker.model.offer import Need, Offer
from broker.schedule.view import Quote

MOST_PLACES = 8
"""So many regions, and zones of the best of them, are looked at."""
Ask = Callable[[Need], Quote]


@dataclass(frozen=True, slots=True)
class Part:
    """Machines that are alike: what each has to give, and what is sold."""

    need: Need
    quote: Quote

    @property
    def nodes(self) -> int:
        return self.need.nodes

    @property
    def micro_usd(self) -> float:
        """Expected for all of them; infinite where nothing is sold."""
        first = self.quote.first
        return first.expected_micro_usd if first else float("inf")


Parts = tuple[Part, ...]


def of_sorts(need: Need, sorts: Sequence[Counted], ask: Ask) -> Parts:
    """As many of each sort as are counted, the rest of any: in one zone, else in one region.

    Where no region sells them all, they are where they are sold. What is least likely to be had
    comes first: what was refused lately, then what few sell.
    """
    parts = _asked(_needs(need, sorts), ask)
    if any(part.quote.first is None for part in parts):
        return parts
    parts = _best(parts, ask, _regions) or parts
    parts = _best(parts, ask, _zones) or parts
    return tuple(sorted(parts, key=lambda part: (not _was_refused(part), len(part.quote.rungs))))


def _needs(need: Need, sorts: Sequence[Counted]) -> list[Need]:
    rest = need.nodes - sum(sort.count for sort in sorts)
    needs = [replace(need, nodes=sort.count, constraint=written(sort)) for sort in sorts]
    return [*needs, *([replace(need, nodes=rest, constraint=None)] if rest > 0 else [])]


def _asked(needs: Iterable[Need], ask: Ask) -> Parts:
    return tuple(Part(need, ask(need)) for need in needs)


def _best(parts: Parts, ask: Ask, words: Callable[[Offer], Iterable[str]]) -> Parts | None:
    """The parts as the best place sells them all; None where no one does."""
    offers = (rung.offer for part in parts for rung in part.quote.rungs)
    places = dict.fromkeys(word for offer in offers for word in words(offer))
    tried = (
        _asked((_there(part.need, place) for part in parts), ask)
        for place in islice(places, MOST_PLACES)
    )
    sold = [there for there in tried if all(part.quote.first for part in there)]
    return min(sold, key=_dislike, default=None)


def _regions(offer: Offer) -> Iterable[str]:
    return (offer.region,)


def _zones(offer: Offer) -> Iterable[str]:
    return offer.zones


def _there(need: Need, place: str) -> Need:
    return replace(need, constraint=f"({need.constraint})&{place}" if need.constraint else place)


def _dislike(parts: Parts) -> tuple[bool, float]:
    return any(map(_was_refused, parts)), sum(part.micro_usd for part in parts)


def _was_refused(part: Part) -> bool:
    first = part.quote.first
    return first is not None and first.cooling_until is not None
