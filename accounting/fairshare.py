"""Fair share: usage that fades with time, and each user's factor by Fair Tree (Slurm 19.05)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from accounting.assoc import ROOT, USE_PARENT, Book

INFINITE = float("inf")
Key = tuple[str, str]
"""Account and user; the user is empty for the account itself."""


@dataclass(slots=True)
class Branch:
    """An account or user among its siblings."""

    key: Key
    shares: int
    below: "list[Branch]" = field(default_factory=list)
    usage: float = 0.0

    @property
    def is_user(self) -> bool:
        return bool(self.key[1])


@dataclass(frozen=True, slots=True)
class Standing:
    """How one branch stands: its part of its siblings' shares and usage, and a user's factor."""

    usage: float
    norm_shares: float
    norm_usage: float
    effective: float
    """Its part of what its siblings used."""
    level: float
    """Shares over use among siblings; infinite where nothing was used."""
    factor: float | None = None


def tree(known: Book) -> Branch:
    """The tree of accounts with their users, without use; several partitions are one user."""
    root = Branch((ROOT, ""), known.accounts[ROOT].fairshare)
    branches = {ROOT: root}
    for name, account in known.accounts.items():
        if name != ROOT:
            branches[name] = Branch((name, ""), account.fairshare)
    for name, account in known.accounts.items():
        if name != ROOT:
            branches[account.parent].below.append(branches[name])
    seen: set[Key] = set()
    for owned in known.associations.values():
        for own in owned:
            key = own.account, own.user
            if key not in seen:
                seen.add(key)
                branches[own.account].below.append(Branch(key, own.fairshare))
    return root


def fill(branch: Branch, used: Mapping[Key, float]) -> float:
    """Sets the usage of a tree from that of its users, and returns the whole."""
    own = used.get(branch.key, 0.0)
    branch.usage = own + sum(fill(child, used) for child in branch.below)
    return branch.usage


def stand(root: Branch) -> dict[Key, Standing]:
    """Everybody's standing in a tree whose usage is filled in."""
    whole = root.usage
    found = {root.key: Standing(whole, 0.0, 1.0 if whole else 0.0, 1.0 if whole else 0.0, INFINITE)}
    _walk(root, whole, found)
    users = sum(1 for key in found if key[1])
    ranking = _Ranking(found, users, left=users)
    ranking.walk(list(_peers(root)))
    return {key: replace(one, factor=ranking.factors.get(key)) for key, one in found.items()}


def _peers(branch: Branch) -> Iterator[Branch]:
    """What stands side by side below it: of accounts with the shares of theirs what they have."""
    for child in branch.below:
        if child.shares == USE_PARENT and not child.is_user:
            yield from _peers(child)
        else:
            yield child


def _walk(branch: Branch, whole: float, found: dict[Key, Standing]) -> None:
    peers = list(_peers(branch))
    shares = sum(one.shares for one in peers if one.shares != USE_PARENT)
    usage, above = sum(one.usage for one in peers), found[branch.key]

    def note(one: Branch) -> None:
        used = one.usage / usage if usage else 0.0
        total = one.usage / whole if whole else 0.0
        if one.shares == USE_PARENT:
            part, level = above.norm_shares, above.level
        else:
            part = one.shares / shares if shares else 0.0
            level = part / used if used else INFINITE
        found[one.key] = Standing(one.usage, part, total, used, level)
        if one.shares == USE_PARENT:
            for child in one.below:
                note(child)
        else:
            _walk(one, whole, found)

    for child in branch.below:
        note(child)


@dataclass(slots=True)
class _Ranking:
    """A walk, depth first, from the branch that used least of its share (Slurm's fair_tree)."""

    found: Mapping[Key, Standing]
    users: int
    left: int
    """The rank of the next user who is on a level with nobody before."""
    rank: int = 0
    factors: dict[Key, float] = field(default_factory=dict)

    def walk(self, siblings: list[Branch], *, tied: bool = False) -> None:
        """Ranks users; `tied` says that the first is on a level with whoever came before."""
        order = sorted(siblings, key=lambda one: (-self._level(one), not one.is_user))
        for _, same in groupby(order, key=self._level):
            group = list(same)
            for one in (one for one in group if one.is_user):
                self._give(one, tied=tied)
                tied = True
            merged = [child for one in group if not one.is_user for child in _peers(one)]
            if merged:
                self.walk(merged, tied=tied)
            tied = False

    def _give(self, user: Branch, *, tied: bool) -> None:
        if not tied:
            self.rank = self.left
        self.factors[user.key] = self.rank / self.users
        self.left -= 1

    def _level(self, one: Branch) -> float:
        """Users with the shares of their account come first in it."""
        return INFINITE if one.is_user and one.shares == USE_PARENT else self.found[one.key].level
