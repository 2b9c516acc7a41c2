"""Scripted refusals of the local and the fake cloud: which launches are refused, how often."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Launches that are refused; None means any."""

    instance_type: str | None = None
    region: str | None = None
    zone: str | None = None
    market: str | None = None
    refusal: Refusal = Refusal.CAPACITY
    width: Width = Width.TYPE_IN_ZONE
    times: int | None = None
    """None: always."""

    def fits(self, offer: Offer, zone: str) -> bool:
        asked = (
            (self.instance_type, offer.instance_type),
            (self.region, offer.region),
            (self.zone, zone),
            (self.market, offer.market),
        )
        return all(wanted in {None, given} for wanted, given in asked)

    def error(self, offer: Offer, zone: str) -> ProviderError:
        where = zone or offer.region
        message = f"{offer.instance_type} ({offer.market}) in {where}: {self.refusal} (scripted)"
        return ProviderError(self.refusal, self.width, message)


class Script:
    """Rules and how often each still applies."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = list(rules)
        self._left = [rule.times for rule in self._rules]

    def add(self, rule: Rule) -> None:
        self._rules.append(rule)
        self._left.append(rule.times)

    def zone(self, offer: Offer) -> str:
        """The first of the offer's zones that is not refused. Raises ProviderError if all are."""
        met: list[int] = []
        errors = []
        for zone in offer.zones or ("",):
            found = self._find(offer, zone)
            if found is None:
                self._count(met)
                return zone
            met.append(found)
            errors.append(self._rules[found].error(offer, zone))
        self._count(met)
        raise errors[0]

    def _find(self, offer: Offer, zone: str) -> int | None:
        for number, rule in enumerate(self._rules):
            if self._left[number] != 0 and rule.fits(offer, zone):
                return number
        return None

    def _count(self, met: Iterable[int]) -> None:
        """One launch counts once for a rule, however many zones it was met in."""
        for number in set(met):
            left = self._left[number]
            self._left[number] = left if left is None else left - 1
