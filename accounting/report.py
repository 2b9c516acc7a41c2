"""Lines of reports over use: by account and user, by QOS, the greatest users, sizes of jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accounting.assoc import ROOT, Account, Book
from accounting.ids import AccountName

Amounts = dict[str, int]
"""TRES-seconds by name."""
SIZES = (50, 250, 500, 1000)
"""Where one group of sizes ends and the next begins, unless other ones are asked for (25.11)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: whose use, and how much; `depth` in the account tree."""

    account: str
    user: str = ""
    qos: str = ""
    depth: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sized:
    """One line of job sizes: an account with its cpu-seconds, or jobs, by group of sizes."""

    account: str
    amounts: tuple[int, ...]


def _sum(found: Iterable[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for amounts in found:
        for name, count in amounts.items():
            total[name] = total.get(name, 0) + count
    return total


def _grouped(
    used: Mapping[tuple[str, str, str], int],
) -> dict[AccountName, dict[str, Amounts]]:
    """By account, then by user (or QOS), then by TRES."""
    found: dict[AccountName, dict[str, Amounts]] = {}
    for (account, other, tres), amount in used.items():
        own = found.setdefault(AccountName(account), {}).setdefault(other, {})
        own[tres] = own.get(tres, 0) + amount
    return found


def by_account(
    book: Book, used: Mapping[tuple[str, str, str], int], *, graded: bool = False
) -> list[Line]:
    """Accounts, each with all below it and its users (or QOS) behind it, as the tree has them.

    `used` is by account, user (or QOS) and TRES. Accounts that are gone stand below root.
    """
    own = _grouped(used)
    children: dict[AccountName, list[AccountName]] = {}
    for name in {*book.accounts, *own}:
        known = book.accounts.get(name, Account(name=name))
        if name != ROOT:
            children.setdefault(known.parent, []).append(name)
    return _Tree(own, children, graded).below(ROOT, 0)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Accounts with what was used in each."""

    own: Mapping[AccountName, Mapping[str, Amounts]]
    children: Mapping[AccountName, list[AccountName]]
    graded: bool

    def below(self, account: AccountName, depth: int) -> list[Line]:
        """The account's line, its users', those of the accounts below; none without use."""
        users = self._users(account, depth)
        below = [self.below(child, depth + 1) for child in sorted(self.children.get(account, ()))]
        parts = [line.amounts for line in users] + [lines[0].amounts for lines in below if lines]
        if not parts:
            return []
        whole = Line(account, depth=depth, amounts=_sum(parts))
        return [whole, *users, *(line for lines in below for line in lines)]

    def _users(self, account: AccountName, depth: int) -> list[Line]:
        mine = self.own.get(account, {})
        return [
            Line(
                account,
                user="" if self.graded else name,
                qos=name if self.graded else "",
                depth=depth + 1,
                amounts=mine[name],
            )
            for name in sorted(mine)
        ]


def by_user(used: Mapping[tuple[str, str, str], int]) -> list[Line]:
    """Users with each of their accounts, by name."""
    found = [
        Line(account, user=user, amounts=amounts)
        for account, users in _grouped(used).items()
        for user, amounts in users.items()
    ]
    return sorted(found, key=lambda line: (line.user, line.account))


def top(lines: Sequence[Line], tres: str, *, most: int, merged: bool) -> list[Line]:
    """Who used most of a TRES; `merged` puts a user's accounts together."""
    if merged:
        users: dict[str, list[Line]] = {}
        for line in lines:
            users.setdefault(line.user, []).append(line)
        lines = [
            Line(
                ",".join(sorted(one.account for one in own)),
                user=user,
                amounts=_sum(one.amounts for one in own),
            )
            for user, own in users.items()
        ]
    return sorted(lines, key=lambda line: -line.amounts.get(tres, 0))[:most]


def sizes(
    book: Book, used: Mapping[tuple[str, int], int], bounds: Sequence[int], *, flat: bool
) -> list[Sized]:
    """Use by account and number of cpus of a job, in groups that begin at 0 and at each bound.

    Accounts below root with all that is below them; `flat` each by itself.
    """
    found: dict[str, list[int]] = {}
    for (account, cpus), amount in used.items():
        name = account if flat else _first(book, AccountName(account))
        own = found.setdefault(name, [0] * (len(bounds) + 1))
        own[sum(cpus >= bound for bound in bounds)] += amount
    return [Sized(name, tuple(found[name])) for name in sorted(found)]


def _first(book: Book, account: AccountName) -> str:
    """The account's ancestor just below root, or itself."""
    line = [step.name for step in book.lineage(account) if step.name != ROOT]
    return line[-1] if line else account
