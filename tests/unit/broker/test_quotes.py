"""Answers about what could be bought: reservations first, fresh catalogues taken up."""

from collections.abc import Sequence
from dataclasses import replace

from broker.model.offer import BuyPolicy, Need, Offer
from broker.model.site import Elastic, Partition
from broker.optimize.bundled import bundled
from broker.optimize.cooldown import Cooldown
from broker.quotes import KEPT_SECONDS, Quotes

CATALOG = bundled("ec2")
ELASTIC = Elastic("ec2-", 8, buy=BuyPolicy(provider="ec2"))
PARTITION = Partition("ec2", elastic=ELASTIC)
NEED = Need(cpus=4)
BLOCK = replace(
    next(o for o in CATALOG if o.instance_type == "m7i.4xlarge"),
    reservation="cr-1",
    free=1,
    micro_usd_per_hour=0,
)


def first(quotes: Quotes, now: int) -> Offer | None:
    found = quotes.at(now)(NEED, PARTITION, ELASTIC).first
    return found.offer if found else None


def test_what_is_reserved_goes_first_while_it_has_room() -> None:
    held: list[Offer] = [BLOCK]

    def reserved(provider: str) -> Sequence[Offer]:
        return tuple(held) if provider == "ec2" else ()

    quotes = Quotes({"ec2": CATALOG}, Cooldown(), reserved=reserved)
    assert first(quotes, 0) == BLOCK
    held.clear()
    found = first(quotes, 2 * KEPT_SECONDS)
    assert found is not None and found.reservation == ""


def test_a_refreshed_catalogue_is_used_at_once() -> None:
    quotes = Quotes({"ec2": CATALOG}, Cooldown())
    before = first(quotes, 0)
    quotes.replace("ec2", [replace(BLOCK, reservation="", micro_usd_per_hour=1)])
    after = first(quotes, 1)
    assert before != after
    assert after is not None and after.micro_usd_per_hour == 1


def test_rungs_are_ranked_only_as_far_as_they_are_looked_at() -> None:
    quotes = Quotes({"ec2": CATALOG}, Cooldown())
    quote = quotes.at(0)(NEED, PARTITION, ELASTIC)
    best = quote.first
    assert best is not None
    assert quote.rungs[0] == best
    assert len(quote.rungs) == 50
    assert quote.explain == ""
