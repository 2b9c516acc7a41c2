"""What everybody used, faded, and how they stand: for sshare and sprio."""

from accounting.fairshare import Branch, Key, Standing, decayed, fill, stand
from gateway.api.desk import Desk
from gateway.query.assocs import Row, tree
from gateway.query.context import Context

HALF_LIVES = 20
"""What is older counts less than a millionth."""


async def standings(desk: Desk, ctx: Context, half_life: int) -> dict[Key, Standing]:
    """Everybody's standing now, from the ledger."""
    return await desk.read(_standings, desk, ctx, half_life)


def _standings(desk: Desk, ctx: Context, half_life: int) -> dict[Key, Standing]:
    """Blocks."""
    since = ctx.now - HALF_LIVES * half_life if half_life else 0
    entries = desk.history.entries(since=max(since, 0), until=ctx.now + 1)
    used = decayed(entries, now=ctx.now, half_life=half_life)
    root = branches(tree(ctx.site.book))
    fill(root, used)
    return stand(root)


def branches(rows: list[Row]) -> Branch:
    """The tree of the associations; several partitions of one user are one branch."""
    root = Branch((rows[0].account.name, ""), rows[0].shares)
    accounts = {rows[0].account.name: root}
    users: set[Key] = set()
    for row in rows[1:]:
        name = row.account.name
        if row.user is None:
            branch = accounts[name] = Branch((name, ""), row.shares)
            accounts[row.account.parent].below.append(branch)
        elif (name, row.user.user) not in users:
            users.add((name, row.user.user))
            accounts[name].below.append(Branch((name, row.user.user), row.shares))
    return root
