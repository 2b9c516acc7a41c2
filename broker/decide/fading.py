"""What was used before, as it counts for limits and shares: it fades with time."""

from collections.abc import Iterable
from dataclasses import replace

from accounting import rollup
from accounting.fairshare import fill, stand, tree
from accounting.ledger import Entry, Kind
from broker.model.tally import Charge, Party
from broker.ports import Store
from broker.schedule.priority import Ranks, scale_of
from broker.world import World

HALF_LIVES = 10
"""What is older counts less than a thousandth."""
UNSCALED = frozenset({rollup.JOBS, "billing"})
"""Sums that are no use of a TRES: CHARGED stands for billing, with the UsageFactor in it."""


def load(world: World, store: Store, now: int) -> None:
    """Fills the world's charges from the ledger's sums; nothing where no limit or share needs it.

    What was used on a day counts from its middle; today's from now.
    """
    ranking = world.site.ranking
    since = 0
    if ranking.half_life and not _never_fades(world):
        since = max(0, now - HALF_LIVES * ranking.half_life)
    for party, tres, day, amount in store.charges(since):
        if tres in UNSCALED:
            continue
        middle = min(day + rollup.DAY // 2, now)
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


def shares(world: World, now: int) -> dict[tuple[str, str], float]:
    """Everybody's fair-share factor by account and user, from what was and is being used."""
    ranking = world.site.ranking
    if not (ranking.counts and ranking.fairshare):
        return {}
    used: dict[tuple[str, str], float] = {}
    for party, charge in world.charges.items():
        part = ranking.keep ** max(0, now - charge.at)
        key = party.account, party.user
        used[key] = used.get(key, 0.0) + charge.faded.get("billing", 0.0) * part
    for party, held in world.tally.items():
        key = party.account, party.user
        used[key] = used.get(key, 0.0) + held.seconds("billing", now)
    root = tree(world.site.book)
    fill(root, used)
    return {key: one.factor or 0.0 for key, one in stand(root).items() if key[1]}


def ranks_of(world: World, now: int) -> Ranks:
    """What waiting jobs are ranked by."""
    return Ranks(world.site, now, shares(world, now), scale_of(world.site))


class Ranked:
    """Ranks kept for a while: shares are looked at once in PriorityCalcPeriod."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: Ranks | None = None

    def at(self, now: int) -> Ranks:
        known, site = self._known, self._world.site
        if known is None or known.site is not site or now >= known.now + site.ranking.period:
            self._known = known = ranks_of(self._world, now)
        return replace(known, now=now)
