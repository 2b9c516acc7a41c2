"""What was used within a window: the ledger's sums, and what runs, waits and is down now."""

import pwd
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accounting.ledger import Payer, usage
from accounting.rollup import HOUR, PLANNED, WALL, counts, lost
from accounting.rollup import used as summed
from broker.model.job import Job, JobState
from broker.model.site import Site, units
from broker.ports import HistoryQuery
from broker.schedule.accrued import payer_of
from gateway.api.desk import Desk
from gateway.query.context import Context
from gateway.query.privacy import Viewer
from gateway.query.sacct import AllOf, Window, matching

Key = tuple[Any, ...]
Columns = tuple[str, ...]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Use:
    """TRES-seconds by the columns; `whole` is what there was of each TRES."""

    columns: tuple[str, ...]
    found: Mapping[Key, int]
    whole: Mapping[str, int] = field(default_factory=dict)

    def by(self, *columns: str) -> dict[Any, int]:
        """Summed up by some of the columns."""
        places = [self.columns.index(name) for name in columns]
        total: dict[Key, int] = {}
        for key, amount in self.found.items():
            short = tuple(key[place] for place in places)
            total[short] = total.get(short, 0) + amount
        return total

    def of_theirs(self, viewer: Viewer) -> "Use":
        """Without that of others, where the columns say whose it is."""
        account, user = (self.columns.index(name) for name in ("account", "user"))
        found = {k: n for k, n in self.found.items() if viewer.used(k[account], k[user])}
        return replace(self, found=found)

    def within(self, partitions: Collection[str]) -> "Use":
        """Of some partitions alone; of all where none is named."""
        if not partitions:
            return self
        place = self.columns.index("partition")
        return replace(self, found={k: n for k, n in self.found.items() if k[place] in partitions})


@dataclass(frozen=True, slots=True)
class _Now:
    """What is so at present, and not in the sums yet: amounts of each second since an instant."""

    since: int
    until: int
    each: Mapping[str, int]
    payer: Payer | None = None
    size: int = 0

    def value(self, column: str, tres: str) -> str | int:
        if column in {"tres", "size"}:
            return tres if column == "tres" else self.size
        return str(getattr(self.payer, column, ""))


def used_by(desk: Desk, ctx: Context, *, window: Span, asked: tuple[Columns, Columns]) -> Use:
    """By the columns and of the TRES that are asked for. Blocks.

    In whole hours, as Slurm has it; what goes on to the second.
    """
    (start, end), (by, tres) = window, asked
    columns, wanted = tuple(dict.fromkeys([*by, "tres", "partition"])), frozenset(tres)
    found = dict(desk.history.used(since=start, until=end, by=columns, tres=tres))
    first, last = start - start % HOUR, min(end - end % HOUR, ctx.now)
    for one in _at_present(ctx):
        seconds = min(last, one.until) - max(first, one.since)
        for name in one.each.keys() & wanted if seconds > 0 else ():
            key = tuple(one.value(column, name) for column in columns)
            found[key] = found.get(key, 0) + one.each[name] * seconds
    return Use(columns, found)


def _at_present(ctx: Context) -> Iterator[_Now]:
    for job in ctx.jobs.values():
        yield from _of_job(job, ctx)
    for node in ctx.nodes.values():
        if node.declared and node.out_since is not None:
            yield _Now(node.out_since, ctx.now, lost(node.whole))


def _of_job(job: Job, ctx: Context) -> Iterator[_Now]:
    """One that runs, and what it had to wait for; or what it waits for."""
    if job.shares and job.started is not None:
        held = counts(job.alloc) | {"billing": units(ctx.site, job.alloc, job.partition)}
        payer = payer_of(job, job.attempt)
        until = job.used_until(ctx.now)
        yield _Now(job.started, until, held | {WALL: 1}, payer, job.alloc.cpu)
        yield _Now(job.started - job.waited, job.started, {PLANNED: job.alloc.cpu})
    elif job.state is JobState.PENDING and job.eligible is not None and job.hold is None:
        tasks = len(job.array.waiting) if job.array and job.array.waiting else 1
        yield _Now(job.eligible, ctx.now, {PLANNED: job.want.cpu * tasks})


def used_by_jobs(desk: Desk, ctx: Context, wanted: AllOf, *, asked: tuple[Columns, Columns]) -> Use:
    """The same of some jobs alone, which the sums do not know: their records are read. Blocks."""
    by, tres = asked
    columns = tuple(dict.fromkeys([*by, "tres", "partition"]))
    found: dict[Key, int] = {}
    start, end = wanted.window.start or 0, wanted.window.end or ctx.now
    for job in matching(_jobs(desk, ctx, wanted.window), wanted, ctx):
        until = min(job.used_until(ctx.now), ctx.now, end)
        since = until if job.started is None else max(job.started, start)
        if since >= until:
            continue
        billing = units(ctx.site, job.alloc, job.partition)
        entries = usage(
            payer_of(job, job.attempt), job.alloc, billing=billing, started=since, ended=until
        )
        for cell, amount in summed(entries).items():
            if cell.span == HOUR and cell.tres in tres:
                key = tuple(getattr(cell, column) for column in columns)
                found[key] = found.get(key, 0) + amount
    return Use(columns, found)


def _jobs(desk: Desk, ctx: Context, window: Window) -> Iterator[Job]:
    query = HistoryQuery(since=window.start, until=window.end, held=ctx.jobs)
    yield from (job for job in desk.history.jobs(query) if job.id not in ctx.jobs)
    yield from ctx.jobs.values()


def whole_of(site: Site, use: Use, seconds: int) -> dict[str, int]:
    """What there was: declared nodes all the time, and what was used where nodes are bought."""
    elastic = {part.name for part in site.partitions if part.elastic is not None}
    whole = {(name,): amount for (name,), amount in use.within(elastic or {""}).by("tres").items()}
    for node in site.nodes:
        for name, count in (counts(node.whole) | {"billing": node.whole.cpu}).items():
            whole[name,] = whole.get((name,), 0) + count * seconds
    return {name: amount for (name,), amount in whole.items()}


def proper_names(users: Collection[str]) -> dict[str, str]:
    """Names in full, as the host's user database has them. Blocks."""
    found = {}
    for user in users:
        try:
            found[user] = pwd.getpwnam(user).pw_gecos.partition(",")[0]
        except KeyError:
            continue
    return found
