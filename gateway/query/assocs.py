"""Associations as Slurm's tools list them: the account tree with its users, numbered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from accounting.assoc import (
    ROOT,
    Account,
    Association,
    Book,
    allowed_qos,
    chosen_qos,
)
from accounting.ids import AccountName, UserName
from accounting.limits import NO_LIMITS, Limits
from broker.model.job import Job
from gateway.query.context import Context


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the tree: an account, or a user in it."""

    id: int
    depth: int
    account: Account
    user: Association | None
    qos: tuple[str, ...]
    default_qos: str
    limits: Limits = NO_LIMITS
    """Its own, and those per job and user that it has from above."""
    parent: int = 0
    """Number of the one above; 0 of root."""
    span: tuple[int, int] = (0, 0)
    """Where it begins and ends when the tree is walked, the latest first (LFT and RGT)."""
    qos_ids: tuple[int, ...] = ()

    @property
    def shares(self) -> int:
        return self.account.fairshare if self.user is None else self.user.fairshare


@dataclass(slots=True)
class _Kept:
    """Ids of the book that was asked last."""

    book: Book | None = None
    ids: dict[tuple[str, str, str | None], int] = field(default_factory=dict)


_KEPT = _Kept()


def ids_of(book: Book) -> dict[tuple[str, str, str | None], int]:
    """Numbers by account, user and partition: root and its users first, as Slurm makes them."""
    if _KEPT.book is not book:
        _KEPT.ids, _KEPT.book = _numbered(book), book
    return _KEPT.ids


def _numbered(book: Book) -> dict[tuple[str, str, str | None], int]:
    owned = [own for several in book.associations.values() for own in several]
    roots = [own for own in owned if own.account == ROOT]
    keys: list[tuple[str, str, str | None]] = [(ROOT, "", None)]
    keys += [(own.account, own.user, own.partition) for own in roots]
    keys += [(name, "", None) for name in book.accounts if name != ROOT]
    keys += [(own.account, own.user, own.partition) for own in owned if own.account != ROOT]
    return {key: number for number, key in enumerate(keys, start=1)}


def association_id(job: Job, ctx: Context) -> int:
    """The number of the association that the job is charged to; 0 where there is none."""
    ids = ids_of(ctx.site.book)
    for partition in (*job.partitions, None):
        found = ids.get((job.account, job.owner.user, partition))
        if found is not None:
            return found
    return 0


def qos_id(job: Job, ctx: Context) -> int:
    """The number of the job's QOS; 0 where it has none."""
    return ctx.site.book.qos_ids.get(job.qos, 0)


def tree(book: Book) -> list[Row]:
    """The whole tree, depth first: an account, its users, the accounts below it, by name."""
    children: dict[AccountName, list[Account]] = {}
    for account in book.accounts.values():
        if account.name != ROOT:
            children.setdefault(account.parent, []).append(account)
    users: dict[AccountName, list[Association]] = {}
    for own in (own for several in book.associations.values() for own in several):
        users.setdefault(own.account, []).append(own)
    root = book.accounts[ROOT]
    rows = list(_below(book, root, depth=0, below=(children, users), above=NO_LIMITS))
    return _spanned(rows, book.qos_ids)


def _spanned(rows: list[Row], numbers: Mapping[str, int]) -> list[Row]:
    """With what the nested sets of slurmdbd's table have (22.05)."""
    below: dict[int, list[int]] = {}
    parents: dict[int, int] = {}
    line: list[int] = []
    for row in rows:
        line[row.depth :] = [row.id]
        parents[row.id] = line[-2] if row.depth else 0
        below.setdefault(parents[row.id], []).append(row.id)
    spans: dict[int, tuple[int, int]] = {}
    _walk(0, below, spans, last=0)
    return [
        replace(
            row,
            parent=parents[row.id],
            span=spans[row.id],
            qos_ids=tuple(sorted(numbers[name] for name in row.qos if name in numbers)),
        )
        for row in rows
    ]


def _walk(
    above: int, below: Mapping[int, list[int]], spans: dict[int, tuple[int, int]], *, last: int
) -> int:
    """The last place that was given."""
    for one in sorted(below.get(above, ()), reverse=True):
        first = last + 1
        last = _walk(one, below, spans, last=first) + 1
        spans[one] = first, last
    return last


def _inherited(own: Limits, above: Limits) -> Limits:
    """Limits of groups hold where they are set, others for all below that set none themselves."""
    found: dict[str, Any] = {}
    for name in FROM_ABOVE:
        mine, theirs = getattr(own, name), getattr(above, name)
        if isinstance(theirs, Mapping):
            found[name] = {**theirs, **mine}
        elif mine is None:
            found[name] = theirs
    return replace(own, **found)


FROM_ABOVE = tuple(one.name for one in fields(Limits) if one.name.startswith("max_"))


_Below = tuple[dict[AccountName, list[Account]], dict[AccountName, list[Association]]]


def _below(
    book: Book, account: Account, *, depth: int, below: _Below, above: Limits
) -> Iterator[Row]:
    children, users = below
    ids = ids_of(book)
    of_account = Association(user=UserName(""), account=account.name)
    grades = tuple(sorted(allowed_qos(book, of_account)))
    limits = _inherited(account.limits, above)
    number, default = ids[account.name, "", None], account.default_qos or ""
    yield Row(number, depth, account, None, grades, default, limits)
    for own in sorted(users.get(account.name, []), key=lambda one: (one.user, one.partition or "")):
        grades = tuple(sorted(allowed_qos(book, own)))
        number = ids[own.account, own.user, own.partition]
        theirs = _inherited(own.limits, limits)
        yield Row(number, depth + 1, account, own, grades, chosen_qos(book, own), theirs)
    for child in sorted(children.get(account.name, []), key=lambda one: one.name):
        yield from _below(book, child, depth=depth + 1, below=below, above=limits)
