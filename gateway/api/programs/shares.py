"""What everybody used, faded, and how they stand: for sshare and sprio."""

from collections.abc import Mapping

from accounting.assoc import Book
from accounting.fairshare import Key, Standing, fill, stand, tree
from broker.model.site import units
from broker.model.tally import Party, party_of, used_by
from broker.model.tally import Used as Held
from broker.schedule.sums import Family, Known, known_of
from broker.world import Snapshot
from gateway.query.context import Context

Used = Mapping[Key, Mapping[str, float]]
"""TRES-seconds that count now, by account and user; `billing` among them."""


def used(snap: Snapshot, ctx: Context) -> Used:
    """What everybody used, by jobs of the past and by those that run."""
    known = _known(snap, ctx)
    found: dict[Key, dict[str, float]] = {}
    for party in known.parties:
        own = found.setdefault((party.account, party.user), {})
        for name, count in known.counts(party).items():
            own[name] = own.get(name, 0.0) + count
    return {key: {n: max(0.0, count) for n, count in own.items()} for key, own in found.items()}


def standing(book: Book, past: Used) -> dict[Key, Standing]:
    """How everybody stands by it."""
    root = tree(book)
    fill(root, {key: counts.get("billing", 0.0) for key, counts in past.items()})
    return stand(root)


def used_by_qos(snap: Snapshot, ctx: Context) -> Mapping[str, Mapping[str, float]]:
    """The same by QOS, whose use is reset by itself and fades unless they say NoDecay."""
    known = _known(snap, ctx)
    return {name: known.charged(Family.QOS, (name,)) for name in ctx.site.book.qos}


def _known(snap: Snapshot, ctx: Context) -> Known:
    tally: dict[Party, Held] = {}
    for job in ctx.jobs.values():
        if job.shares:
            billed = units(ctx.site, job.alloc, job.partition)
            tally.setdefault(party_of(job), Held()).add(used_by(job, billed))
    return known_of(ctx.site, tally, snap.charges, now=ctx.now)
