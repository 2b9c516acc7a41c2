"""What was used within a window: the ledger's sums, and what runs now."""

import pwd
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accounting.rollup import HOUR, WALL, counts
from broker.model.job import Job
from broker.model.site import Site, units
from gateway.api.desk import Desk
from gateway.query.context import Context

Key = tuple[Any, ...]
Columns = tuple[str, ...]


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

    def within(self, partitions: Collection[str]) -> "Use":
        """Of some partitions alone; of all where none is named."""
        if not partitions:
            return self
        place = self.columns.index("partition")
        return replace(self, found={k: n for k, n in self.found.items() if k[place] in partitions})


def used_by(
    desk: Desk, ctx: Context, *, window: tuple[int, int], asked: tuple[Columns, Columns]
) -> Use:
    """By the columns and of the TRES that are asked for. Blocks.

    In whole hours, as Slurm has it; running jobs to the second.
    """
    (start, end), (by, tres) = window, asked
    columns = tuple(dict.fromkeys([*by, "tres", "partition"]))
    found = dict(desk.history.used(since=start, until=end, by=columns, tres=tres))
    first, last = start - start % HOUR, min(end - end % HOUR, ctx.now)
    for job in ctx.jobs.values():
        seconds = last - max(first, job.started or last) if job.shares else 0
        for name, amount in _running(job, seconds, ctx.site):
            key = tuple(_value(job, column, name) for column in columns)
            found[key] = found.get(key, 0) + (amount if name in tres else 0)
    return Use(columns, found)


def _running(job: Job, seconds: int, site: Site) -> list[tuple[str, int]]:
    if seconds <= 0:
        return []
    held = counts(job.alloc) | {"billing": units(site, job.alloc, job.partition), WALL: 1}
    return [(name, count * seconds) for name, count in held.items()]


def _value(job: Job, column: str, tres: str) -> str | int:
    known: dict[str, str | int] = {
        "account": job.account,
        "user": job.owner.user,
        "qos": job.qos,
        "partition": job.partition,
        "size": job.alloc.cpu,
        "tres": tres,
    }
    return known[column]


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
