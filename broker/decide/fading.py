"""What was used before, as it counts for limits and shares: it fades with time."""

from collections.abc import Iterable

from accounting import rollup
from accounting.ledger import Entry, Kind
from broker.model.tally import Charge, Party
from broker.ports import Store
from broker.world import World

HALF_LIVES = 20
"""What is older counts less than a millionth."""
UNSCALED = frozenset({rollup.JOBS, "billing"})
"""Sums that are no use of a TRES: CHARGED stands for billing, with the UsageFactor in it."""


def load(world: World, store: Store, now: int) -> None:
    """Fills the world's charges from the ledger's sums; nothing where no limit or share needs it.

    What was used within an hour counts from the hour's middle.
    """
    ranking = world.site.ranking
    since = 0
    if ranking.half_life and not _never_fades(world):
        since = max(0, now - HALF_LIVES * ranking.half_life)
    for party, tres, hour, amount in store.charges(since):
        if tres in UNSCALED:
            continue
        middle = hour + rollup.HOUR // 2
        name, factor = tres, _factor(world, party)
        if tres == rollup.CHARGED:
            name, factor = "billing", 1.0
        charge = world.charges.setdefault(party, Charge(at=middle))
        charge.add({name: amount * factor}, middle, keep=ranking.keep)


def _factor(world: World, party: Party) -> float:
    grade = world.site.book.qos.get(party.qos)
    return grade.usage_factor if grade else 1.0


def note(world: World, entries: Iterable[Entry]) -> None:
    """Adds what a step has posted."""
    keep = world.site.ranking.keep
    for entry in entries:
        if entry.kind is Kind.USAGE:
            party = Party(entry.user, entry.account, entry.qos, entry.partition)
            charge = world.charges.setdefault(party, Charge(at=entry.at))
            charge.add(rollup.charged(entry), entry.at, keep=keep)


def _never_fades(world: World) -> bool:
    """Whether some QOS counts all that was ever used."""
    return any("NoDecay" in qos.flags for qos in world.site.book.qos.values())
