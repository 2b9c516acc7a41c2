"""`sacctmgr delete`: accounts with all below, users or their associations, QOS, coordinators."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from accounting.assoc import NORMAL, ROOT, Association, lower
from accounting.change import Change, default_holders, default_of, place
from accounting.ids import AccountName
from gateway.translate.bookmodify import (
    ACCOUNT_KEYS,
    QOS_KEYS,
    USER_KEYS,
    Said,
    chosen_qos,
    conditions,
)
from gateway.translate.bookorder import (
    Known,
    OrderError,
    Proposal,
    associations,
    means,
    must_be_here,
    must_be_there,
)

NOTHING = " Nothing deleted\n"
NO_ENTITY = (
    "No valid entity in delete command\n"
    'Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", '
    'or "User"\n'
)
NOT_ROOT = " You are not allowed to remove the root account.\n Use remove cluster instead.\n"
NO_CONDITIONS = " No conditions given to remove, not executing.\n"
DISCARDED = " Changes Discarded\n"
DEFAULT_ACCOUNT = (
    " Error with request: You can not remove the default account of a user\n{}"
    " Please either remove the accounts listed above from list and resubmit,\n"
    " or change these users' default accounts to remove the account(s).\n"
)
DEFAULT_QOS = (
    " Associations listed below have these as their Default QOS.\n{}"
    " Please either remove the qos' listed above from list and resubmit,\n"
    " or change the default qos to remove the qos.\n"
)
NOT_HERE = "sacctmgr: error: deleting a {} is not supported by SkyPurza\n"
NO_COORDINATORS = " You need to specify a user list or account list here.\n"
COORDINATOR_KEYS = (("name", 1), ("user", 1), ("account", 1), ("cluster", 2))


def delete(words: Sequence[str], known: Known) -> Proposal:
    """What the order comes to. Raises OrderError."""
    entity = words[0].lower() if words else ""
    for name, least, make in ENTITIES:
        if means(entity, name, least):
            return make(words[1:], known)
    raise OrderError(NO_ENTITY)


def _where(
    words: Sequence[str], known: Known, *, bare: str, keys: tuple[tuple[str, int], ...]
) -> Said:
    said = Said(conditions(words, bare, keys), {}, [])
    must_be_here(said.where.get("cluster", ()), known)
    if not said.where:
        raise OrderError(NO_CONDITIONS)
    return said


def _accounts(words: Sequence[str], known: Known) -> Proposal:
    said = _where(words, known, bare="account", keys=ACCOUNT_KEYS)
    if ROOT in {name.lower() for name in said.where.get("account", ())}:
        raise OrderError(NOT_ROOT)
    named = [
        name
        for name, one in known.book.accounts.items()
        if name != ROOT
        and said.wants("account", name)
        and said.wants("parent", one.parent)
        and said.wants("description", one.description)
        and said.wants("organization", one.organization)
    ]
    if not named:
        raise OrderError(out=NOTHING)
    gone = [
        name
        for name in known.book.accounts
        if {step.name for step in known.book.lineage(name)} & set(named)
    ]
    _must_leave_defaults(gone, known)
    return Proposal(
        change=Change(no_accounts=tuple(gone)),
        out=" Deleting accounts...\n" + "".join(f"  {name}\n" for name in named),
        action="Remove Accounts",
        where=",".join(named),
    )


def _must_leave_defaults(gone: Sequence[AccountName], known: Known) -> None:
    """Raises OrderError where a user who keeps other accounts would lose the default one."""
    lost = set(gone)
    bad = [
        own
        for owned in known.book.associations.values()
        for own in owned
        if own.account in lost
        and own.account == default_of(known.book, own.user)
        and any(other.account not in lost for other in owned)
    ]
    if bad:
        lines = "".join(
            f"  C = {known.cluster:<15.15} A = {own.account:<10.10} U = {own.user:<9.9}\n"
            for own in bad
        )
        raise OrderError(DEFAULT_ACCOUNT.format(lines), out=DISCARDED)


def _users(words: Sequence[str], known: Known) -> Proposal:
    said = _where(words, known, bare="user", keys=USER_KEYS)
    chosen = [
        own
        for own in associations(known.book)
        if said.wants("user", own.user)
        and said.wants("account", own.account)
        and said.wants("partition", own.partition or "")
        and said.wants("adminlevel", known.book.level(own.user))
    ]
    whole = not said.where.keys() & {"account", "partition"}
    names = list(dict.fromkeys(own.user for own in chosen))
    if whole:
        names += [name for name in known.book.people if said.wants("user", name)]
        names = list(dict.fromkeys(names))
    if not names:
        raise OrderError(out=NOTHING)
    if whole:
        return Proposal(
            change=Change(no_people=tuple(names)),
            out=" Deleting users...\n" + "".join(f"  {name}\n" for name in names),
            action="Remove Users",
            where=",".join(names),
        )
    left = {own.user for own in associations(known.book) if own not in chosen}
    gone = [name for name in names if name not in left]
    out = " Deleting user associations...\n" + "".join(_line(own, known) for own in chosen)
    out += " Deleting users (No Associations)...\n" if gone else ""
    out += "".join(f"  {name}\n" for name in gone)
    return Proposal(
        change=Change(no_associations=tuple(map(place, chosen)), no_people=tuple(gone)),
        out=out,
        action="Remove Associations",
        where=",".join(names),
        info=",".join(dict.fromkeys(str(own.account) for own in chosen)),
    )


def _line(own: Association, known: Known) -> str:
    where = f" P = {own.partition:<10.10}" if own.partition else ""
    return f"  C = {known.cluster:<10.10} A = {own.account:<10.10} U = {own.user:<9.9}{where}\n"


def _qos(words: Sequence[str], known: Known) -> Proposal:
    said = _where(words, known, bare="qos", keys=QOS_KEYS)
    named = [one.name for one in chosen_qos(said, known)]
    if not named:
        raise OrderError(out=NOTHING)
    holders = [(name, own) for name in named for own in default_holders(known.book, name)]
    if holders:
        lines = "".join(
            f"  DefQOS = {name:<10.10} C = {known.cluster:<10.10} A = {own.account:<20.20} "
            f"U = {own.user:<9.9}\n"
            for name, own in reversed(holders)
        )
        raise OrderError(DEFAULT_QOS.format(lines), out=DISCARDED)
    if NORMAL in named:
        raise OrderError(" Error with request: the QOS normal is always there\n", out=DISCARDED)
    return Proposal(
        change=Change(no_qos=tuple(named)),
        out=" Deleting QOS(s)...\n" + "".join(f"  {name}\n" for name in named),
        action="Remove QOS",
        where=",".join(named),
    )


def _coordinators(words: Sequence[str], known: Known) -> Proposal:
    said = Said(conditions(words, "user", COORDINATOR_KEYS), {}, [])
    must_be_here(said.where.get("cluster", ()), known)
    names = said.where.get("user", ())
    accounts = [lower(name) for name in said.where.get("account", ())]
    if not names and not accounts:
        raise OrderError(NO_COORDINATORS)
    must_be_there(accounts, names, known)
    held = [
        (user, one)
        for one in sorted(known.book.accounts.values(), key=lambda one: one.name)
        if not accounts or one.name in accounts
        for user in one.coordinators
        if not names or user in names
    ]
    listed = "".join(f"  {name}\n" for name in accounts)
    out = f" Removing all users from Accounts\n{listed}"
    if names:
        out = " Removing Coordinators with user name\n" + "".join(f"  {name}\n" for name in names)
        out += f" From Account(s)\n{listed}" if accounts else " From all accounts\n"
    if not held:
        raise OrderError(out=f"{out} Nothing removed\n")
    out += " Removed Coordinators (sub accounts not listed)...\n"
    out += "".join(f"  U = {user:<9.9} A = {one.name:<10.10}\n" for user, one in held)
    gone = {user for user, _ in held}
    kept = {one.name: one for _, one in held}
    return Proposal(
        change=Change(
            accounts=tuple(
                replace(one, coordinators=tuple(u for u in one.coordinators if u not in gone))
                for one in kept.values()
            )
        ),
        out=out,
        action="Remove Account Coords",
        where=",".join(sorted(gone)),
        info=",".join(kept),
    )


Make = Callable[[Sequence[str], Known], Proposal]


def _no(what: str) -> Make:
    def refuse(_: Sequence[str], __: Known) -> Proposal:
        raise OrderError(NOT_HERE.format(what))

    return refuse


ENTITIES: tuple[tuple[str, int, Make], ...] = (
    ("account", 1, _accounts),
    ("cluster", 2, _no("cluster")),
    ("coordinator", 2, _coordinators),
    ("federation", 1, _no("federation")),
    ("qos", 1, _qos),
    ("resource", 1, _no("resource")),
    ("user", 1, _users),
)
