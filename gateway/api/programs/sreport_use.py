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

COLUMNS = ("account", "user", "qos", "partition", "size", "tres")
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """TRES-seconds by COLUMNS; `whole` is what there was of each TRES."""

    found: Mapping[Key, int]
    whole: Mapping[str, int] = field(default_factory=dict)

    def by(self, *columns: str) -> dict[Any, int]:
        """Summed up by some of the columns."""
        places = [COLUMNS.index(name) for name in columns]
        total: dict[Key, int] = {}
        for key, amount in self.found.items():
            short = tuple(key[place] for place in places)
            total[short] = total.get(short, 0) + amount
        return total

    def within(self, partitions: Collection[str]) -> "Use":
        """Of some partitions alone; of all where none is named."""
        if not partitions:
            return self
        place = COLUMNS.index("partition")
        return replace(self, found={k: n for k, n in self.found.items() if k[place] in partitions})


def used_by(desk: Desk, ctx: Context, window: tuple[int, int]) -> Use:
    """Blocks. In whole hours, as Slurm has it; running jobs to the second."""
    start, end = window
    found: dict[Key, int] = dict(desk.history.used(since=start, until=end, by=COLUMNS))
    first, last = start - start % HOUR, min(end - end % HOUR, ctx.now)
    for job in ctx.jobs.values():
        if job.shares and job.started is not None:
            seconds = min(last, ctx.now) - max(first, job.started)
            _add_running(found, job, seconds=seconds, site=ctx.site)
    return Use(found)


def _add_running(found: dict[Key, int], job: Job, *, seconds: int, site: Site) -> None:
    if seconds <= 0:
        return
    billed = units(site, job.alloc, job.partition)
    held = counts(job.alloc) | {"billing": billed, WALL: 1}
    for name, count in held.items():
        key = job.account, job.owner.user, job.qos, job.partition, job.alloc.cpu, name
        found[key] = found.get(key, 0) + count * seconds


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
