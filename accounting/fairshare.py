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
    factors = _ranked(root, found, users)
    return {key: replace(one, factor=factors.get(key)) for key, one in found.items()}


def _walk(branch: Branch, whole: float, found: dict[Key, Standing]) -> None:
    own = [child for child in branch.below if child.shares != USE_PARENT]
    shares = sum(child.shares for child in own)
    usage = sum(child.usage for child in own)
    for child in branch.below:
        if child.shares == USE_PARENT:  # stands as the account above does
            found[child.key] = replace(found[branch.key], usage=child.usage)
            continue
        part = child.shares / shares if shares else 0.0
        used = child.usage / usage if usage else 0.0
        level = part / used if used else INFINITE
        total = child.usage / whole if whole else 0.0
        found[child.key] = Standing(child.usage, part, total, used, level)
        _walk(child, whole, found)


def _ranked(root: Branch, found: Mapping[Key, Standing], users: int) -> dict[Key, float]:
    """Factors by a walk, depth first, from the branch that used least of its share."""
    groups = list(_rank(root.below, found))
    factors: dict[Key, float] = {}
    rank = users
    for group in groups:
        factors |= {one.key: rank / users for one in group}
        rank -= len(group)
    return factors


def _rank(siblings: list[Branch], found: Mapping[Key, Standing]) -> Iterator[list[Branch]]:
    """Users of one level together; accounts of one level are merged before going down."""

    def level(one: Branch) -> float:
        return found[one.key].level

    order = sorted(siblings, key=lambda one: (-level(one), not one.is_user))
    for _, same in groupby(order, key=level):
        group = list(same)
        users = [one for one in group if one.is_user]
        if users:
            yield users
        merged = [child for one in group if not one.is_user for child in one.below]
        if merged:
            yield from _rank(merged, found)
