"""Which parts a purchase of several sorts has, where they are, and which is asked for first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from broker.model.constraint import holds, kinds, parse
from broker.model.offer import Market, Need, Offer, Ranked
from broker.schedule.sorts import of_sorts
from broker.schedule.view import Quote

SOLD = {
    ("a", "r1", "r1-z1"): 10,
    ("a", "r1", "r1-z2"): 10,
    ("a", "r2", "r2-z1"): 5,
    ("b", "r1", "r1-z2"): 20,
    ("b", "r2", "r2-z2"): 40,
    ("c", "r3", "r3-z1"): 1,
    ("d", "r1", "r1-z2"): 99,
}
"""What a machine costs, by feature, region and zone."""


@dataclass
class Shop:
    sold: Mapping[tuple[str, str, str], int]
    refused: tuple[str, ...] = ()
    """Features or zones of what was refused lately."""

    def __call__(self, need: Need) -> Quote:
        found = [
            self._rung((word, region, zone), price * need.nodes)
            for (word, region, zone), price in self.sold.items()
            if need.constraint is None
            or holds(parse(need.constraint), frozenset({word, region, zone}))
        ]
        found.sort(key=lambda one: (one.cooling_until is not None, one.expected_micro_usd))
        return Quote(found, lambda: f"none of {need.constraint}")

    def _rung(self, words: tuple[str, str, str], cost: int) -> Ranked:
        word, region, zone = words
        offer = Offer("p", region, (zone,), word, Market.ON_DEMAND, 1, 2, 2)
        cooling = 99 if set(words) & set(self.refused) else None
        return Ranked(offer, cost, "", cooling_until=cooling)


def bought(text: str, nodes: int, shop: Shop) -> list[tuple[int, str, str]]:
    parts = of_sorts(Need(nodes=nodes, constraint=text), kinds(parse(text)), shop)
    firsts = [(part.nodes, part.quote.first) for part in parts]
    return [(n, one.offer.instance_type, one.offer.zones[0]) for n, one in firsts if one]


@pytest.mark.parametrize(
    ("text", "nodes", "refused", "parts"),
    [
        ("[a*2&b*1]", 3, (), [(2, "a", "r1-z2"), (1, "b", "r1-z2")]),
        ("[a*9&b*1]", 10, (), [(9, "a", "r2-z1"), (1, "b", "r2-z2")]),
        ("[a*2&b*1]", 3, ("r1-z2",), [(2, "a", "r2-z1"), (1, "b", "r2-z2")]),
        ("[a*2&b*1]", 3, ("b",), [(1, "b", "r1-z2"), (2, "a", "r1-z2")]),
        ("[a*1&c*1]", 2, (), [(1, "c", "r3-z1"), (1, "a", "r2-z1")]),
        ("[a*1&b*1]", 4, (), [(1, "a", "r1-z2"), (1, "b", "r1-z2"), (2, "a", "r1-z2")]),
        ("b*1", 2, (), [(1, "b", "r1-z2"), (1, "a", "r1-z2")]),
        ("[(b|c)*1&d*1]", 2, (), [(1, "b", "r1-z2"), (1, "d", "r1-z2")]),
        ("[b*1&d*1]", 2, ("d",), [(1, "d", "r1-z2"), (1, "b", "r1-z2")]),
    ],
)
def test_sorts_are_bought_in_the_cheapest_place_that_sells_them_all(
    text: str, nodes: int, refused: tuple[str, ...], parts: list[tuple[int, str, str]]
) -> None:
    """One zone before one region; what was refused, or what few sell, is asked for first."""
    assert bought(text, nodes, Shop(SOLD, refused)) == parts


def test_a_sort_that_nobody_sells_is_told_by_its_own_words() -> None:
    parts = of_sorts(Need(nodes=2), kinds(parse("[a*1&x*1]")), Shop(SOLD))
    assert [part.quote.explain for part in parts] == ["", "none of x"]
    assert replace(parts[1].need, constraint=None) == Need()
