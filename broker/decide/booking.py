"""Changes of accounts, associations, users and QOS, as sacctmgr asks for them."""

from collections.abc import Iterable

from accounting.change import folded, may_make
from broker.decide.rules import NOTHING, Decision
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import ACCESS_DENIED, Conflict, Denied
from broker.model.site import Site, with_book
from broker.world import World

OTHER_BOOK = "accounts were changed at the same time by somebody else"


def decide_book(world: World, asked: cmd.ChangeBook, now: int) -> Decision:
    """One fact for all of a command's changes. Raises Denied, Conflict."""
    known, site = world.site.book, world.site
    if known is not asked.basis:
        raise Conflict(OTHER_BOOK, hint="ask again")
    admin = site.is_run_by(asked.by.uid)
    if not may_make(known, asked.change, asked.by.user, admin=admin):
        raise Denied(ACCESS_DENIED)
    if asked.change.empty:
        return NOTHING
    fact = ev.BookChanged(
        at=now,
        actor=asked.by.uid,
        by=asked.by.user,
        action=asked.action,
        change=asked.change,
        where=asked.where,
        info=asked.info,
    )
    return Decision([fact])


def decide_entries(world: World, asked: cmd.PostEntries) -> Decision:
    """Corrections of the ledger. Raises Denied."""
    if not world.site.is_run_by(asked.by.uid):
        raise Denied(ACCESS_DENIED)
    return Decision(entries=asked.entries)


def with_changes(site: Site, changes: Iterable[ev.BookChanged]) -> Site:
    """The configuration's site with what sacctmgr changed."""
    kept = [one.change for one in changes]
    return with_book(site, folded(site.book, kept)) if kept else site
