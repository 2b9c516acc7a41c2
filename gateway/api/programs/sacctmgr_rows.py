"""What `sacctmgr show` is asked for, and the records that its conditions allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accounting.assoc import Book, Qos
from accounting.change import default_of
from broker.model.events import BookChanged
from broker.world import Snapshot
from gateway.api.programs.reading import Options
from gateway.config.settings import Config
from gateway.query import managed
from gateway.query.assocs import Row
from gateway.query.context import Context
from gateway.query.managed import Owned, User
from gateway.query.privacy import SEES_ALL, Viewer


@dataclass(frozen=True, slots=True)
class Asked:
    """One `show`: who asks, the conditions, the names, the columns."""

    snap: Snapshot
    ctx: Context
    options: Options
    admin: bool
    """Whether they may do all; of what is only shown operators may, too."""
    tres: Mapping[str, int]
    settings: Config | None = None
    host: str = ""
    conditions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    viewer: Viewer = SEES_ALL
    names: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    format: str = ""
    changes: Sequence[BookChanged] = ()
    """What was changed ever, where that is asked for."""
    strangers: Sequence[str] = ()
    """Users whom the host does not know, where problems are asked for."""

    def with_changes(self, changes: Sequence[BookChanged]) -> "Asked":
        return replace(self, changes=changes)

    @property
    def book(self) -> Book:
        return self.ctx.site.book

    @property
    def associated(self) -> bool:
        return self.options.has("associations") or "withassoc" in self.flags

    def wants(self, key: str, value: str) -> bool:
        """Whether a condition allows the value; one that was not set allows any."""
        chosen = self.conditions.get(key)
        return chosen is None or value.lower() in chosen


def here(asked: Asked) -> bool:
    return asked.wants("cluster", asked.ctx.site.cluster)


def rows_of(asked: Asked) -> list[Row]:
    """Associations that the conditions allow."""
    if not here(asked):
        return []
    users = "user" in asked.conditions
    return [
        row
        for row in _own_rows(asked)
        if _wants_account(asked, row)
        and (row.user is not None or not users)
        and asked.wants("user", row.user.user if row.user else "")
        and asked.wants("id", str(row.id))
        and _allows(asked, row)
    ]


def _own_rows(asked: Asked) -> list[Row]:
    """All of them, as the flags have them."""
    rows = [row for row in managed.rows_of(asked.ctx) if _sees(asked, row)]
    if "onlydefaults" in asked.flags:
        owned = asked.book.associations
        rows = [
            row
            for row in rows
            if row.user is not None
            and row.user.account == default_of(asked.book, row.user.user)
            and row.user in owned[row.user.user]
        ]
    if not asked.flags.isdisjoint(("wopinfo", "woparentinfo")):
        own = [(row, managed.holder(row)) for row in rows]
        rows = [replace(row, qos=one.qos or (), limits=one.limits) for row, one in own]
    return rows


def _sees(asked: Asked, row: Row) -> bool:
    return asked.viewer.association(row.account.name, row.user.user if row.user else "")


def _wants_account(asked: Asked, row: Row) -> bool:
    if "withsubaccounts" not in asked.flags:
        return asked.wants("account", row.account.name)
    return any(asked.wants("account", one.name) for one in asked.book.lineage(row.account.name))


def _allows(asked: Asked, row: Row) -> bool:
    """By its QOS, its partition and the account above."""
    chosen = asked.conditions.get("qos")
    partition = (row.user.partition or "") if row.user else ""
    return (
        (chosen is None or not chosen.isdisjoint(row.qos))
        and asked.wants("partition", partition)
        and asked.wants("parent", managed.parent_of(row))
        and asked.wants("defaultqos", row.default_qos)
    )


def users_of(asked: Asked) -> list[User]:
    level = asked.conditions.get("adminlevel")
    found = managed.user_records(
        rows_of(asked), asked.book, associated=asked.associated, alone=_alone(asked)
    )
    return [
        user
        for user in found
        if asked.viewer.user(user.name)
        and (level is None or user.admin.lower() in level)
        and asked.wants("defaultaccount", user.account)
    ]


def accounts_of(asked: Asked) -> list[Owned]:
    rows = [
        row
        for row in rows_of(asked)
        if asked.viewer.account(row.account.name)
        and (asked.associated or row.user is None)
        and asked.wants("description", row.account.description)
        and asked.wants("organization", row.account.organization)
    ]
    return managed.account_records(rows, associated=asked.associated)


def qos_of(asked: Asked) -> list[Qos]:
    ids = asked.book.qos_ids
    return [
        qos
        for name, qos in asked.book.qos.items()
        if asked.wants("qos", qos.name)
        and asked.wants("id", str(ids[name]))
        and asked.wants("description", qos.description)
        and asked.wants("preemptmode", qos.preempt_mode)
    ]


def tres_of(asked: Asked) -> list[tuple[str, int]]:
    found = sorted(asked.tres.items(), key=lambda pair: pair[1])
    return [
        (name, number)
        for name, number in found
        if asked.wants("type", name.partition("/")[0])
        and asked.wants("name", name.rpartition("/")[2])
        and asked.wants("id", str(number))
    ]


RECORDS: Mapping[str, Callable[[Asked], Any]] = {
    "association": rows_of,
    "user": users_of,
    "account": accounts_of,
    "qos": qos_of,
    "tres": tres_of,
}


OF_USERS = frozenset({"user", "adminlevel", "defaultaccount", "cluster"})
"""Conditions that a user without associations may meet."""


def _alone(asked: Asked) -> list[str]:
    """Users who have no association (any more): the account of their last one was deleted."""
    if not here(asked) or asked.conditions.keys() - OF_USERS:
        return []
    people = asked.book.people.keys() - {n for n, own in asked.book.associations.items() if own}
    return [name for name in people if asked.wants("user", name)]
