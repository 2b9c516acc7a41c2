"""Where the jobs of a lot go: onto machines that are there, to wait for one, or onto new ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from broker.model.ids import NodeName
from broker.model.job import Share
from broker.model.offer import Need
from broker.schedule.eligible import eligible
from broker.schedule.fit import Room, choose
from broker.schedule.lots import Kind, Lot, Market, Size, Wish, fill, purchases, together
from broker.schedule.mending import mended
from broker.schedule.view import FOREVER, Quote, Start

USUAL_SECONDS = 3600
"""What a job without a limit is taken to last; once it has, as long again."""
Counts = list[tuple[Kind, int]]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a lot meets in a pass; instants in whole seconds UTC."""

    now: int
    rooms: Sequence[Room]
    """Bought machines with room."""
    full: Sequence[Room]
    """Bought machines without."""
    ends: Callable[[NodeName], Sequence[tuple[int, Share]]]
    kept: Callable[[Room], int]
    """Until when whoever takes the room has to be gone."""
    names: int
    kill_wait: int
    promised: set[NodeName]
    """Machines for which somebody of this pass waits."""


@dataclass(slots=True)
class Settled:
    """What a lot came to; wishes that are in none of these were not served."""

    starts: list[Start] = field(default_factory=list)
    buys: list[tuple[Need, tuple[Wish, ...]]] = field(default_factory=list)
    """What each machine has to have, and for whom."""
    waits: list[tuple[Wish, NodeName]] = field(default_factory=list)
    """Those for whom a machine is free sooner than a new one would be, and for less."""


def settle(lot: Lot, ground: Ground, quote: Callable[[Need], Quote]) -> Settled:
    """Serves as many of the lot as can be; the rooms that are taken shrink.

    Nobody is bought for in the second in which the last of the lot came: more may come.
    """
    market = Market(lot, quote, ground.names)
    done = Settled()
    kinds = lot.open()
    for one in _open_to(lot, ground.rooms, ground):
        if not any(kind.left for kind in kinds):
            return done
        _into(one, _fitting(kinds, one, ground), market, ground=ground, done=done)
    if gathering(lot, ground.now):
        return done
    _wait_for_some(market, ground, done)
    kinds = lot.open()
    for load in mended(market, purchases(market, kinds)) if kinds else ():
        riders = tuple(kind.next() for kind, count in load for _ in range(count))
        done.buys.append((together(load), riders))
    return done


def gathering(lot: Lot, now: int) -> bool:
    """Whether all that are left came just now."""
    return all(wish.job.submitted >= now for wish in lot.left)


def _open_to(lot: Lot, rooms: Sequence[Room], ground: Ground) -> Iterator[Room]:
    """Machines that the lot's jobs may have: they are alike in what they ask but for its size."""
    job = next(lot.left).job
    for one in rooms:
        if one.name not in ground.promised and eligible(one, job, lot.partition):
            yield one


def _into(one: Room, kinds: list[Kind], market: Market, *, ground: Ground, done: Settled) -> None:
    """Takes what is free of the machine as far as that costs less than buying."""
    if not kinds:
        return
    free_at = _free_at(one, ground)
    ride = [kind for kind in kinds if ground.now + kind.need.run_seconds <= free_at]
    _place(fill(_counts(ride), _free(one)), one, done)
    rest = [kind for kind in kinds if kind.left and kind not in ride]
    for number, longest in enumerate(rest):
        load = fill(_counts(rest[number:]), _free(one))
        until = ground.now + longest.need.run_seconds
        if load and _longer(one, free_at, until, now=ground.now) <= _worth(market, load):
            _place(load, one, done)
            return


def _fitting(kinds: Iterable[Kind], one: Room, ground: Ground) -> list[Kind]:
    """Kinds that still want room, may stay long enough, and of which one has room there."""
    kept, now, (cpus, memory, gpus) = ground.kept(one), ground.now, _free(one)
    return [
        kind
        for kind in kinds
        if kind.left
        and kind.need.cpus <= cpus
        and kind.need.mem_mib <= memory
        and kind.need.gpus <= gpus
        and kind.until(now) <= kept
    ]


def _counts(kinds: Iterable[Kind]) -> list[tuple[Kind, int]]:
    return [(kind, kind.left) for kind in kinds]


def _free(one: Room) -> Size:
    return one.free.cpu, one.free.mem_mib, dict(one.free.gres).get("gpu", 0)


def _free_at(one: Room, ground: Ground, leaving: Sequence[Share] = ()) -> int:
    """When the last of its jobs, but for those that leave, is taken to be over."""
    ends = [_end(end, ground.now) for end, share in ground.ends(one.name) if share not in leaving]
    return max([ground.now, *ends])


def _end(end: int, now: int) -> int:
    if end < FOREVER:
        return end
    started = end - FOREVER
    return max(started + USUAL_SECONDS, 2 * now - started)


def extension(one: Room, ground: Ground, until: int) -> float:
    """Micro-dollars for keeping it until then instead of letting it go when it is free."""
    return _longer(one, _free_at(one, ground), until, now=ground.now)


def _longer(one: Room, free_at: int, until: int, *, now: int) -> float:
    return one.node.micro_usd_per_hour * max(0, until - max(free_at, now)) / 3600


def _worth(market: Market, load: Counts) -> float:
    return sum(market.worth(kind) * count for kind, count in load)


def _place(load: Counts, one: Room, done: Settled) -> None:
    for kind, count in load:
        for _ in range(count):
            wish = kind.wishes[kind.first]
            shares = choose(wish.ask.demand, [one])
            if shares is None:
                break  # its GPUs are of another type
            kind.next()
            one.take(shares[0])
            one.users |= {wish.job.owner.user}
            done.starts.append(Start(wish.job.id, wish.task, wish.ask.partition.name, shares))


def _wait_for_some(market: Market, ground: Ground, done: Settled) -> None:
    """Machines whose jobs reach their limits before a new machine would be up."""
    lot, kinds = market.lot, market.lot.open()
    soon = ground.now + lot.elastic.buy.boot_seconds - ground.kill_wait
    if soon <= ground.now or not kinds:
        return
    for one in _open_to(lot, [*ground.rooms, *ground.full], ground):
        leaving = [share for end, share in ground.ends(one.name) if end <= soon]
        if leaving and any(kind.left for kind in kinds):
            _wait_for(one, leaving, market, ground=ground, done=done)


def _wait_for(
    one: Room, leaving: Sequence[Share], market: Market, *, ground: Ground, done: Settled
) -> None:
    then = one.copy()
    for share in leaving:
        then.give_back(share)
    load = fill(_counts(_fitting(market.lot.open(), then, ground)), _free(then))
    if not load:
        return
    until = ground.now + load[0][0].need.run_seconds
    cost = _longer(one, _free_at(one, ground, leaving), until, now=ground.now)
    if cost <= _worth(market, load):
        ground.promised.add(one.name)
        done.waits += [(kind.next(), one.name) for kind, count in load for _ in range(count)]
