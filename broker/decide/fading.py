"""What was used before, as it counts for limits and shares: it fades, and is reset now and then."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from accounting import rollup
from accounting.assoc import ROOT, Book
from accounting.change import Change
from accounting.fairshare import fill, stand, tree
from accounting.ledger import Entry, Kind
from accounting.reset import association_since, last_turn, of_account, of_qos, qos_since
from broker.model import events as ev
from broker.model.site import Site
from broker.model.tally import Charge, Party, Used
from broker.ports import Store, Sums
from broker.schedule.priority import Ranks, scale_of
from broker.world import World

HALF_LIVES = 10
"""What is older counts less than a thousandth."""
UNSCALED = frozenset({rollup.JOBS, "billing"})
"""Sums that are no use of a TRES: CHARGED stands for billing, with the UsageFactor in it."""


@dataclass(frozen=True, slots=True)
class _Used:
    """What was used of one TRES in a span of time."""

    party: Party
    tres: str
    start: int
    end: int
    amount: float

    def since(self, instant: int) -> float:
        """How much of it, used evenly, from then on."""
        whole = self.end - self.start
        return self.amount * min(1.0, max(0, self.end - instant) / whole) if whole > 0 else 0.0


def load(world: World, store: Store, now: int) -> None:
    """Fills the world's charges, as of a start now.

    An earlier version kept none: there what the ledger sums up by days stands for them.
    """
    kept = store.kept_charges()
    world.charges = kept or charges(world.site, store, now, started_at=now)


def charges(site: Site, store: Sums, now: int, *, started_at: int) -> dict[Party, Charge]:
    """What counts of the past: of each span from its middle on, of none what was before a reset.

    Days on which somebody's use was reset are read by the hour.
    """
    ranking, since = site.ranking, 0
    if ranking.half_life and not _never_fades(site):
        since = max(0, now - HALF_LIVES * ranking.half_life)
    turn = last_turn(ranking.reset, now, started_at=started_at)
    found: dict[Party, Charge] = {}
    for used in _used(site, store, since, turn=turn, now=now):
        middle, party = (used.start + used.end) // 2, used.party
        charge = found.setdefault(party, Charge(at=middle))
        charge.fade(middle, keep=ranking.keep)
        late = ranking.keep ** max(0, charge.at - middle)
        own, graded = _since(site.book, party)
        charge.add_for_associations({used.tres: used.since(max(turn, own))}, late)
        charge.add_for_qos({used.tres: used.since(max(turn, graded))}, late)
    return found


def _used(site: Site, store: Sums, since: int, *, turn: int, now: int) -> Iterator[_Used]:
    resets = {at - at % rollup.DAY for at in (turn, *site.book.resets.values()) if at > since}
    rows = [(rollup.DAY, row) for row in store.charges(since) if row[2] not in resets]
    for day in sorted(resets):
        hours = store.charges(day, span=rollup.HOUR, until=day + rollup.DAY)
        rows += [(rollup.HOUR, row) for row in hours]
    for span, (party, tres, start, amount) in rows:
        if tres in UNSCALED:
            continue
        end = max(start + 1, min(start + span, now))
        if tres == rollup.CHARGED:
            yield _Used(party, "billing", start, end, amount)
        else:
            yield _Used(party, tres, start, end, amount * site.book.factor(party.qos))


def noted(world: World, entries: Iterable[Entry]) -> dict[Party, Charge]:
    """The charges that a step has changed: by what it has posted, and by what it has reset."""
    found: dict[Party, Charge] = {}
    for entry in entries:
        if entry.kind is Kind.USAGE:
            party = Party(entry.user, entry.account, entry.qos, entry.partition)
            charge = _own(world, found, party, at=entry.at)
            seconds = entry.at - entry.since
            keep = world.site.ranking.keep
            charge.add(rollup.charged(entry), entry.at, keep=keep, seconds=seconds)
    for _, fact in world.facts:
        if isinstance(fact, ev.BookChanged) and fact.change.resets:
            _reset(world, found, fact)
    return found


def _own(world: World, found: dict[Party, Charge], party: Party, *, at: int) -> Charge:
    """The one that is being changed."""
    if party not in found:
        known = world.charges.get(party)
        found[party] = known.copy() if known is not None else Charge(at=at)
    return found[party]


def _since(book: Book, party: Party) -> tuple[int, int]:
    """Since when use counts for the party's association, and for its QOS."""
    return association_since(book, party.account, party.user), qos_since(book, party.qos)


def _reset(world: World, found: dict[Party, Charge], fact: ev.BookChanged) -> None:
    """Of those whose use begins to count anew nothing counts, nor what running jobs have used."""
    book = replace(world.site.book, resets=dict(fact.change.resets))
    keep, now = world.site.ranking.keep, fact.at
    for party in {*world.charges, *found, *world.tally}:
        association, grade = _since(book, party)
        if not (association or grade):
            continue
        charge = _own(world, found, party, at=now)
        charge.fade(now, keep=keep)
        if association:
            charge.faded = _less_running(world, party, now, keep=keep)
        if grade:
            charge.graded = _less_running(world, party, now, keep=keep)
            charge.whole = _less_running(world, party, now, keep=1.0)


def _less_running(world: World, party: Party, now: int, *, keep: float) -> dict[str, float]:
    """What takes away what running jobs have used so far."""
    held, factor = world.tally.get(party, Used()), world.site.book.factor(party.qos)
    return {name: -factor * held.charged(name, now, keep=keep) for name in held.held}


def turned(world: World, now: int, *, started_at: int) -> list[ev.BookChanged]:
    """The reset of everybody's use, where the turn of a period calls for it."""
    known = world.site.book
    turn = last_turn(world.site.ranking.reset, now, started_at=started_at)
    keys = (of_account(ROOT), *map(of_qos, known.qos))
    late = tuple((key, turn) for key in keys if known.resets.get(key, 0) < turn)
    if not late:
        return []
    return [
        ev.BookChanged(at=now, actor=0, by="root", action="Reset Usage", change=Change(resets=late))
    ]


def _never_fades(site: Site) -> bool:
    """Whether some QOS counts all that was ever used."""
    return any("NoDecay" in qos.flags for qos in site.book.qos.values())


def shares(world: World, now: int) -> dict[tuple[str, str], float]:
    """Everybody's fair-share factor by account and user, from what was and is being used."""
    ranking = world.site.ranking
    thresholds = any(qos.usage_threshold is not None for qos in world.site.book.qos.values())
    if not (ranking.counts and ranking.fairshare) and not (ranking.multifactor and thresholds):
        return {}
    used: dict[tuple[str, str], float] = {}
    for party, charge in world.charges.items():
        part = ranking.keep ** max(0, now - charge.at)
        key = party.account, party.user
        used[key] = used.get(key, 0.0) + charge.faded.get("billing", 0.0) * part
    for party, held in world.tally.items():
        key = party.account, party.user
        running = held.charged("billing", now, keep=ranking.keep)
        used[key] = used.get(key, 0.0) + running * world.site.book.factor(party.qos)
    used = {key: max(0.0, amount) for key, amount in used.items()}
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
