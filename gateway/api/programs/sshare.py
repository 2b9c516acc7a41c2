"""sshare: shares of accounts and users, and what they used of them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accounting.assoc import USE_PARENT, Book, lower
from accounting.fairshare import INFINITE, Key, Standing
from broker.model.job import Job, JobState
from broker.model.site import units
from broker.model.tally import counts_of
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.reading import (
    Options,
    cluster_line,
    fail,
    finishing,
    read_options,
    reader,
    style_of,
)
from gateway.api.programs.shares import Used, standing, used
from gateway.api.wire import Answer, Call
from gateway.query import job as of
from gateway.query.assocs import Row, tree
from gateway.query.context import Context
from gateway.query.documents import values
from gateway.query.managed import limit_text, limits_of, shares_text
from gateway.query.privacy import Viewer
from gateway.query.reports import Field, UnknownFieldError, fields_of, table
from gateway.query.shape import number

BAD_FIELD = 'sshare: error: Invalid field requested: "{}"\n'
ASKED = "Users requested:\n{}Accounts requested:\n{}"
FATAL = "sshare: fatal: Could not get cluster information\n"
USUAL = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
LONG = (
    "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,"
    "GrpTRESMins,TRESRunMins"
)
PART = "Account,User,Partition,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"


Minutes = Callable[[Key], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Share:
    """A line: an association, its standing, TRES-minutes that its jobs may still use and did."""

    row: Row
    depth: int
    """Below those that are shown."""
    standing: Standing
    run_minutes: Mapping[str, int]
    minutes: Mapping[str, int]

    @property
    def is_root(self) -> bool:
        return self.row.depth == 0

    @property
    def is_user(self) -> bool:
        return self.row.user is not None


def _account(share: Share) -> str:
    return " " * share.depth + share.row.account.name


def _user(share: Share) -> str:
    return share.row.user.user if share.row.user else ""


def _factor(share: Share) -> str:
    factor = share.standing.factor
    return "" if factor is None or not share.is_user else f"{factor:.6f}"


def _level(share: Share) -> str:
    if share.is_root or share.row.shares == USE_PARENT:
        return ""
    return "inf" if share.standing.level == INFINITE else f"{share.standing.level:.6f}"


def _counted(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _norm_usage(share: Share) -> str:
    return "" if share.is_root else f"{share.standing.norm_usage:.6f}"


def _effective(share: Share) -> str:
    """All that is used is the root's, be it nothing (22.05)."""
    return f"{1.0 if share.is_root else share.standing.effective:.6f}"


def _partition(share: Share) -> str:
    return (share.row.user.partition or "") if share.row.user else ""


def fields(cluster: str) -> tuple[Field[Share], ...]:
    """Every column."""
    return (
        Field("Account", "Account", -20, _account),
        Field("Cluster", "Cluster", 10, lambda _: cluster),
        Field("EffectvUsage", "EffectvUsage", 13, _effective),
        Field("FairShare", "FairShare", 10, _factor),
        Field("GrpTRESMins", "GrpTRESMins", 30, _group_minutes),
        Field("GrpTRESRaw", "GrpTRESRaw", 30, lambda one: _counted(one.minutes)),
        Field("ID", "ID", 6, lambda one: str(one.row.id)),
        Field("LevelFS", "LevelFS", 10, _level),
        Field("NormShares", "NormShares", 11, lambda one: f"{one.standing.norm_shares:.6f}"),
        Field("NormUsage", "NormUsage", 11, _norm_usage),
        Field("Partition", "Partition", 12, _partition),
        Field("RawShares", "RawShares", 10, _raw_shares),
        Field("RawUsage", "RawUsage", 11, lambda one: f"{one.standing.usage:.0f}"),
        Field("TRESRunMins", "TRESRunMins", 30, lambda one: _counted(one.run_minutes)),
        Field("User", "User", 10, _user),
    )


def _raw_shares(share: Share) -> str:
    return "" if share.is_root else shares_text(share.row.shares)


def _group_minutes(share: Share) -> str:
    return limit_text(limits_of(share.row), "grp_tres_mins")


class Sshare:
    """The command; `tres` are the names that accounting counts."""

    def __init__(self, tres: tuple[str, ...]) -> None:
        self.tres = tres

    @finishing
    async def __call__(self, desk: Desk, call: Call) -> Answer:
        options = read_options(desk, call)
        snap = desk.snapshot()
        ctx = reader(desk, call, snap, options=options)
        known = fields(snap.site.cluster)
        if options.has("helpformat"):
            return Answer(out=_help(known))
        top = cluster_line(options, call, snap, fatal=FATAL)
        by = await structured.asker(desk, call, options)
        try:
            shown = fields_of(options.text("format") or _usual(options), known)
        except UnknownFieldError as error:
            raise fail(BAD_FIELD.format(error)) from None
        users = await _users(desk, call, options)
        viewer = await desk.viewer(call.peer.uid)
        rows = self._rows(snap, options, ctx, users=users, viewer=viewer)
        if by is not None:
            content = {"shares": {"shares": [_record(one, ctx) for one in rows], "total_shares": 0}}
            return Answer(out=values(content, ctx, asker=by))
        err = _requested(options, users) if options.has("verbose") else ""
        return Answer(out=top + table(shown, rows, style_of(options)), err=err)

    def _rows(
        self,
        snap: Snapshot,
        options: Options,
        ctx: Context,
        *,
        users: frozenset[str] | None,
        viewer: Viewer,
    ) -> list[Share]:
        past = used(snap, ctx)
        stand = standing(ctx.site.book, past)
        accounts = options.words_of("accounts")
        wanted = None if accounts is None else {name.lower() for name in accounts}
        ahead = run_minutes(list(ctx.jobs.values()), ctx, self.tres)
        behind = minutes(past, ctx, self.tres)
        found: list[Share] = []
        above: set[str] = set()
        for row in tree(ctx.site.book):
            key = row.account.name, row.user.user if row.user else ""
            by_user = row.user is None or users is None or row.user.user in users
            by_user = by_user and viewer.used(*key)
            alone = row.user is None and options.has("Users")
            if by_user and not alone and (wanted is None or row.account.name in wanted):
                line = [one.name for one in ctx.site.book.lineage(row.account.name)]
                depth = len(above.intersection(line if row.user else line[1:]))
                found.append(Share(row, depth, stand[key], ahead(key), behind(key)))
                above |= set() if row.user else {row.account.name}
        return found


def run_minutes(jobs: list[Job], ctx: Context, tres: tuple[str, ...]) -> Minutes:
    """By account and user (empty: all below): minutes that running jobs may still use."""
    sums: dict[Key, Counter[str]] = {}
    for job in jobs:
        if job.state is JobState.RUNNING:
            for key in upwards(ctx.site.book, job.account, job.owner.user):
                sums.setdefault(key, Counter()).update(_left(job, ctx))
    return lambda key: {name: sums.get(key, Counter())[name] for name in tres}


def minutes(past: Used, ctx: Context, tres: tuple[str, ...]) -> Minutes:
    """By account and user (empty: all below): what of each TRES was used."""
    sums: dict[Key, Counter[str]] = {}
    for (account, user), counts in past.items():
        for key in upwards(ctx.site.book, account, user):
            own = sums.setdefault(key, Counter())
            for name, count in counts.items():
                own[name] += int(count)
    return lambda key: {name: sums.get(key, Counter())[name] // 60 for name in tres}


def upwards(book: Book, account: str, user: str) -> list[Key]:
    """The association, and the accounts that it counts for."""
    above = book.lineage(lower(account))
    return [(account, user), *((str(one.name), "") for one in above)]


def _left(job: Job, ctx: Context) -> dict[str, int]:
    """Times the UsageFactor of its QOS (22.05)."""
    left = of.time_left(job, ctx)
    minutes = max(left, 0) // 60 if isinstance(left, int) else of.YEAR // 60
    counts = counts_of(job.alloc, units(ctx.site, job.alloc, job.partition))
    factor = ctx.site.book.factor(job.qos)
    return {name: int(count * minutes * factor) for name, count in counts.items()}


def _usual(options: Options) -> str:
    if options.has("long"):
        return LONG
    return PART if options.has("partition") else USUAL


async def _users(desk: Desk, call: Call, options: Options) -> frozenset[str] | None:
    """Names; the caller's own unless all or some were asked for."""
    names = options.words_of("users")
    if options.has("all") or names == frozenset({"-1"}):
        return None
    if names is not None:
        return names
    return frozenset({(await desk.owner(call.peer.uid)).user})


def _requested(options: Options, users: frozenset[str] | None) -> str:
    """What `-v` tells."""
    accounts = options.words_of("accounts")
    lists = [
        "".join(f"\t: {name}\n" for name in sorted(one or {"all"})) for one in (users, accounts)
    ]
    return ASKED.format(*lists)


def _help(known: tuple[Field[Share], ...]) -> str:
    names = [one.name for one in known]
    lines = [names[i : i + 4] for i in range(0, len(names), 4)]
    return "".join(" ".join(f"{name:<17}" for name in line) + "\n" for line in lines)


def _record(share: Share, ctx: Context) -> dict[str, Any]:
    """One association as data_parser has it."""
    one = share.standing
    return {
        "id": share.row.id,
        "cluster": ctx.site.cluster,
        "name": _user(share) or share.row.account.name,
        "parent": share.row.account.name if share.is_user else share.row.account.parent,
        "partition": _partition(share),
        "shares_normalized": number(one.norm_shares),
        "shares": number(share.row.shares),
        "tres": {"run_seconds": [], "group_minutes": [], "usage": []},
        "effective_usage": number(one.effective),
        "usage_normalized": number(one.norm_usage),
        "usage": round(one.usage),
        "fairshare": {
            "factor": number(one.factor or 0.0),
            "level": number(None if one.level == INFINITE else one.level),
        },
        "type": ["USER" if share.is_user else "ASSOCIATION"],
    }
