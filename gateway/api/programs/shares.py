"""What everybody used, faded, and how they stand: for sshare and sprio."""

from accounting.fairshare import Key, Standing, fill, stand, tree
from accounting.rollup import CHARGED, DAY
from broker.model.site import units
from gateway.api.desk import Desk
from gateway.query.context import Context

HALF_LIVES = 10
"""What is older counts less than a thousandth."""


async def standings(desk: Desk, ctx: Context, half_life: int) -> dict[Key, Standing]:
    """Everybody's standing now, from the ledger."""
    return await desk.read(_standings, desk, ctx, half_life)


def _standings(desk: Desk, ctx: Context, half_life: int) -> dict[Key, Standing]:
    """Blocks."""
    keep = ctx.site.ranking.keep
    since = max(0, ctx.now - HALF_LIVES * half_life) if half_life else 0
    used: dict[Key, float] = {}
    for party, tres, day, amount in desk.history.charges(since):
        if tres == CHARGED:
            key = party.account, party.user
            age = max(0, ctx.now - day - DAY // 2)
            used[key] = used.get(key, 0.0) + amount * keep**age
    for job in ctx.jobs.values():
        if job.shares and job.started is not None:
            key = job.account, job.owner.user
            seconds = max(0, ctx.now - job.started)
            used[key] = used.get(key, 0.0) + units(ctx.site, job.alloc, job.partition) * seconds
    root = tree(ctx.site.book)
    fill(root, used)
    return stand(root)
