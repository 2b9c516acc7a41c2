"""Accounts, users' associations and QOS: who may charge what to whom, and which limits rule."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from accounting.budget import Budget
from accounting.ids import OVERHEAD, AccountName, UserName
from accounting.limits import NO_LIMITS, Limits, scaled

ROOT = AccountName("root")
DEFAULT_ACCOUNT = AccountName("default")
USE_PARENT = 0x7FFFFFFF
"""Shares of who stands as the account above does (Slurm's own number for `parent`)."""
NORMAL = "normal"
"""The QOS that Slurm makes by itself."""


class InvalidAccount(ValueError):
    """ESLURM_INVALID_ACCOUNT: the user has no association with this account."""

    slurm_errno = 2045

    def __init__(self, user: str, account: str | None) -> None:
        super().__init__("Invalid account or account/partition combination specified")
        self.user = user
        self.account = account


class InvalidQos(ValueError):
    """ESLURM_INVALID_QOS: no such QOS, or the association may not use it."""

    slurm_errno = 2066

    def __init__(self, user: str, qos: str) -> None:
        super().__init__("Invalid qos specification")
        self.user = user
        self.qos = qos


class Enforce(StrEnum):
    """What is insisted on (Slurm's AccountingStorageEnforce)."""

    ASSOCIATIONS = "associations"
    LIMITS = "limits"
    QOS = "qos"
    SAFE = "safe"


_WITH_LIMITS = frozenset({Enforce.ASSOCIATIONS, Enforce.LIMITS})
ENFORCED: Mapping[str, frozenset[Enforce]] = {
    "associations": frozenset({Enforce.ASSOCIATIONS}),
    "limits": _WITH_LIMITS,
    "qos": frozenset({Enforce.ASSOCIATIONS, Enforce.QOS}),
    "safe": _WITH_LIMITS | {Enforce.SAFE},
    "wckeys": frozenset({Enforce.ASSOCIATIONS}),
    "all": frozenset(Enforce),
    "nojobs": frozenset(),
    "nosteps": frozenset(),
}
"""What each word of AccountingStorageEnforce brings with it; the last two only concern storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A node of the account tree; names ignore case. `qos` None takes the parent's."""

    name: AccountName
    parent: AccountName = ROOT
    description: str = ""
    organization: str = ""
    fairshare: int = 1
    """Shares among siblings, or USE_PARENT."""
    qos: tuple[str, ...] | None = None
    default_qos: str | None = None
    priority: int | None = None
    comment: str = ""
    coordinators: tuple[UserName, ...] = ()
    """Users who may change what is below the account."""
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """A user's leave to charge an account, in one partition or (None) in all of them."""

    user: UserName
    account: AccountName
    partition: str | None = None
    fairshare: int = 1
    qos: tuple[str, ...] | None = None
    default_qos: str | None = None
    default_account: bool = False
    priority: int | None = None
    comment: str = ""
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A quality of service; `flags` as Slurm spells them (`DenyOnLimit`)."""

    name: str
    description: str = ""
    priority: int = 0
    flags: frozenset[str] = frozenset()
    usage_factor: float = 1.0
    """Multiplies the use that is charged."""
    limit_factor: float | None = None
    """Multiplies the TRES limits of the association."""
    usage_threshold: float | None = None
    """Fair share below which it cannot be used."""
    preempt: tuple[str, ...] = ()
    """QOS whose jobs its own may push out."""
    preempt_mode: str = "cluster"
    grace_time: int = 0
    """Seconds between the warning and being pushed out."""
    exempt_time: int | None = None
    """Seconds that a job runs before it may be pushed out."""
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What is known of a user beside their associations."""

    name: UserName
    admin: str = "None"
    """`None`, `Operator` or `Administrator`."""
    uid: int | None = None
    """Where the host knows the user."""
    wckeys: tuple[str, ...] = ()
    default_wckey: str = ""


class LevelKind(StrEnum):
    """Where a limit was found; it decides whether the reason is a QOS… or an Assoc… one."""

    QOS = "qos"
    PARTITION = "partition"
    """The partition's own QOS."""
    USER = "user"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Level:
    """One place that may set limits."""

    kind: LevelKind
    name: str
    limits: Limits


Found = tuple[Level, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """Under which account and QOS a job is taken in, and the levels whose limits it meets."""

    user: UserName
    account: AccountName
    qos: Qos
    others: tuple[Qos, ...]
    """Further QOS that were asked for, the higher priority first."""
    levels: tuple[Level, ...]
    """In Slurm's order of search: the partition's QOS, the job's (first where it says
    OverPartQOS), the user's association, its accounts upwards; empty unless limits are enforced.
    """
    denies: bool = False
    """Whether a job that is too large by itself is refused at once (DenyOnLimit)."""

    def limit(self, name: str, tres: str | None = None) -> Found | None:
        """The first level that sets the limit, which rules, with its value."""
        return next(self.each(name, tres), None)

    def each(self, name: str, tres: str | None = None) -> Iterator[Found]:
        """Every level that sets the limit, as group limits are checked at all of them."""
        for level in self.levels:
            if (value := level.limits.value(name, tres)) is not None:
                yield level, value


@dataclass(frozen=True, slots=True)
class Book:
    """All accounts, associations and QOS of a cluster; made by `book`, which checks them."""

    accounts: Mapping[AccountName, Account]
    associations: Mapping[UserName, tuple[Association, ...]]
    qos: Mapping[str, Qos]
    enforce: frozenset[Enforce] = frozenset()
    default_account: AccountName = DEFAULT_ACCOUNT
    """Charged where no association is known, none is enforced and no account was asked for."""
    people: Mapping[UserName, Person] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """By `scope:name`."""
    resets: Mapping[str, int] = field(default_factory=dict)
    """When use began to count anew, by `accounting.reset`'s keys."""

    def level(self, user: str) -> str:
        """The user's admin level."""
        found = self.people.get(UserName(user))
        return "None" if found is None else found.admin

    def factor(self, qos: str) -> float:
        """What use under the QOS is multiplied by."""
        grade = self.qos.get(qos)
        return 1.0 if grade is None else grade.usage_factor

    @property
    def qos_ids(self) -> dict[str, int]:
        """Numbers of QOS by name, in the order in which they were made."""
        return {name: number for number, name in enumerate(self.qos, start=1)}

    def lineage(self, account: AccountName) -> Iterator[Account]:
        """The account and those above it up to root; nothing for an unknown one."""
        step = self.accounts.get(account)
        while step is not None:
            yield step
            step = None if step.name == ROOT else self.accounts[step.parent]


def book(
    accounts: Iterable[Account] = (),
    associations: Iterable[Association] = (),
    *,
    qos: Iterable[Qos] = (),
    enforce: Iterable[str] = (),
    default_account: str = DEFAULT_ACCOUNT,
) -> Book:
    """The checked book; account `root` and QOS `normal` are added as Slurm has them.

    `enforce` takes the words of ENFORCED. Raises ValueError naming what does not hold together.
    """
    tree = {ROOT: Account(name=ROOT, qos=(NORMAL,))}
    for account in accounts:
        _add_account(tree, account)
    by_user: dict[UserName, tuple[Association, ...]] = {}
    for association in associations:
        _add_association(by_user, association)
    grades = {NORMAL: Qos(name=NORMAL, description="Normal QOS default")}
    for grade in qos:
        grades[grade.name.lower()] = replace(grade, name=grade.name.lower())
    made = Book(
        accounts=tree,
        associations=by_user,
        qos=grades,
        enforce=frozenset().union(*map(_enforced, enforce)),
        default_account=_account_name(default_account),
    )
    _check_tree(made)
    _check_holders(made)
    return made


def standing(
    known: Book,
    user: UserName,
    *,
    account: str | None = None,
    partition: str | None = None,
    qos: str | None = None,
) -> Standing:
    """How a user's job stands that asks for this account and these QOS (several with commas).

    Raises InvalidAccount or InvalidQos, with Slurm's texts, for what is enforced and not allowed;
    of several QOS the one with the highest priority is taken (Slurm 25.11).
    """
    own = association(known, user, account=account, partition=partition)
    if own is None:
        name = lower(account) if account else known.default_account
        if Enforce.ASSOCIATIONS in known.enforce or name == OVERHEAD:
            raise InvalidAccount(user, account)
        own = Association(user=user, account=name)
    grades = _grades(known, own, qos)
    return Standing(
        user=user,
        account=own.account,
        qos=grades[0],
        others=grades[1:],
        levels=_levels(known, own, grades[0]),
        denies="DenyOnLimit" in grades[0].flags,
    )


def _levels(known: Book, association: Association, qos: Qos) -> tuple[Level, ...]:
    if Enforce.LIMITS not in known.enforce:
        return ()
    above = (
        Level(LevelKind.ACCOUNT, step.name, scaled(step.limits, qos.limit_factor))
        for step in known.lineage(association.account)
    )
    return (
        Level(LevelKind.QOS, qos.name, qos.limits),
        Level(LevelKind.USER, association.user, scaled(association.limits, qos.limit_factor)),
        *above,
    )


def in_partition(known: Book, stands: Standing, qos: str | None) -> Standing:
    """The standing in a partition that has a QOS of its own; that one's limits rule first."""
    wider = known.qos.get((qos or "").lower())
    if wider is None or wider.name == stands.qos.name or not stands.levels:
        return stands
    own, more = stands.levels[0], Level(LevelKind.PARTITION, wider.name, wider.limits)
    first = (own, more) if "OverPartQOS" in stands.qos.flags else (more, own)
    denies = stands.denies or "DenyOnLimit" in wider.flags
    return replace(stands, levels=(*first, *stands.levels[1:]), denies=denies)


def association(
    known: Book, user: UserName, *, account: str | None, partition: str | None
) -> Association | None:
    """The user's association with the account, the one of the partition before the general one."""
    owned = known.associations.get(user, ())
    name = account.lower() if account else _default_account(owned)
    return next(
        (
            own
            for where in dict.fromkeys((partition, None))
            for own in owned
            if own.account == name and own.partition == where
        ),
        None,
    )


def _default_account(owned: tuple[Association, ...]) -> AccountName | None:
    """The one marked, else the first, which Slurm marks when it is added."""
    marked = [own.account for own in owned if own.default_account] or [own.account for own in owned]
    return marked[0] if marked else None


def _grades(known: Book, association: Association, asked: str | None) -> tuple[Qos, ...]:
    allowed = allowed_qos(known, association)
    names = asked.lower().split(",") if asked else [default_qos(known, association)]
    enforced = Enforce.QOS in known.enforce
    for name in names:
        if not name or (enforced and not (name in known.qos and name in allowed)):
            raise InvalidQos(association.user, name)
    found = [known.qos.get(name, Qos(name=name)) for name in dict.fromkeys(names)]
    return tuple(sorted(found, key=lambda grade: -grade.priority))


def allowed_qos(known: Book, association: Association) -> tuple[str, ...]:
    """What the association may use: its own list, else the nearest one above it."""
    lists = (association.qos, *(step.qos for step in known.lineage(association.account)))
    found = next((names for names in lists if names is not None), (NORMAL,))
    return tuple(name.lower() for name in found)


def chosen_qos(known: Book, association: Association) -> str:
    """The nearest default that somebody set; empty without one."""
    steps = known.lineage(association.account)
    defaults = (association.default_qos, *(step.default_qos for step in steps))
    return next((name.lower() for name in defaults if name), "")


def default_qos(known: Book, association: Association) -> str:
    """The nearest default; without one the only QOS allowed, else `normal`."""
    allowed = allowed_qos(known, association)
    alone = allowed[0] if len(allowed) == 1 else NORMAL
    return chosen_qos(known, association) or alone


def lower(account: str) -> AccountName:
    """The account's name as it is kept: Slurm lets names of accounts ignore case."""
    return AccountName(account.lower())


def _enforced(word: str) -> frozenset[Enforce]:
    if word.lower() not in ENFORCED:
        raise ValueError(f"enforce {word!r}: no such word, try one of {', '.join(ENFORCED)}")
    return ENFORCED[word.lower()]


def _account_name(text: str) -> AccountName:
    name = lower(text)
    if name == OVERHEAD:
        raise ValueError(f"account {text!r} is kept for idle machines: choose another name")
    return name


def _add_account(tree: dict[AccountName, Account], account: Account) -> None:
    name = _account_name(account.name)
    if name in tree and name != ROOT:
        raise ValueError(f"account {name!r} is given twice")
    tree[name] = replace(account, name=name, parent=lower(account.parent))


def _add_association(
    by_user: dict[UserName, tuple[Association, ...]], association: Association
) -> None:
    new = replace(association, account=lower(association.account))
    owned = by_user.get(new.user, ())
    label = f"association of user {new.user!r} with account {new.account!r}"
    if (new.account, new.partition) in {(own.account, own.partition) for own in owned}:
        raise ValueError(f"{label} is given twice")
    marked = {own.account for own in owned if own.default_account}
    if new.default_account and marked - {new.account}:
        raise ValueError(f"{label} is a second default account beside {', '.join(marked)!r}")
    by_user[new.user] = (*owned, new)


def _check_tree(made: Book) -> None:
    for account in made.accounts.values():
        if account.parent not in made.accounts:
            raise ValueError(f"account {account.name!r}: no account {account.parent!r} to be below")
    for account in made.accounts.values():
        seen: set[AccountName] = set()
        for step in made.lineage(account.name):
            if step.name in seen:
                raise ValueError(f"account {account.name!r} is below itself")
            seen.add(step.name)


def _check_holders(made: Book) -> None:
    for account in made.accounts.values():
        _check_qos(made, account, f"account {account.name!r}")
    for owned in made.associations.values():
        for own in owned:
            label = f"user {own.user!r}, account {own.account!r}"
            if own.account not in made.accounts:
                raise ValueError(f"{label}: no such account")
            _check_qos(made, own, label)


def _check_qos(made: Book, holder: Account | Association, label: str) -> None:
    for name in (*(holder.qos or ()), *filter(None, [holder.default_qos])):
        if name.lower() not in made.qos:
            raise ValueError(f"{label}: no such QOS {name!r}")
