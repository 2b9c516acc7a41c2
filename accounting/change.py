"""Changes of the book: records put in place of those of the same name, and names that go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from accounting.assoc import NORMAL, ROOT, Account, Association, Book, Person, Qos, allowed_qos
from accounting.budget import Budget
from accounting.ids import AccountName, UserName

K = TypeVar("K")
V = TypeVar("V")
Holder = TypeVar("Holder", Account, Association)
Place = tuple[UserName, AccountName, str | None]
"""What tells an association from others: user, account, partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one command does to the book; what goes, goes before what is put."""

    accounts: tuple[Account, ...] = ()
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    people: tuple[Person, ...] = ()
    no_accounts: tuple[AccountName, ...] = ()
    no_associations: tuple[Place, ...] = ()
    no_qos: tuple[str, ...] = ()
    no_people: tuple[UserName, ...] = ()
    budgets: tuple[Budget, ...] = ()
    no_budgets: tuple[str, ...] = ()
    resets: tuple[tuple[str, int], ...] = ()
    """Whose use counts anew, from which instant on."""

    @property
    def empty(self) -> bool:
        return self == NO_CHANGE


NO_CHANGE = Change()


def place(own: Association) -> Place:
    return own.user, own.account, own.partition


def changed(known: Book, change: Change) -> Book:
    """The book with the change.

    What does not hold together any more is mended: associations of accounts that are gone go too,
    accounts without a parent come below root, names of QOS that are gone leave every list.
    """
    accounts = {**_without(known.accounts, change.no_accounts)}
    accounts |= {one.name: one for one in change.accounts}
    qos = _without(known.qos, change.no_qos) | {one.name: one for one in change.qos}
    people = _without(known.people, change.no_people) | {one.name: one for one in change.people}
    if change.no_accounts or change.accounts:
        accounts = _rooted(accounts)
    if change.no_qos:
        accounts = {name: _without_qos(one, qos) for name, one in accounts.items()}
    return replace(
        known,
        accounts=accounts,
        associations=_associations(known, change, accounts=accounts, qos=qos),
        qos=qos,
        people=people,
        budgets=_without(known.budgets, change.no_budgets)
        | {one.key: one for one in change.budgets},
        resets={**known.resets, **dict(change.resets)},
    )


def folded(known: Book, changes: Iterable[Change]) -> Book:
    """The book with all changes, the earliest first."""
    for change in changes:
        known = changed(known, change)
    return known


def _without(found: Mapping[K, V], gone: Iterable[K]) -> dict[K, V]:
    left = set(gone)
    return {key: value for key, value in found.items() if key not in left}


def _rooted(accounts: dict[AccountName, Account]) -> dict[AccountName, Account]:
    """Every account below one that exists, and none below itself."""
    found = {
        name: one if name == ROOT or one.parent in accounts else replace(one, parent=ROOT)
        for name, one in accounts.items()
    }
    for name in list(found):
        seen: list[AccountName] = []
        step = name
        while step != ROOT:
            if step in seen:
                found[name] = replace(found[name], parent=ROOT)
                break
            seen.append(step)
            step = found[step].parent
    return found


def _associations(
    known: Book, change: Change, *, accounts: Mapping[AccountName, Account], qos: Mapping[str, Qos]
) -> dict[UserName, tuple[Association, ...]]:
    every = {place(own): own for owned in known.associations.values() for own in owned}
    for gone in change.no_associations:
        every.pop(gone, None)
    every |= {place(own): own for own in change.associations}
    by_user: dict[UserName, tuple[Association, ...]] = {}
    for own in every.values():
        if own.account in accounts and own.user not in change.no_people:
            kept = _without_qos(own, qos) if change.no_qos else own
            by_user[own.user] = (*by_user.get(own.user, ()), kept)
    return by_user


def _without_qos(holder: Holder, qos: Mapping[str, Qos]) -> Holder:
    names = holder.qos
    if names is not None:
        names = tuple(name for name in names if name.lower() in qos)
    default = holder.default_qos if (holder.default_qos or "").lower() in qos else None
    return replace(holder, qos=names, default_qos=default)


# ---------------------------------------------------------------- who may


OPERATOR, ADMINISTRATOR = "Operator", "Administrator"


def may_make(known: Book, change: Change, user: str, *, admin: bool) -> bool:
    """Whether the user may change that: operators nearly all, coordinators below their accounts.

    QOS and the levels of those who are there are administrators' alone (22.05.8); that operators
    make new administrators, as it lets them, is refused. `admin` says that the caller is root,
    the service's user or an administrator.
    """
    level = known.level(user)
    if admin or level == ADMINISTRATOR:
        return True
    if level == OPERATOR:
        return not _needs_administrator(known, change)
    if _own_defaults(known, change, user):
        return True
    own = coordinated(known, user)
    return (
        bool(own)
        and not _needs_operator(known, change)
        and touched(known, change) <= own
        and _gives_what_is_there(known, change)
    )


def _needs_administrator(known: Book, change: Change) -> bool:
    moved = [one for one in change.people if known.level(one.name) != one.admin]
    higher = any(one.name in known.people or one.admin == ADMINISTRATOR for one in moved)
    return bool(change.qos or change.no_qos) or higher


def _needs_operator(known: Book, change: Change) -> bool:
    return bool(
        change.no_accounts
        or change.budgets
        or change.no_budgets
        or change.resets
        or change.qos
        or change.no_qos
        or any(known.level(one.name) != one.admin for one in change.people)
        or any(_renamed(known, one) for one in change.accounts)
    )


def _renamed(known: Book, after: Account) -> bool:
    """Whether what is said about an account is another (22.05.8)."""
    before = known.accounts.get(after.name, after)
    return (before.description, before.organization) != (after.description, after.organization)


def _gives_what_is_there(known: Book, change: Change) -> bool:
    """Whether nobody gets a QOS that the account they are below does not have (22.05.8)."""
    owned = {place(one): one.qos for held in known.associations.values() for one in held}
    given = [(one.account, one.qos, owned.get(place(one))) for one in change.associations]
    for one in change.accounts:
        before = known.accounts.get(one.name)
        given.append((one.parent, one.qos, None if before is None else before.qos))
    return all(
        set(after or ()) - set(before or ()) <= _qos_of(known, above)
        for above, after, before in given
        if after
    )


def _qos_of(known: Book, account: AccountName) -> set[str]:
    return set(allowed_qos(known, Association(user=UserName(""), account=account)))


def _own_defaults(known: Book, change: Change, user: str) -> bool:
    """Whether it does nothing but choose among what the user has already."""
    before = {
        (one.account, one.partition): one for one in known.associations.get(UserName(user), ())
    }
    alone = change == Change(associations=change.associations) and bool(change.associations)
    return alone and all(
        own.user == user
        and (own.account, own.partition) in before
        and _as_before(own, before[own.account, own.partition]) == own
        for own in change.associations
    )


def _as_before(own: Association, before: Association) -> Association:
    """What it was, with the defaults that it has now."""
    return replace(before, default_account=own.default_account, default_qos=own.default_qos)


def coordinated(known: Book, user: str) -> frozenset[AccountName]:
    """Accounts that the user coordinates: those that name them, and all below."""
    return frozenset(
        account
        for account in known.accounts
        if any(user in step.coordinators for step in known.lineage(account))
    )


def touched(known: Book, change: Change) -> frozenset[AccountName]:
    """Accounts in which the change does something; of new ones, and of moved ones, the parent."""
    found = {own.account for own in change.associations}
    found |= {gone[1] for gone in change.no_associations} | set(change.no_accounts)
    for gone in change.no_people:
        found |= {own.account for own in known.associations.get(gone, ())}
    for one in change.accounts:
        before = known.accounts.get(one.name)
        if before is None or before.parent != one.parent:
            found.add(one.parent)
        if before is not None:
            found.add(_ruled(before, one))
    return frozenset(found)


def _ruled(before: Account, after: Account) -> AccountName:
    """The account that has to be coordinated for it: for its limits the one above (22.05)."""
    return after.name if replace(before, coordinators=after.coordinators) == after else after.parent


def default_of(known: Book, user: UserName) -> AccountName | None:
    """The account that is charged where the user names none: the one marked, else the first."""
    owned = known.associations.get(user, ())
    marked = [own.account for own in owned if own.default_account] or [own.account for own in owned]
    return marked[0] if marked else None


def default_holders(known: Book, qos: str) -> list[Association]:
    """Associations whose own default is this QOS; `normal` is everybody's who has none."""
    every = (own for owned in known.associations.values() for own in owned)
    return [own for own in every if (own.default_qos or NORMAL) == qos]
