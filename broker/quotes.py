"""What could be bought now: the catalogue and the cool-down behind one question, answers kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from accounting.age import in_utc
from broker.decide.rules import QuoteFor
from broker.model.errors import Refusal, Width, quota_reason
from broker.model.inbox import Message
from broker.model.offer import BuyPolicy, Machine, Market, Need, Offer, pool_of
from broker.model.reports import Launched, NotLaunched, Terminated, Vanished
from broker.model.site import Elastic
from broker.model.stopping import MachineNotStarted
from broker.optimize.cooldown import Allowances, Cooldown, Cooling, Why, places
from broker.optimize.elsewhere import by_region
from broker.optimize.explain import Explanation, explain
from broker.optimize.rank import paid_for, ranking
from broker.optimize.shelf import shelve
from broker.schedule.view import Quote

KEPT_SECONDS = 30
"""How long an answer stands at most: cool-downs end with time."""
PROBE_SECONDS = 10
"""Where all that would do was refused lately, the best is tried again no sooner."""
GIVES_ROOM = frozenset({Refusal.CAPACITY, Refusal.QUOTA})
"""Refusals that may be over when a machine is given back."""


@dataclass(frozen=True, slots=True)
class _TakenBack:
    """Why a pool is better left alone for a while."""

    refusal: Refusal = Refusal.CAPACITY
    width: Width = Width.TYPE_IN_ZONE
    message: str = "a machine was taken back, or could not be started"


class Quotes:
    """Ranked offers of every provider; forgets its answers when a refusal changes them."""

    def __init__(self, offers: Mapping[str, Iterable[Offer]], cool: Cooldown) -> None:
        self._offers = offers
        self._cool = cool
        self._reserved: dict[str, Callable[[], Sequence[Offer]]] = {}
        self._kept: dict[tuple[Need, BuyPolicy], Quote] = {}
        self._since = 0

    def replace(self, provider: str, offers: Iterable[Offer]) -> None:
        """From now on these are what the provider sells: its catalogue was refreshed."""
        self._offers = {**self._offers, provider: offers}
        self._kept.clear()

    def reserve(self, provider: str, offers: Callable[[], Sequence[Offer]]) -> None:
        """What the provider has reserved, as it stands when asked; from memory, asked often."""
        self._reserved[provider] = offers

    def at(self, now: int) -> QuoteFor:
        """The question as of now."""
        if now - self._since >= KEPT_SECONDS:
            self._cool.forget(now)
            self._kept.clear()
            self._since = now

        def quote(need: Need, elastic: Elastic) -> Quote:
            key = need, elastic.buy
            if key not in self._kept:
                self._kept[key] = self._ask(need, elastic.buy, now)
            return self._kept[key]

        return quote

    def _ask(self, need: Need, policy: BuyPolicy, now: int) -> Quote:
        offers = self._offers.get(policy.provider, ())
        reserved = self._reserved.get(policy.provider, tuple)()
        found = chain(
            paid_for(need, reserved, self._cool, target=policy, now=now),
            ranking(need, offers, self._cool, target=policy, now=now),
        )
        moved = need.first_region or need.last_regions
        rungs = by_region(need, found) if moved else found
        return Quote(rungs, lambda: told(explain(need, offers, policy)))

    def buying(self, now: int) -> QuoteFor:
        """The same to buy from: nothing while all that would do was refused a moment ago."""
        asked = self.at(now)

        def quote(need: Need, elastic: Elastic) -> Quote:
            found = asked(need, elastic)
            best = found.first
            if best is None or best.cooling_until is None or best.cooling_until <= now:
                return found
            over = self._over(best.offer, need, now)
            against = over or self._latest_against(best.offer, need, now)
            if against is None or (over is None and now - against.since >= PROBE_SECONDS):
                return Quote((best,))
            reason = quota_reason([against]) or "Resources"
            return Quote((), lambda: refused_lately(against), reason=reason)

        return quote

    def _over(self, offer: Offer, need: Need, now: int) -> Cooling | None:
        """The quota that is known to be in its way."""
        allowances = self._cool.allowances(offer.provider)
        if allowances is None:
            return None
        return allowances.against(places(offer)[0], nodes=need.nodes, now=now)

    def _latest_against(self, offer: Offer, need: Need, now: int) -> Cooling | None:
        """The latest refusal of it."""
        found = [self._cool.against(p, now=now, nodes=need.nodes) for p in places(offer)]
        return max(filter(None, found), key=lambda entry: entry.since, default=None)

    def allow(self, provider: str, what: Allowances) -> None:
        """More than this is not tried with the provider."""
        self._cool.allow(provider, what)

    def cooling(self, now: int) -> tuple[Cooling, ...]:
        """What is left alone for a while, for operators."""
        return self._cool.entries(now)

    def heard(self, message: Message, now: int) -> None:
        """Remembers refusals, and opens again what gave a machine, or got one back."""
        if isinstance(message, Terminated | Vanished):
            self._ended(message, now)
        if isinstance(message, MachineNotStarted):
            self._rest(message.machine, message, now)
        if not isinstance(message, Launched | NotLaunched):
            return
        for tried in message.tried:
            self._cool.refused(tried.offer, tried, now=now, nodes=message.nodes)
        if isinstance(message, Launched) and message.offer is not None:
            for machine in message.machines:
                self._cool.succeeded(message.offer, now=now, zone=machine.zone)
        into = isinstance(message, Launched) and message.offer and message.offer.reservation
        if message.tried or into or not self._cool.quiet():
            self._kept.clear()

    def _ended(self, message: Terminated | Vanished, now: int) -> None:
        machine = message.machine
        if machine is None:
            return
        spot, never_ran = machine.market is Market.SPOT, machine.running_at is None
        if machine.unstarted is not None:
            self._rest(machine, machine.unstarted, now)
        elif machine.ended_by_provider and (spot or never_ran):
            self.taken_back(machine, now)
        elif not self._cool.quiet():
            for provider in self._offers:
                self._cool.room_again(pool_of(machine, provider), GIVES_ROOM, now=now)
            self._kept.clear()

    def taken_back(self, machine: Machine, now: int) -> None:
        """Its pool is left alone for a while: a replacement there would fare as it did."""
        self._rest(machine, _TakenBack(), now)

    def _rest(self, machine: Machine, why: Why, now: int) -> None:
        """With whoever sells such machines."""
        for provider, offers in self._offers.items():
            if shelve(offers).shape(machine.instance_type):
                self._cool.refused(pool_of(machine, provider), why, now=now)
        self._kept.clear()


def refused_lately(entry: Cooling) -> str:
    """Why nothing is bought now, and when it is tried again."""
    at = in_utc(entry.until)
    if not entry.was_tried:
        return f"{entry.message}; looked at again by {at}"
    return f"all that would do was refused lately: {entry.message}; next try by {at}"


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
