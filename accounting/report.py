"""Lines of reports over use: by account and user, by QOS, the greatest users, sizes of jobs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accounting.assoc import ROOT, Account, Book
from accounting.ids import AccountName

Amounts = dict[str, int]
"""TRES-seconds by name."""
SIZES = (50, 250, 500, 1000)
"""Where one group of sizes ends and the next begins, unless other ones are asked for (25.11)."""
MOST_CPUS = 2**32 - 1
Group = tuple[int, int]
"""Sizes of jobs, the first and the last."""


def groups_of(bounds: Sequence[int]) -> list[Group]:
    """What lies between bounds, in their order; 0 as an end is past all numbers (22.05)."""
    ends = [(bound - 1) % (MOST_CPUS + 1) for bound in bounds]
    return [*zip((0, *bounds), (*ends, MOST_CPUS), strict=True)]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: whose use, and how much; `depth` in the account tree."""

    account: str
    user: str = ""
    qos: str = ""
    wckey: str = ""
    depth: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)


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


def below(lines: Iterable[Line], accounts: Collection[str]) -> list[Line]:
    """Of lines as `by_account` has them those of these accounts and of all below them."""
    found: list[Line] = []
    base: int | None = None
    for line in lines:
        if base is not None and line.depth <= base:
            base = None
        if base is None and line.account.lower() in accounts and not (line.user or line.qos):
            base = line.depth
        if base is not None:
            found.append(replace(line, depth=line.depth - base))
    return found


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


def by_user(used: Mapping[tuple[str, str, str], int], *, tres: str) -> list[Line]:
    """Users with each of their accounts; who used most of a TRES comes first."""
    found = [
        Line(account, user=user, amounts=amounts)
        for account, users in _grouped(used).items()
        for user, amounts in users.items()
    ]
    found.sort(key=lambda line: (line.user, line.account))
    return sorted(found, key=lambda line: -line.amounts.get(tres, 0))


def by_wckey(used: Mapping[tuple[str, str, str], int]) -> list[Line]:
    """Wckeys, each with its users behind it; `used` is by wckey, user and TRES."""
    lines: list[Line] = []
    for key, users in sorted(_grouped(used).items()):
        lines.append(Line("", wckey=key, amounts=_sum(users.values())))
        lines += [Line("", user=user, wckey=key, amounts=users[user]) for user in sorted(users)]
    return lines


def top(lines: Sequence[Line], tres: str, *, most: int, merged: bool) -> list[Line]:
    """Who used most of a TRES; `merged` puts a user's accounts together."""
    if merged:
        users: dict[str, list[Line]] = {}
        for line in lines:
            users.setdefault(line.user, []).append(line)
        lines = [
            Line(
                ", ".join(sorted(one.account for one in own)),
                user=user,
                amounts=_sum(one.amounts for one in own),
            )
            for user, own in users.items()
        ]
    return sorted(lines, key=lambda line: -line.amounts.get(tres, 0))[:most]


@dataclass(frozen=True, slots=True)
class Shown:
    """How job sizes are put together: below which accounts (empty: root), and how deep."""

    accounts: tuple[str, ...] = ()
    children: bool = False
    """The accounts just below those, instead of those."""
    flat: bool = False
    """Each account by itself."""

    def name(self, book: Book, account: AccountName) -> str | None:
        """Under which name the account's use is shown; None if it is not."""
        if self.flat:
            return account if not self.accounts or account in self.accounts else None
        line = [step.name for step in book.lineage(account)] or [account, ROOT]
        tops = self.accounts or (ROOT,)
        at = next((place for place in reversed(range(len(line))) if line[place] in tops), None)
        if at is None or (self.children and at == 0):
            return None
        return line[at - 1] if self.children else line[at]


def sizes(
    book: Book, used: Mapping[tuple[str, str, int], int], groups: Sequence[Group], *, shown: Shown
) -> dict[tuple[str, str], tuple[int, ...]]:
    """Use by account, wckey and number of cpus of a job, in groups of sizes.

    A job counts in each group that has its size: they may overlap (22.05).
    """
    found: dict[tuple[str, str], list[int]] = {}
    for (account, wckey, cpus), amount in used.items():
        name = shown.name(book, AccountName(account))
        if name is None:
            continue
        own = found.setdefault((name, wckey), [0] * len(groups))
        for place, (low, high) in enumerate(groups):
            own[place] += amount if low <= cpus <= high else 0
    return {key: tuple(found[key]) for key in sorted(found)}
