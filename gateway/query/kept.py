"""Lines of jobs that wait, made once for all readers of a long queue."""

from collections.abc import Sequence

from broker.model.job import Job
from broker.model.site import Site
from gateway.query import views
from gateway.query.context import Context
from gateway.query.job import waits
from gateway.query.layout import Layout
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
