"""Lines of jobs that wait or have ended, made once for all readers of long listings."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

from broker.model.job import Job
from broker.model.site import Site
from gateway.query import views
from gateway.query.context import Context
from gateway.query.job import waits
from gateway.query.layout import Layout
from gateway.query.moments import RELATIVE
from gateway.query.rows import BRIEF, DEFAULT, Field, Style, read_fields
from sbatch_shim.grammar.arrays import BITSTR_LEN

STEADY = tuple(map(views.squeue_letters, (views.SQUEUE_DEFAULT, views.SQUEUE_LONG)))
"""Layouts in which the line of a job that waits hangs on its record and on the site alone."""
SPARE = 1000


class KeptLines:
    """Keeps the lines while the record is the same object; a changed job has a new one."""

    def __init__(self) -> None:
        self.site: Site | None = None
        self.kept: dict[Layout[Job], dict[int, tuple[Job, str]]] = {}
        """By identity of the record, which cannot pass to another while it is kept here."""

    def lines(self, layout: Layout[Job], jobs: Sequence[Job], ctx: Context) -> list[str]:
        """As `layout.lines` makes them."""
        if layout not in STEADY or ctx.array_width != BITSTR_LEN:
            return layout.lines(jobs, ctx)
        if ctx.site is not self.site:
            self.site, self.kept = ctx.site, {layout: {} for layout in STEADY}
        kept = self.kept[layout]
        new = [job for job in jobs if id(job) not in kept]
        pairs = zip(new, layout.lines(new, ctx), strict=True)
        made = {id(job): (job, line) for job, line in pairs}
        found = [(kept.get(id(job)) or made[id(job)])[1] for job in jobs]
        kept.update((key, pair) for key, pair in made.items() if _stays(pair[0], ctx))
        if len(kept) > 2 * len(ctx.jobs) + SPARE:
            kept.clear()
        return found


def _stays(job: Job, ctx: Context) -> bool:
    """Whether it waits, and is no record that was made for one listing."""
    return waits(job) and ctx.jobs.get(job.id) is job


Columns = tuple[tuple[str, int], ...]
"""Names and widths."""


def _columns(fields: Iterable[Field]) -> Columns:
    return tuple([(field.account.name, field.width) for field in fields])


STEADY_ROWS = tuple(_columns(read_fields(text)) for text in (DEFAULT, BRIEF))
"""Columns of sacct in which also a job that waits hangs on its record and on the site alone."""
MOST_LAYOUTS = 6
SPARE_ROWS = 12_000
"""As many as the store keeps of the jobs that memory has forgotten."""
UNSTEADY = frozenset(("Cost",))
"""Columns that hang on more than the record of a job that has ended."""


class KeptRows:
    """Keeps sacct's lines of a job, those of its steps behind it, while its record is the same.

    May be used by several threads: at worst a line is made twice.
    """

    def __init__(self) -> None:
        self.site: Site | None = None
        self.kept: OrderedDict[Hashable, dict[int, tuple[Job, str]]] = OrderedDict()
        """By layout, then as in `KeptLines`."""

    def text(
        self,
        layout: tuple[Sequence[Field], Style, Hashable],
        jobs: Sequence[Job],
        ctx: Context,
        *,
        make: Callable[[Job], str],
    ) -> str:
        """The lines of all; `layout` and the context say all that `make` looks at."""
        columns = _columns(layout[0])
        if ctx.time_format == RELATIVE or any(name in UNSTEADY for name, _ in columns):
            return "".join(map(make, jobs))
        kept = self._of((columns, *layout[1:], *way(ctx)), ctx)
        also_waiting = columns in STEADY_ROWS
        parts = []
        for job in jobs:
            known = kept.get(id(job))
            if known is None:
                known = job, make(job)
                if job.over or (also_waiting and _stays(job, ctx)):
                    kept[id(job)] = known
            parts.append(known[1])
        if len(kept) > 2 * len(ctx.jobs) + SPARE_ROWS:
            kept.clear()
        return "".join(parts)

    def _of(self, key: Hashable, ctx: Context) -> dict[int, tuple[Job, str]]:
        if ctx.site is not self.site:
            self.site, self.kept = ctx.site, OrderedDict()
        kept = self.kept.pop(key, {})
        self.kept[key] = kept
        while len(self.kept) > MOST_LAYOUTS:
            self.kept.popitem(last=False)
        return kept


def way(ctx: Context) -> tuple[Hashable, ...]:
    """What of the context a line of a job that has ended hangs on."""
    flags = ctx.noconvert, ctx.expand_patterns
    return ctx.zone, ctx.time_format, ctx.array_width, ctx.unit, *flags
