"""Which offers were refused lately, how wide, and until when they are better left alone.

A refusal is evidence with an age: it starts with a short pause, doubles with each further one and
is forgotten by and by. A refusal of 64 machines says nothing about one; of one it speaks for 64.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from broker.model.errors import Refusal, Width
from broker.model.offer import Market, Offer


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds after the first refusal in a row, and at most."""

    first: int
    longest: int


PAUSES: Mapping[Refusal, Pause] = {
    Refusal.CAPACITY: Pause(60, 1800),
    Refusal.QUOTA: Pause(300, 3600),
    Refusal.AUTH: Pause(3600, 86400),
    Refusal.THROTTLED: Pause(2, 60),
    Refusal.INVALID: Pause(86400, 86400),
    Refusal.TRANSIENT: Pause(15, 300),
}
FORGET_SECONDS = 1800
"""Quiet time after a pause that takes one refusal off the count."""

OVER_QUOTA = "quota"
"""First word of the key of what is left alone because a quota is known to be in the way."""
Key = tuple[str, ...]


class Why(Protocol):
    """What a refusal tells: `ProviderError` and the report `Tried` both do."""

    @property
    def refusal(self) -> Refusal: ...
    @property
    def width(self) -> Width: ...
    @property
    def message(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Place:
    """What a refusal can rule out of an offer, in one zone; "" where the zone is not known."""

    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    family: str = ""
    market: Market = Market.ON_DEMAND

    def key(self, width: Width) -> Key:
        """What a refusal of this width is filed under: the width and what it rules out."""
        return (width.value, self.provider, *(getattr(self, name) for name in RULED_OUT[width]))


RULED_OUT: Mapping[Width, tuple[str, ...]] = {
    Width.TYPE_IN_ZONE: ("region", "zone", "instance_type", "market"),
    Width.TYPE_IN_REGION: ("region", "instance_type", "market"),
    Width.FAMILY_IN_REGION: ("region", "family", "market"),
    Width.MARKET_IN_REGION: ("region", "market"),
    Width.ZONE: ("region", "zone"),
    Width.REGION: ("region",),
    Width.PROVIDER: (),
}
"""By width the fields of a place that a refusal is about, beside its provider."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """One thing that was refused; instants are seconds UTC."""

    key: Key
    refusal: Refusal
    strikes: int
    """Refusals in a row, less what was forgotten."""
    nodes: int
    """The fewest machines that were refused: fewer may be had."""
    since: int
    until: int
    message: str = ""

    @property
    def was_tried(self) -> bool:
        """Whether anybody was refused; else a quota is known to be in the way."""
        return self.key[0] != OVER_QUOTA

    def forgotten(self, now: int) -> int:
        """Refusals still counted at `now`: one less for each FORGET_SECONDS of quiet."""
        return max(0, self.strikes - max(0, now - self.until) // FORGET_SECONDS)


def struck(before: Cooling | None, fresh: Cooling, now: int) -> Cooling:
    """`fresh` with the pause it earns after what was known before."""
    strikes = (before.forgotten(now) if before else 0) + 1
    pause = PAUSES[fresh.refusal]
    until = now + min(pause.first << min(strikes - 1, 20), pause.longest)
    if before is None or before.until <= now:
        return replace(fresh, strikes=strikes, until=until)
    fewest = min(before.nodes, fresh.nodes)
    return replace(fresh, strikes=strikes, until=max(until, before.until), nodes=fewest)


def _keys(zones: tuple[str, ...], offer: Offer, widths: Iterable[Width]) -> list[Key]:
    """Each key of these widths once, though it covers several of the zones."""
    there = places(offer, zones)
    return list(dict.fromkeys(place.key(width) for width in widths for place in there))


def places(offer: Offer, zones: tuple[str, ...] | None = None) -> list[Place]:
    """Where it can be had: in each of its zones, or of these."""
    return [
        Place(offer.provider, offer.region, zone, offer.instance_type, offer.family, offer.market)
        for zone in (offer.zones if zones is None else zones) or ("",)
    ]


class Allowances(Protocol):
    """What a provider lets us have at once, as far as it is known; from memory, asked often."""

    def against(self, place: Place, *, nodes: int, now: int) -> Cooling | None:
        """Why so many machines there would surely be refused."""
        ...

    def entries(self, now: int) -> Iterable[Cooling]:
        """What stood in somebody's way of late."""
        ...


class Cooldown:
    """The refusals still remembered; the one mutable thing of the optimizer."""

    def __init__(self, entries: Iterable[Cooling] = ()) -> None:
        self._entries: dict[Key, Cooling] = {entry.key: entry for entry in entries}
        self._allowances: dict[str, Allowances] = {}

    def allow(self, provider: str, what: Allowances) -> None:
        """From now on more than this is not tried with the provider."""
        self._allowances[provider] = what

    def allowances(self, provider: str) -> Allowances | None:
        """What it lets us have, where anything is known."""
        return self._allowances.get(provider)

    def refused(self, offer: Offer, why: Why, *, now: int, nodes: int = 1) -> tuple[Cooling, ...]:
        """Remembers that `nodes` machines of the offer were refused, in each zone that it names."""
        if why.width is Width.NOTHING:
            return ()
        keys = _keys(offer.zones, offer, [why.width])
        return tuple(self._strike(key, why, now=now, nodes=nodes) for key in keys)

    def _strike(self, key: Key, why: Why, *, now: int, nodes: int) -> Cooling:
        fresh = Cooling(key, why.refusal, 1, nodes, now, now, why.message)
        self._entries[key] = struck(self._entries.get(key), fresh, now)
        return self._entries[key]

    def succeeded(self, offer: Offer, *, now: int, zone: str = "") -> None:
        """Opens at once what gave a machine, and halves its count of refusals."""
        for key in _keys((zone,) if zone else offer.zones, offer, RULED_OUT):
            self._relent(key, now)

    def room_again(self, offer: Offer, kinds: Container[Refusal], *, now: int) -> None:
        """A machine of it was given back: refusals of these kinds may be over."""
        for key in _keys(offer.zones, offer, RULED_OUT):
            entry = self._entries.get(key)
            if entry is not None and entry.refusal in kinds:
                self._relent(key, now)

    def _relent(self, key: Key, now: int) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        strikes = entry.forgotten(now) // 2
        if strikes:
            self._entries[key] = replace(entry, strikes=strikes, until=min(now, entry.until))
        else:
            del self._entries[key]

    def quiet(self) -> bool:
        """Whether nothing at all is remembered."""
        return not self._entries

    def against(self, place: Place, *, now: int, nodes: int = 1) -> Cooling | None:
        """The refusal that lasts longest of those that speak against `nodes` machines there."""
        found = [self._entries.get(place.key(width)) for width in RULED_OUT]
        standing = [entry for entry in found if entry and _speaks(entry, now, nodes)]
        return max(standing, key=lambda entry: (entry.until, entry.key), default=None)

    def entries(self, now: int) -> tuple[Cooling, ...]:
        """Every refusal that still rules something out, the one that ends first first."""
        every = chain(
            list(self._entries.values()), *(one.entries(now) for one in self._allowances.values())
        )
        standing = [entry for entry in every if entry.until > now]
        return tuple(sorted(standing, key=lambda entry: (entry.until, entry.key)))

    def forget(self, now: int) -> None:
        """Drops what no longer counts, so that the memory stays small."""
        self._entries = {k: entry for k, entry in self._entries.items() if entry.forgotten(now)}


def _speaks(entry: Cooling, now: int, nodes: int) -> bool:
    return entry.until > now and nodes >= entry.nodes
