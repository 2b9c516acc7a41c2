"""What everybody used, faded, and how they stand: for sshare and sprio."""

from accounting.fairshare import Key, Standing, fill, stand, tree
from accounting.reset import association_since, last_turn
from broker.decide import fading
from broker.model.site import units
from gateway.api.desk import Desk
from gateway.query.context import Context


async def standings(desk: Desk, ctx: Context) -> dict[Key, Standing]:
    """Everybody's standing now, from the ledger."""
    return await desk.read(_standings, desk, ctx)


def _standings(desk: Desk, ctx: Context) -> dict[Key, Standing]:
    """Blocks."""
    site, started_at = ctx.site, desk.snapshot().started_at
    used: dict[Key, float] = {}
    past = fading.charges(site, desk.history, ctx.now, started_at=started_at)
    for party, charge in past.items():
        charge.fade(ctx.now, keep=site.ranking.keep)
        key = party.account, party.user
        used[key] = used.get(key, 0.0) + charge.faded.get("billing", 0.0)
    turn = last_turn(site.ranking.reset, ctx.now, started_at=started_at)
    for job in ctx.jobs.values():
        if job.shares and job.started is not None:
            key = job.account, job.owner.user
            since = max(job.started, turn, association_since(site.book, *key))
            seconds = max(0, ctx.now - since)
            used[key] = used.get(key, 0.0) + units(site, job.alloc, job.partition) * seconds
    root = tree(site.book)
    fill(root, used)
    return stand(root)
