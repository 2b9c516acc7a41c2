"""What sacctmgr shows: associations, users, accounts, QOS and TRES of the configuration (25.11.7)."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accounting.assoc import USE_PARENT, Account, Association, Book, Qos
from accounting.change import coordinated, default_of
from accounting.ids import UserName
from accounting.limits import NO_LIMITS, Limits
from accounting.tres import memory_text
from gateway.query.assocs import Row, tree
from gateway.query.context import Context
from gateway.query.managedheads import Values, columns
from gateway.query.reports import Field
from gateway.query.tresnames import split
from sbatch_shim.grammar.values import show_long


@dataclass(frozen=True, slots=True)
class User:
    """A user of the book; `row` one of their associations, where those are asked for."""

    name: str
    account: str
    """The default one."""
    admin: str
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Owned:
    """An account; `row` one of its associations, where those are asked for."""

    account: Account
    row: Row | None = None


def limit_text(limits: Limits, name: str) -> str:
    """A limit as accounting writes it; empty where there is none."""
    value = limits.value(name) if name not in TRES_LIMITS else getattr(limits, name)
    if value is None or value == {}:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{tres}={_size(tres, count)}" for tres, count in value.items())
    return show_long(value) if name.endswith("wall") else str(value)


TRES_LIMITS = frozenset(name for name in Limits.__slots__ if "tres" in name)


def _size(tres: str, count: int) -> str:
    return memory_text(count) if tres == "mem" else str(count)


def limits_of(row: Row | None) -> Limits:
    return NO_LIMITS if row is None else row.limits


def limit(name: str) -> Callable[[Row | None], str]:
    """A limit of the association that a row shows."""
    return lambda row: limit_text(limits_of(row), name)


def _one(name: str, tres: str) -> Callable[[Row | None], str]:
    """One TRES of a limit, as an older column has it."""
    return lambda row: _text(limits_of(row).value(name, tres))


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def holder(row: Row) -> Account | Association:
    """The record that the row shows."""
    return row.account if row.user is None else row.user


def shares_text(shares: int) -> str:
    return "parent" if shares == USE_PARENT else str(shares)


def parent_of(row: Row) -> str:
    """Of an account the one above; empty for users and for root."""
    return "" if row.user or row.account.name == "root" else row.account.parent


ROW: Values[Row] = {
    "Account": lambda row: row.account.name,
    "User": lambda row: row.user.user if row.user else "",
    "Partition": lambda row: (row.user.partition or "") if row.user else "",
    "Share": lambda row: shares_text(row.shares),
    "Priority": lambda row: _text(holder(row).priority),
    "GrpJobs": limit("grp_jobs"),
    "GrpTRES": limit("grp_tres"),
    "GrpSubmit": limit("grp_submit_jobs"),
    "GrpWall": limit("grp_wall"),
    "GrpTRESMins": limit("grp_tres_mins"),
    "GrpTRESRunMins": limit("grp_tres_run_mins"),
    "GrpJobsAccrue": limit("grp_jobs_accrue"),
    "GrpNodes": _one("grp_tres", "node"),
    "GrpCPUs": _one("grp_tres", "cpu"),
    "GrpMem": _one("grp_tres", "mem"),
    "GrpCPUMins": _one("grp_tres_mins", "cpu"),
    "MaxJobs": limit("max_jobs"),
    "MaxTRES": limit("max_tres_per_job"),
    "MaxTRESPerNode": limit("max_tres_per_node"),
    "MaxSubmit": limit("max_submit_jobs"),
    "MaxWall": limit("max_wall"),
    "MaxTRESMins": limit("max_tres_mins_per_job"),
    "MaxJobsAccrue": limit("max_jobs_accrue"),
    "MaxNodes": _one("max_tres_per_job", "node"),
    "MaxCPUs": _one("max_tres_per_job", "cpu"),
    "MaxCPUMins": _one("max_tres_mins_per_job", "cpu"),
    "QOS": lambda row: ",".join(row.qos),
    "Def QOS": lambda row: row.default_qos,
    "ID": lambda row: str(row.id),
    "LFT": lambda row: str(row.span[0]),
    "RGT": lambda row: str(row.span[1]),
    "ParentID": lambda row: str(row.parent),
    "QOS_RAW": lambda row: ",".join(map(str, row.qos_ids)),
    "ParentName": parent_of,
    "GrpCPURunMins": _one("grp_tres_run_mins", "cpu"),
    "Comment": lambda row: holder(row).comment,
}
"""Of an association, wherever it is shown."""


def _of(get: Callable[[Row], str], none: str) -> Callable[[Any], str]:
    """The association's value; `none` where there is none, or none is asked for."""
    return lambda record: none if record.row is None else get(record.row)


COUNTED = (
    "Share", "GrpJobs", "GrpSubmit", "GrpJobsAccrue", "GrpNodes", "GrpCPUs", "GrpMem", "GrpCPUMins",
    "GrpCPURunMins", "MaxJobs", "MaxSubmit", "MaxJobsAccrue", "MaxNodes", "MaxCPUs", "MaxCPUMins",
    "ID", "LFT", "RGT", "ParentID",
)  # fmt: skip
OF_NOBODY = dict.fromkeys(COUNTED, "0") | dict.fromkeys(("GrpWall", "MaxWall"), "00:00:00")
"""What is shown where there is no association, or none is asked for (22.05)."""
OF_ROW: Values[Any] = {header: _of(get, OF_NOBODY.get(header, "")) for header, get in ROW.items()}


def associations(cluster: str, indented: bool = False) -> tuple[Field[Row], ...]:
    """Columns of `show assoc`; `indented` shows the tree in the accounts."""
    own: Values[Row] = {"Cluster": lambda _: cluster, **ROW}
    if not indented:
        return columns(own)
    return columns({**own, "Account": lambda row: " " * row.depth + row.account.name}, TREE)


TREE = ("Account", -20)


def users(cluster: str, book: Book, *, coordinators: bool = False) -> tuple[Field[User], ...]:
    """Columns of `show user`; what they coordinate is told where that is asked for (22.05)."""

    def wckey(user: User) -> str:
        person = book.people.get(UserName(user.name))
        return "" if person is None else person.default_wckey

    def held(user: User) -> str:
        return ",".join(sorted(coordinated(book, user.name))) if coordinators else ""

    own: Values[User] = {
        "User": lambda user: user.name,
        "Def Acct": lambda user: user.account,
        "Def WCKey": wckey,
        "Admin": lambda user: user.admin,
        "Coord Accounts": held,
        "Cluster": lambda user: cluster if user.row else "",
    }
    return columns({**OF_ROW, **own})


def accounts(cluster: str, *, coordinators: bool = False) -> tuple[Field[Owned], ...]:
    """Columns of `show account`; who coordinates it is told where that is asked for (22.05)."""

    def held(one: Owned) -> str:
        return ",".join(one.account.coordinators) if coordinators else ""

    own: Values[Owned] = {
        "Account": lambda one: one.account.name,
        "Descr": lambda one: one.account.description,
        "Org": lambda one: one.account.organization,
        "Coord Accounts": held,
        "Cluster": lambda one: cluster if one.row else "",
    }
    return columns({**OF_ROW, **own})


def _qos(name: str) -> Callable[[Qos], str]:
    return lambda qos: limit_text(qos.limits, name)


def _one_of(name: str, tres: str) -> Callable[[Qos], str]:
    """One TRES of a limit, as an older column has it."""
    return lambda qos: _text(qos.limits.value(name, tres))


def _factor(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _exempt(qos: Qos) -> str:
    return "" if qos.exempt_time is None else show_long(qos.exempt_time)


QOS: Values[Qos] = {
    "Name": lambda qos: qos.name,
    "Priority": lambda qos: str(qos.priority),
    "GraceTime": lambda qos: show_long(qos.grace_time),
    "Preempt": lambda qos: ",".join(qos.preempt),
    "PreemptExemptTime": _exempt,
    "PreemptMode": lambda qos: qos.preempt_mode,
    "Flags": lambda qos: ",".join(sorted(qos.flags)),
    "UsageThres": lambda qos: _factor(qos.usage_threshold),
    "UsageFactor": lambda qos: _factor(qos.usage_factor),
    "LimitFactor": lambda qos: _factor(qos.limit_factor),
    "GrpTRES": _qos("grp_tres"),
    "GrpTRESMins": _qos("grp_tres_mins"),
    "GrpTRESRunMins": _qos("grp_tres_run_mins"),
    "GrpJobs": _qos("grp_jobs"),
    "GrpSubmit": _qos("grp_submit_jobs"),
    "GrpWall": _qos("grp_wall"),
    "MaxTRES": _qos("max_tres_per_job"),
    "MaxTRESPerNode": _qos("max_tres_per_node"),
    "MaxTRESMins": _qos("max_tres_mins_per_job"),
    "MaxWall": _qos("max_wall"),
    "MaxTRESPU": _qos("max_tres_per_user"),
    "MaxJobs": _qos("max_jobs"),
    "MaxJobsPU": _qos("max_jobs"),
    "MaxSubmit": _qos("max_submit_jobs"),
    "MaxSubmitPU": _qos("max_submit_jobs"),
    "MaxTRESPA": _qos("max_tres_per_account"),
    "MaxTRESRunMinsPA": _qos("max_tres_run_mins_per_account"),
    "MaxTRESRunMinsPU": _qos("max_tres_run_mins_per_user"),
    "GrpJobsAccrue": _qos("grp_jobs_accrue"),
    "MinPrioThres": _qos("min_prio_threshold"),
    "MaxJobsPA": _qos("max_jobs_per_account"),
    "MaxSubmitPA": _qos("max_submit_jobs_per_account"),
    "MinTRES": _qos("min_tres_per_job"),
    "MinCPUs": _one_of("min_tres_per_job", "cpu"),
    "MaxCPUs": _one_of("max_tres_per_job", "cpu"),
    "MaxNodes": _one_of("max_tres_per_job", "node"),
    "MaxCPUMins": _one_of("max_tres_mins_per_job", "cpu"),
    "MaxCPURunMinsPU": _one_of("max_tres_run_mins_per_user", "cpu"),
    "GrpCPUs": _one_of("grp_tres", "cpu"),
    "GrpNodes": _one_of("grp_tres", "node"),
    "GrpMem": _one_of("grp_tres", "mem"),
    "GrpCPUMins": _one_of("grp_tres_mins", "cpu"),
    "GrpCPURunMins": _one_of("grp_tres_run_mins", "cpu"),
    "MaxCPUsPU": _one_of("max_tres_per_user", "cpu"),
    "MaxNodesPU": _one_of("max_tres_per_user", "node"),
    "Descr": lambda qos: qos.description,
}


def qos_columns(book: Book) -> tuple[Field[Qos], ...]:
    """Columns of `show qos`, with the numbers that the QOS of this book have."""
    ids = book.qos_ids
    return columns({**QOS, "ID": lambda qos: str(ids.get(qos.name, ""))})


TRES: tuple[Field[tuple[str, int]], ...] = columns(
    {
        "Type": lambda one: split(one[0])[0],
        "Name": lambda one: split(one[0])[1],
        "ID": lambda one: str(one[1]),
    }
)

# ---------------------------------------------------------------- records


def user_records(
    rows: Sequence[Row], book: Book, *, associated: bool, alone: Iterable[str] = ()
) -> list[User]:
    """Users by name, with all of their associations in turn where that is asked for; those who
    are `alone` have none.
    """
    owned: dict[str, list[Row]] = {name: [] for name in alone}
    for row in rows:
        if row.user is not None:
            owned.setdefault(row.user.user, []).append(row)
    found = []
    for name in sorted(owned):
        account = default_of(book, UserName(name)) or ""
        shown: list[Row | None] = [*owned[name]] if associated else []
        found += [User(name, account, book.level(name), row) for row in shown or [None]]
    return found


def account_records(rows: Sequence[Row], *, associated: bool) -> list[Owned]:
    """Accounts by name, with their associations (its own first) where that is asked for."""
    names = dict.fromkeys(sorted(row.account.name for row in rows))
    by_name = {row.account.name: row.account for row in rows}
    if not associated:
        return [Owned(by_name[name]) for name in names]
    return [Owned(row.account, row) for name in names for row in rows if row.account.name == name]


def rows_of(ctx: Context) -> list[Row]:
    """The associations of the site."""
    return tree(ctx.site.book)
