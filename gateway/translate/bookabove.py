"""Below which account another comes by `sacctmgr modify account ... set parent=`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from accounting.assoc import ROOT, Account, Book, lower
from accounting.change import Change, changed
from gateway.translate.bookorder import Known, OrderError
from gateway.translate.bookwords import Setting

DEEPEST = 100
"""Accounts that may be below each other: trees are walked all the time."""
TOO_DEEP = "sacctmgr: error: account {} would be more than {} deep\n"


def must_be_shallow(change: Change, book: Book) -> Book:
    """The book with the change. Raises OrderError for accounts too far below each other."""
    made = changed(book, change)
    for name in made.accounts if change.accounts else ():
        step = name
        for _ in range(DEEPEST + 1):
            if step == ROOT:
                break
            step = made.accounts[step].parent
        else:
            raise OrderError(TOO_DEEP.format(name, DEEPEST))
    return made


def must_be_there(settings: Iterable[Setting], known: Known) -> None:
    """Raises OrderError for an account to be below that there is not."""
    for one in settings:
        if one.what.field == "parent" and lower(one.value) not in known.book.accounts:
            raise OrderError(f" Parent Account {one.value} doesn't exist.\n")


def settings_of(account: Account, given: Iterable[Setting]) -> list[Setting]:
    """Without a parent that is its own already, or itself; root has none (22.05)."""
    settings = [
        replace(one, value=lower(one.value)) if one.what.field == "parent" else one for one in given
    ]
    known = {account.parent, account.name}
    stays = known if account.name != ROOT else {*known, *(one.value for one in settings)}
    return [one for one in settings if one.what.field != "parent" or one.value not in stays]


def given_way(before: Sequence[Account], made: Sequence[Account], known: Known) -> list[Account]:
    """An account that another comes to be below, although it was below that one itself, takes
    that one's place (22.05)."""
    book, names = known.book, {one.name for one in made}
    return [
        replace(book.accounts[new.parent], parent=old.parent)
        for old, new in zip(before, made, strict=True)
        if new.parent != old.parent
        and new.parent not in names
        and old.name in {one.name for one in book.lineage(new.parent)}
    ]
