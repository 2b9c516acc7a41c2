"""What could be bought now: the catalogue and the cool-down behind one question, answers kept."""

from collections.abc import Iterable, Mapping

from broker.decide.rules import QuoteFor
from broker.model.commands import Launched, Message, NotLaunched
from broker.model.offer import BuyPolicy, Need, Offer
from broker.model.site import Elastic, Partition
from broker.optimize.cooldown import Cooldown
from broker.optimize.explain import Explanation, explain
from broker.optimize.rank import ranking
from broker.schedule.view import Quote

KEPT_SECONDS = 30
"""How long an answer stands at most: cool-downs end with time."""


class Quotes:
    """Ranked offers of every provider; forgets its answers when a refusal changes them."""

    def __init__(self, offers: Mapping[str, Iterable[Offer]], cool: Cooldown) -> None:
        self._offers = offers
        self._cool = cool
        self._kept: dict[tuple[Need, BuyPolicy], Quote] = {}
        self._since = 0

    def at(self, now: int) -> QuoteFor:
        """The question as of now."""
        if now - self._since >= KEPT_SECONDS and not self._cool.quiet():
            self._cool.forget(now)
            self._kept.clear()
            self._since = now

        def quote(need: Need, partition: Partition, elastic: Elastic) -> Quote:
            key = need, elastic.buy
            if key not in self._kept:
                self._kept[key] = self._ask(need, elastic.buy, now)
            return self._kept[key]

        return quote

    def _ask(self, need: Need, policy: BuyPolicy, now: int) -> Quote:
        offers = self._offers.get(policy.provider, ())
        found = ranking(need, offers, self._cool, target=policy, now=now)
        return Quote(found, lambda: told(explain(need, offers, policy)))

    def heard(self, message: Message, now: int) -> None:
        """Remembers refusals, and opens again what gave a machine."""
        if not isinstance(message, Launched | NotLaunched):
            return
        for tried in message.tried:
            self._cool.refused(tried.offer, tried, now=now, nodes=message.nodes)
        if isinstance(message, Launched) and message.offer is not None:
            for machine in message.machines:
                self._cool.succeeded(message.offer, now=now, zone=machine.zone)
        if message.tried or not self._cool.quiet():
            self._kept.clear()


def told(why: Explanation | None) -> str:
    """The explanation in one line."""
    if why is None:
        return ""
    near = ", ".join(dict.fromkeys(one.offer.instance_type for one in why.nearest))
    parts = [f"no instance type offers {why.asked}"]
    if why.suggestions:
        parts.append("try one of: " + ", ".join(why.suggestions[:8]))
    if near:
        parts.append(f"nearest: {near}")
    if why.unpriced:
        parts.append("offered, but at a price nobody told: " + ", ".join(why.unpriced[:3]))
    return "; ".join(parts)
