"""`scontrol show assoc_mgr`: what the controller holds of users, associations and QOS (22.05)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accounting.assoc import USE_PARENT, Qos
from accounting.fairshare import Standing
from accounting.limits import Limits, TresLimit
from broker.model.tally import Used
from gateway.query.assocs import Row

MINUTE = 60
PARENT = 2**31 - 1
"""Shares of who has those of the account above."""
NO_UID = 2**32 - 2
"""Of a user that this host does not know."""
OFF = "cluster"
"""How QOS are pushed out that do not say."""
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What an association or a QOS has in use now, and what it used before."""

    live: Used
    minutes: Counts
    """TRES-minutes of the past."""
    run_minutes: Counts
    """Those that running jobs may still use."""
    wall: float = 0.0
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An association as the controller has it."""

    row: Row
    uid: int | None
    standing: Standing
    siblings: int
    """Shares of all of them together."""
    use: Use
    default: bool
    """Whether it is its user's default."""


@dataclass(frozen=True, slots=True)
class Person:
    """A user as the controller has them."""

    name: str
    uid: int | None
    account: str
    wckey: str
    admin: str


@dataclass(frozen=True, slots=True)
class Writer:
    """How records are written: the TRES that are counted, and whether in one line each."""

    tres: tuple[str, ...]
    oneliner: bool = False

    def state(self, *parts: str) -> str:
        """The whole, of sections."""
        return "Current Association Manager state\n" + "".join(parts)

    def section(self, title: str, kind: str, records: Sequence[str]) -> str:
        """Records below their title, or what is said of none."""
        gap = "" if self.oneliner else "\n"
        if not records:
            return f"\nNo {kind} currently cached in Slurm.\n\n"
        return f"{gap}{title} Records\n{gap}" + "".join(records)

    def person(self, one: Person) -> str:
        return (
            f"UserName={one.name}({_uid(one.uid)}) DefAccount={one.account} "
            f"DefWckey={one.wckey} AdminLevel={one.admin}\n"
        )

    def association(self, one: Held, cluster: str) -> str:
        """Every line of an association."""
        row, stands, limits = one.row, one.standing, one.row.limits
        own = row.user or row.account
        user = f"{row.user.user}({_uid(one.uid)})" if row.user else ""
        partition = (row.user.partition or "") if row.user else ""
        above = f"{row.account.parent}({row.parent})" if row.depth and not row.user else ""
        shares = PARENT if row.shares == USE_PARENT else row.shares
        norms = f"{stands.norm_usage:.2f}/{stands.effective:.2f}" if row.depth else "1.00/1.00"
        return self._record(
            f"ClusterName={cluster} Account={row.account.name} UserName={user} "
            f"Partition={partition} Priority={own.priority or 0} ID={row.id}",
            f"SharesRaw/Norm/Level/Factor={shares}/{stands.norm_shares:.2f}/{one.siblings}/"
            f"{stands.factor or 0.0:.2f}",
            f"UsageRaw/Norm/Efctv={stands.usage:.2f}/{norms}",
            f"ParentAccount={above} Lft={row.span[0]} DefAssoc={'Yes' if one.default else 'No'}",
            *self._group(limits, one.use, apart=True),
            f"{_own('MaxJobs', limits.max_jobs, one.use.live.running)} "
            f"{_own('MaxJobsAccrue', limits.max_jobs_accrue, one.use.live.accruing)} "
            f"{_own('MaxSubmitJobs', limits.max_submit_jobs, one.use.live.queued)} "
            f"MaxWallPJ={_minutes(limits.max_wall)}",
            *_per_job(limits),
            f"MinPrioThresh={_text(limits.min_prio_threshold)}",
        )

    def qos(self, grade: Qos, number: int, usage: float, *, use: Use, parties: "Parties") -> str:
        """Every line of a QOS."""
        limits = grade.limits
        mode = "OFF" if grade.preempt_mode == OFF else grade.preempt_mode.upper()
        head = self._record(
            f"QOS={grade.name}({number})",
            f"UsageRaw={usage:.6f}",
            *self._group(limits, use, apart=False),
            f"MaxWallPJ={_minutes(limits.max_wall)}",
            *_per_job(limits),
            f"MinPrioThresh={_text(limits.min_prio_threshold)} ",
            f"MinTRESPJ={_limits(limits.min_tres_per_job)}",
            f"PreemptMode={mode}",
            f"Priority={grade.priority}",
        )
        accounts = self._parties(parties.accounts, ACCOUNT, limits)
        users = self._parties(parties.users, USER, limits)
        if self.oneliner:
            return head.rstrip("\n") + f" {accounts} {users}\n"
        return head + accounts + users

    def _record(self, *lines: str) -> str:
        return (" " if self.oneliner else "\n    ").join(lines) + "\n"

    def _group(self, limits: Limits, use: Use, *, apart: bool) -> Iterable[str]:
        live = use.live
        jobs = (
            f"GrpJobs={_most(limits.grp_jobs)}({live.running}) "
            f"GrpJobsAccrue={_most(limits.grp_jobs_accrue)}({live.accruing})"
        )
        wall = None if limits.grp_wall is None else limits.grp_wall // MINUTE
        submitted = (
            f"GrpSubmitJobs={_most(limits.grp_submit_jobs)}({live.queued}) "
            f"GrpWall={_most(wall)}({use.wall / MINUTE:.2f})"
        )
        yield from (jobs, submitted) if apart else (f"{jobs} {submitted}",)
        yield f"GrpTRES={self._counts(limits.grp_tres, live.in_use)}"
        yield f"GrpTRESMins={self._counts(limits.grp_tres_mins, use.minutes)}"
        yield f"GrpTRESRunMins={self._counts(limits.grp_tres_run_mins, use.run_minutes)}"

    def _counts(self, limits: TresLimit, used: Counts) -> str:
        each = ((name, limits.get(name), used.get(name, 0)) for name in self.tres)
        return ",".join(f"{name}={_most(most)}({count})" for name, most, count in each)

    def _parties(self, parties: Mapping[str, Used], names: "Names", limits: Limits) -> str:
        title = names.title
        found = [(name, self._party(used, names, limits)) for name, used in parties.items()]
        if self.oneliner:
            each = [f"{name}={{{' '.join(lines)}}}" for name, lines in found]
            return f"{title} Limits= {' '.join(each) or f'No {title}s'}"
        each = [
            f"      {name}\n" + "".join(f"        {line}\n" for line in lines)
            for name, lines in found
        ]
        return f"    {title} Limits\n" + ("".join(each) or f"        No {title}s\n")

    def _party(self, used: Used, names: "Names", limits: Limits) -> tuple[str, str]:
        jobs, accruing, queued = (
            one if one is None else getattr(limits, one) for one in names.limits
        )
        end = names.suffix
        return (
            f"MaxJobs{end}={_most(jobs)}({used.running}) "
            f"MaxJobsAccrue{end}={_most(accruing)}({used.accruing}) "
            f"MaxSubmitJobs{end}={_most(queued)}({used.queued})",
            f"MaxTRES{end}={self._counts(getattr(limits, names.tres), used.in_use)}",
        )


@dataclass(frozen=True, slots=True)
class Names:
    """What a QOS's limits for each account, or for each user, are called."""

    title: str
    suffix: str
    limits: tuple[str, str | None, str]
    """Fields of `Limits`; None of what is not limited."""
    tres: str


ACCOUNT = Names(
    "Account",
    "PA",
    ("max_jobs_per_account", None, "max_submit_jobs_per_account"),
    "max_tres_per_account",
)
USER = Names("User", "PU", ("max_jobs", "max_jobs_accrue", "max_submit_jobs"), "max_tres_per_user")


@dataclass(frozen=True, slots=True)
class Parties:
    """Whose live jobs count in a QOS: by account, and by uid."""

    accounts: Mapping[str, Used]
    users: Mapping[str, Used]


def _per_job(limits: Limits) -> tuple[str, str, str]:
    return (
        f"MaxTRESPJ={_limits(limits.max_tres_per_job)}",
        f"MaxTRESPN={_limits(limits.max_tres_per_node)}",
        f"MaxTRESMinsPJ={_limits(limits.max_tres_mins_per_job)}",
    )


def _uid(uid: int | None) -> int:
    return NO_UID if uid is None else uid


def _most(limit: int | None) -> str:
    return "N" if limit is None else str(limit)


def _own(name: str, limit: int | None, used: int) -> str:
    return f"{name}=" if limit is None else f"{name}={limit}({used})"


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def _minutes(seconds: int | None) -> str:
    return "" if seconds is None else str(seconds // MINUTE)


def _limits(limits: TresLimit) -> str:
    return ",".join(f"{name}={count}" for name, count in limits.items())
