"""Reservations of the past and present, from their facts, and how much of them was used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from accounting.rollup import HOUR
from broker.model.reservation import Reservation, ReservationEvent, ReservationSet, names_of
from broker.model.site import Site
from gateway.api.desk import Desk
from gateway.api.programs.sreport_use import Span, used_by
from gateway.query.context import Context


@dataclass(frozen=True, slots=True)
class Held:
    """A reservation from one of its beginnings to its end: cpu-seconds used and not used."""

    name: str
    start: int
    end: int
    used: int
    idle: int
    maint: bool = False


def held(desk: Desk, ctx: Context, *, window: Span, clipped: bool) -> list[Held]:
    """Those that were there within the window, by name and time. Blocks.

    `clipped`: of each the part within the window, of those that keep jobs out. What jobs used is
    known by whole hours: of two with one name in one hour both have it.
    """
    facts = desk.history.reservation_facts()
    found = sorted(_stretches(facts, ctx.now), key=lambda one: (one.name, one.start))
    start, end = window
    there = [one for one in found if one.start < end and one.end > start]
    if clipped:
        there = [one for one in there if not one.has("IGNORE_JOBS")]
        there = [replace(one, start=max(start, one.start), end=min(end, one.end)) for one in there]
    return [_held(desk, ctx, one) for one in there]


def _held(desk: Desk, ctx: Context, one: Reservation) -> Held:
    hours = one.start - one.start % HOUR, -(-one.end // HOUR) * HOUR
    use = used_by(desk, ctx, window=hours, asked=(("reservation",), ("cpu",)))
    mine = {k: n for (k,), n in use.by("reservation").items() if one.name in names_of(str(k))}
    whole = _cpus(one, ctx.site) * (one.end - one.start)
    used = min(whole, sum(mine.values()))
    return Held(one.name, one.start, one.end, used, whole - used, one.has("MAINT"))


def _cpus(one: Reservation, site: Site) -> int:
    return sum(node.whole.cpu for node in site.nodes if node.name in one.nodes)


def _stretches(facts: Iterable[ReservationEvent], now: int) -> Iterator[Reservation]:
    """Each time that each was there; one that was deleted before it began never was."""
    live: dict[str, Reservation] = {}
    for fact in facts:
        name = fact.record.name if isinstance(fact, ReservationSet) else fact.name
        before = live.pop(name, None)
        if isinstance(fact, ReservationSet):
            live[name] = fact.record
            if before is None or before.end > fact.at:
                continue
        yield from _until(before, fact.at)
    yield from live.values()


def _until(one: Reservation | None, at: int) -> Iterator[Reservation]:
    if one is not None and one.start < min(one.end, at):
        yield replace(one, end=min(one.end, at))
