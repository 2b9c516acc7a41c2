"""What sacctmgr shows: associations, users, accounts, QOS and TRES of the configuration (25.11.7)."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accounting.assoc import USE_PARENT, Account, Association, Book, Qos
from accounting.change import coordinated, default_of
from accounting.ids import UserName
from accounting.limits import NO_LIMITS, Limits
from accounting.tres import memory_text
from gateway.query.assocs import Row, qos_ids, tree
from gateway.query.context import Context
from gateway.query.reports import Field, nothing
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


def _limit(name: str) -> Callable[[Row | None], str]:
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


# name, headline, width, value: of an association, wherever it is shown
ROW_COLUMNS: tuple[tuple[str, str, int, Callable[[Row], str]], ...] = (
    ("Account", "Account", 10, lambda row: row.account.name),
    ("User", "User", 10, lambda row: row.user.user if row.user else ""),
    ("Partition", "Partition", 10, lambda row: (row.user.partition or "") if row.user else ""),
    ("Fairshare", "Share", 9, lambda row: shares_text(row.shares)),
    ("Share", "Share", 9, lambda row: shares_text(row.shares)),
    ("Priority", "Priority", 10, lambda row: _text(holder(row).priority)),
    ("GrpJobs", "GrpJobs", 7, _limit("grp_jobs")),
    ("GrpTRES", "GrpTRES", 13, _limit("grp_tres")),
    ("GrpSubmitJobs", "GrpSubmit", 9, _limit("grp_submit_jobs")),
    ("GrpWall", "GrpWall", 11, _limit("grp_wall")),
    ("GrpTRESMins", "GrpTRESMins", 13, _limit("grp_tres_mins")),
    ("GrpTRESRunMins", "GrpTRESRunMins", 13, _limit("grp_tres_run_mins")),
    ("GrpJobsAccrue", "GrpJobsAccrue", 13, _limit("grp_jobs_accrue")),
    ("GrpNodes", "GrpNodes", 8, _one("grp_tres", "node")),
    ("GrpCPUs", "GrpCPUs", 8, _one("grp_tres", "cpu")),
    ("GrpMem", "GrpMem", 7, _one("grp_tres", "mem")),
    ("GrpCPUMins", "GrpCPUMins", 11, _one("grp_tres_mins", "cpu")),
    ("MaxJobs", "MaxJobs", 7, _limit("max_jobs")),
    ("MaxTRES", "MaxTRES", 13, _limit("max_tres_per_job")),
    ("MaxTRESPerJob", "MaxTRES", 13, _limit("max_tres_per_job")),
    ("MaxTRESPerNode", "MaxTRESPerNode", 14, _limit("max_tres_per_node")),
    ("MaxSubmitJobs", "MaxSubmit", 9, _limit("max_submit_jobs")),
    ("MaxWallDurationPerJob", "MaxWall", 11, _limit("max_wall")),
    ("MaxTRESMinsPerJob", "MaxTRESMins", 13, _limit("max_tres_mins_per_job")),
    ("MaxJobsAccrue", "MaxJobsAccrue", 13, _limit("max_jobs_accrue")),
    ("MaxNodes", "MaxNodes", 8, _one("max_tres_per_job", "node")),
    ("MaxCPUs", "MaxCPUs", 8, _one("max_tres_per_job", "cpu")),
    ("MaxCPUMins", "MaxCPUMins", 11, _one("max_tres_mins_per_job", "cpu")),
    ("QOS", "QOS", 20, lambda row: ",".join(row.qos)),
    ("QOSLevel", "QOS", 20, lambda row: ",".join(row.qos)),
    ("DefaultQOS", "Def QOS", 9, lambda row: row.default_qos),
    ("ID", "ID", 6, lambda row: str(row.id)),
    ("LFT", "LFT", 6, lambda row: str(row.span[0])),
    ("RGT", "RGT", 6, lambda row: str(row.span[1])),
    ("ParentID", "ParentID", 8, lambda row: str(row.parent)),
    ("QOSRAW", "QOS_RAW", 10, lambda row: ",".join(map(str, row.qos_ids))),
    ("ParentName", "ParentName", 10, parent_of),
    ("GrpCPURunMins", "GrpCPURunMins", 15, _one("grp_tres_run_mins", "cpu")),
    ("Lineage", "Lineage", -20, nothing),
    ("Comment", "Comment", 20, lambda row: holder(row).comment),
    ("Flags", "Flags", 20, nothing),
)


def _of(get: Callable[[Row], str]) -> Callable[[Any], str]:
    """The association's value, empty where none is asked for."""
    return lambda record: "" if record.row is None else get(record.row)


def associations(cluster: str, indented: bool = False) -> tuple[Field[Row], ...]:
    """Columns of `show assoc`; `indented` shows the tree in the accounts."""
    fields: list[Field[Row]] = [Field("Cluster", "Cluster", 10, lambda _: cluster)]
    for name, header, width, get in ROW_COLUMNS:
        deep = indented and name == "Account"
        fields.append(Field(name, header, -20 if deep else width, _stepped(get) if deep else get))
    return tuple(fields)


def _stepped(get: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda row: " " * _depth(row) + get(row)


def _depth(row: Row) -> int:
    return row.depth


def users(cluster: str, book: Book, *, coordinators: bool = False) -> tuple[Field[User], ...]:
    """Columns of `show user`; what they coordinate is told where that is asked for (22.05)."""

    def wckey(user: User) -> str:
        person = book.people.get(UserName(user.name))
        return "" if person is None else person.default_wckey

    def held(user: User) -> str:
        return ",".join(sorted(coordinated(book, user.name))) if coordinators else ""

    return (
        Field("User", "User", 10, lambda user: user.name),
        Field("DefaultAccount", "Def Acct", 10, lambda user: user.account),
        Field("DefaultWCKey", "Def WCKey", 10, wckey),
        Field("AdminLevel", "Admin", 9, lambda user: user.admin),
        Field("Coordinators", "Coord Accounts", 20, held),
        Field("Cluster", "Cluster", 10, lambda user: cluster if user.row else ""),
        *(Field(n, h, w, _of(get)) for n, h, w, get in ROW_COLUMNS if n != "User"),
    )


def accounts(cluster: str, *, coordinators: bool = False) -> tuple[Field[Owned], ...]:
    """Columns of `show account`; who coordinates it is told where that is asked for (22.05)."""

    def held(one: Owned) -> str:
        return ",".join(one.account.coordinators) if coordinators else ""

    return (
        Field("Account", "Account", 10, lambda one: one.account.name),
        Field("Description", "Descr", 20, lambda one: one.account.description),
        Field("Organization", "Org", 20, lambda one: one.account.organization),
        Field("Coordinators", "Coord Accounts", 20, held),
        Field("Cluster", "Cluster", 10, lambda one: cluster if one.row else ""),
        *(Field(n, h, w, _of(get)) for n, h, w, get in ROW_COLUMNS if n != "Account"),
    )


def _qos(name: str) -> Callable[[Qos], str]:
    return lambda qos: limit_text(qos.limits, name)


def _one_of(name: str, tres: str) -> Callable[[Qos], str]:
    """One TRES of a limit, as an older column has it."""
    return lambda qos: _text(qos.limits.value(name, tres))


def _factor(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _exempt(qos: Qos) -> str:
    return "" if qos.exempt_time is None else show_long(qos.exempt_time)


QOS: tuple[Field[Qos], ...] = (
    Field("Name", "Name", 10, lambda qos: qos.name),
    Field("Priority", "Priority", 10, lambda qos: str(qos.priority)),
    Field("GraceTime", "GraceTime", 10, lambda qos: show_long(qos.grace_time)),
    Field("Preempt", "Preempt", 10, lambda qos: ",".join(qos.preempt)),
    Field("PreemptExemptTime", "PreemptExemptTime", 19, _exempt),
    Field("PreemptMode", "PreemptMode", 11, lambda qos: qos.preempt_mode),
    Field("Flags", "Flags", 40, lambda qos: ",".join(sorted(qos.flags))),
    Field("UsageThreshold", "UsageThres", 10, lambda qos: _factor(qos.usage_threshold)),
    Field("UsageFactor", "UsageFactor", 11, lambda qos: _factor(qos.usage_factor)),
    Field("LimitFactor", "LimitFactor", 11, lambda qos: _factor(qos.limit_factor)),
    Field("GrpTRES", "GrpTRES", 13, _qos("grp_tres")),
    Field("GrpTRESMins", "GrpTRESMins", 13, _qos("grp_tres_mins")),
    Field("GrpTRESRunMins", "GrpTRESRunMins", 14, _qos("grp_tres_run_mins")),
    Field("GrpJobs", "GrpJobs", 7, _qos("grp_jobs")),
    Field("GrpSubmitJobs", "GrpSubmit", 9, _qos("grp_submit_jobs")),
    Field("GrpWall", "GrpWall", 11, _qos("grp_wall")),
    Field("MaxTRES", "MaxTRES", 13, _qos("max_tres_per_job")),
    Field("MaxTRESPerJob", "MaxTRES", 13, _qos("max_tres_per_job")),
    Field("MaxTRESPerNode", "MaxTRESPerNode", 14, _qos("max_tres_per_node")),
    Field("MaxTRESMinsPerJob", "MaxTRESMins", 13, _qos("max_tres_mins_per_job")),
    Field("MaxWall", "MaxWall", 11, _qos("max_wall")),
    Field("MaxWallDurationPerJob", "MaxWall", 11, _qos("max_wall")),
    Field("MaxTRESPerUser", "MaxTRESPU", 13, _qos("max_tres_per_user")),
    Field("MaxTRESPU", "MaxTRESPU", 13, _qos("max_tres_per_user")),
    Field("MaxJobsPerUser", "MaxJobsPU", 9, _qos("max_jobs")),
    Field("MaxJobsPU", "MaxJobsPU", 9, _qos("max_jobs")),
    Field("MaxSubmitJobsPerUser", "MaxSubmitPU", 11, _qos("max_submit_jobs")),
    Field("MaxSubmitPU", "MaxSubmitPU", 11, _qos("max_submit_jobs")),
    Field("MaxTRESPerAccount", "MaxTRESPA", 13, _qos("max_tres_per_account")),
    Field("MaxTRESPA", "MaxTRESPA", 13, _qos("max_tres_per_account")),
    Field(
        "MaxTRESRunMinsPerAccount", "MaxTRESRunMinsPA", 15, _qos("max_tres_run_mins_per_account")
    ),
    Field("MaxTRESRunMinsPA", "MaxTRESRunMinsPA", 15, _qos("max_tres_run_mins_per_account")),
    Field("MaxTRESRunMinsPerUser", "MaxTRESRunMinsPU", 15, _qos("max_tres_run_mins_per_user")),
    Field("MaxTRESRunMinsPU", "MaxTRESRunMinsPU", 15, _qos("max_tres_run_mins_per_user")),
    Field("GrpJobsAccrue", "GrpJobsAccrue", 13, _qos("grp_jobs_accrue")),
    Field("MinPrioThreshold", "MinPrioThres", 12, _qos("min_prio_threshold")),
    Field("MaxJobsPerAccount", "MaxJobsPA", 9, _qos("max_jobs_per_account")),
    Field("MaxJobsPA", "MaxJobsPA", 9, _qos("max_jobs_per_account")),
    Field("MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, _qos("max_submit_jobs_per_account")),
    Field("MaxSubmitPA", "MaxSubmitPA", 11, _qos("max_submit_jobs_per_account")),
    Field("MinTRES", "MinTRES", 13, _qos("min_tres_per_job")),
    Field("MinTRESPerJob", "MinTRES", 13, _qos("min_tres_per_job")),
    Field("GrpCPURunMins", "GrpCPURunMins", 15, _one_of("grp_tres_run_mins", "cpu")),
    Field("MaxCPUsPerUser", "MaxCPUsPU", 9, _one_of("max_tres_per_user", "cpu")),
    Field("MaxNodesPerUser", "MaxNodesPU", 10, _one_of("max_tres_per_user", "node")),
    Field("Description", "Descr", 20, lambda qos: qos.description),
    Field("ID", "ID", 6, nothing),
)


def qos_columns(book: Book) -> tuple[Field[Qos], ...]:
    """Columns of `show qos`, with the numbers that the QOS of this book have."""
    ids = qos_ids(book)
    own: Field[Qos] = Field("ID", "ID", 6, lambda qos: str(ids.get(qos.name, "")))
    return (*(one for one in QOS if one.name != "ID"), own)


TRES: tuple[Field[tuple[str, int]], ...] = (
    Field("Type", "Type", 8, lambda one: split(one[0])[0]),
    Field("Name", "Name", 15, lambda one: split(one[0])[1]),
    Field("ID", "ID", 6, lambda one: str(one[1])),
)

# ---------------------------------------------------------------- records


def user_records(rows: Sequence[Row], book: Book, *, associated: bool) -> list[User]:
    """Users by name, with all of their associations in turn where that is asked for."""
    owned: dict[str, list[Row]] = {}
    for row in rows:
        if row.user is not None:
            owned.setdefault(row.user.user, []).append(row)
    found = []
    for name in sorted(owned):
        account = default_of(book, UserName(name)) or ""
        shown = owned[name] if associated else [None]
        found += [User(name, account, book.level(name), row) for row in shown]
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
