"""What everybody used, faded, and how they stand: for sshare and sprio."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from accounting.assoc import Book
from accounting.fairshare import Key, Standing, fill, stand, tree
from accounting.order import faded
from accounting.reset import association_since, last_turn, qos_since
from broker.decide import fading
from broker.model.job import Job
from broker.model.site import Site, units
from broker.model.tally import Charge, Party, counts_of
from gateway.api.desk import Desk
from gateway.query.context import Context

Used = Mapping[Key, Mapping[str, float]]
"""TRES-seconds that count now, by account and user; `billing` among them."""


async def used(desk: Desk, ctx: Context) -> Used:
    """What everybody used, from the ledger and by jobs that run."""
    return await desk.read(_used, desk, ctx)


def standing(book: Book, past: Used) -> dict[Key, Standing]:
    """How everybody stands by it."""
    root = tree(book)
    fill(root, {key: counts.get("billing", 0.0) for key, counts in past.items()})
    return stand(root)


async def used_by_qos(desk: Desk, ctx: Context) -> Mapping[str, Mapping[str, float]]:
    """The same by QOS, whose use is reset by itself and fades unless they say NoDecay."""
    return await desk.read(_used_by_qos, desk, ctx)


def _used_by_qos(desk: Desk, ctx: Context) -> Mapping[str, Mapping[str, float]]:
    """Blocks."""
    site, found = ctx.site, dict[str, dict[str, float]]()
    keep = site.ranking.keep
    for party, charge in _past(desk, ctx):
        _add(found, party.qos, charge.whole if _lasts(site, party.qos) else charge.graded)
    for job in ctx.jobs.values():
        if job.shares and job.started is not None:
            own = 1.0 if _lasts(site, job.qos) else keep
            since = max(job.started, qos_since(site.book, job.qos))
            _add(found, job.qos, _used_by(job, ctx, since=since, keep=own))
    return found


def _lasts(site: Site, qos: str) -> bool:
    grade = site.book.qos.get(qos)
    return grade is not None and "NoDecay" in grade.flags


def _used_by(job: Job, ctx: Context, *, since: int, keep: float) -> dict[str, float]:
    """What a running job has used since then, as it counts now."""
    seconds = min(job.ran(ctx.now), max(0, ctx.now - since))
    times = faded(seconds, keep) * ctx.site.book.factor(job.qos)
    counts = counts_of(job.alloc, units(ctx.site, job.alloc, job.partition))
    return {name: count * times for name, count in counts.items()}


def _past(desk: Desk, ctx: Context) -> Iterator[tuple[Party, Charge]]:
    """What ended jobs used, faded until now."""
    site, started_at = ctx.site, desk.snapshot().started_at
    past = fading.charges(site, desk.history, ctx.now, started_at=started_at)
    for party, charge in past.items():
        charge.fade(ctx.now, keep=site.ranking.keep)
        yield party, charge


def _used(desk: Desk, ctx: Context) -> Used:
    """Blocks."""
    site, started_at = ctx.site, desk.snapshot().started_at
    found: dict[Key, dict[str, float]] = {}
    for party, charge in _past(desk, ctx):
        _add(found, (party.account, party.user), charge.faded)
    turn = last_turn(site.ranking.reset, ctx.now, started_at=started_at)
    for job in ctx.jobs.values():
        if job.shares and job.started is not None:
            key = job.account, job.owner.user
            since = max(job.started, turn, association_since(site.book, *key))
            _add(found, key, _used_by(job, ctx, since=since, keep=site.ranking.keep))
    return found


K = TypeVar("K")


def _add(found: dict[K, dict[str, float]], key: K, counts: Mapping[str, float]) -> None:
    own = found.setdefault(key, {})
    for name, count in counts.items():
        own[name] = own.get(name, 0.0) + count
