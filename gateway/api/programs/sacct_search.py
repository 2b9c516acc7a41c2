"""What sacct looks for in memory and in the store, and the lines that it makes of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from accounting.ids import JobId
from broker.model.job import Job, JobFlag, JobState, Run, Step
from broker.ports import HistoryQuery
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs.reading import Options
from gateway.query.accounts import COST
from gateway.query.context import Context
from gateway.query.kept import KeptRows
from gateway.query.privacy import JOBS, Viewer
from gateway.query.rows import AccountRow, Field, Style, body, check_size, head
from gateway.query.sacct import PASSING, AllOf, cut_to, in_order, matching, steps_of
from gateway.query.select import JobRef, spread_arrays
from gateway.query.stored import as_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for in memory and in the store; its methods block."""

    desk: Desk
    snap: Snapshot
    wanted: AllOf
    viewer: Viewer
    ctx: Context
    options: Options

    def jobs(self) -> list[Job]:
        """Those of memory, and of the store those that memory has forgotten, in order."""
        if _elsewhere(self.options, self.snap):
            return []
        stored = _stored(self.desk, self.snap, self.wanted)
        forgotten = (job for job in stored if job.id not in self.snap.jobs)
        found = matching(chain(forgotten, self.snap.jobs.values()), self.wanted, self.ctx)
        shown = found if self.viewer.may(JOBS) else filter(self.viewer.job, found)
        if self.options.has("truncate"):
            shown = (cut_to(job, self.wanted.window, self.ctx.now) for job in shown)
        return in_order(shown)

    def records(self) -> list[Job]:
        """With --duplicates each job behind its earlier attempts."""
        jobs = self.jobs()
        return _with_runs(self.desk, jobs) if self.options.has("duplicates") else jobs


def _stored(desk: Desk, snap: Snapshot, wanted: AllOf) -> Iterator[Job]:
    refs, window = wanted.jobs, wanted.window
    query = HistoryQuery(
        jobs=tuple({ref.job for ref in refs}) if refs is not None else (),
        since=window.start if window.given else None,
        until=window.end if window.given else None,
        uids=tuple(map(int, wanted.users or ())),
        accounts=tuple(wanted.accounts or ()),
        states=_stated(wanted.states or frozenset()),
        names=tuple(wanted.names or ()),
        partitions=tuple(wanted.partitions or ()),
        held=snap.jobs,
    )
    return desk.history.jobs(query)


def _stated(states: frozenset[str]) -> tuple[str, ...]:
    """What records must say; nothing where a state counts that jobs have left since."""
    return () if states & PASSING.keys() else tuple(states)


def _elsewhere(options: Options, snap: Snapshot) -> bool:
    """Whether only other clusters were asked for; sacct finds nothing there and says nothing."""
    clusters = options.text("clusters")
    return clusters is not None and not {snap.site.cluster, "all"} & set(clusters.split(","))


def _each(options: Options, jobs: list[Job]) -> list[Job]:
    """With --array the tasks that wait one by one."""
    return list(spread_arrays(jobs)) if options.has("array") else jobs


@dataclass(frozen=True, slots=True)
class Listing:
    """The rows of jobs and steps as they are to be written."""

    fields: list[Field]
    style: Style
    search: Search
    flags: Collection[str]

    def text(self, kept: KeptRows) -> str:
        """All of the output; blocks. Raises Refused where that is too much."""
        options, named = self.search.options, _by_job(self.search.wanted.jobs or ())
        jobs = _each(options, self.search.records())
        alone = options.has("allocations")
        rows = len(jobs) if alone else sum(1 + len(job.steps) for job in jobs)
        check_size(self.fields, rows, self.style)
        ctx = self._counted(jobs)

        def make(record: Job) -> str:
            job = as_stored(record, self.flags)
            rows = [(job, None)] if alone else _rows_of(job, steps_of(job), named)
            return body(self.fields, rows, ctx, style=self.style)

        top = head(self.fields, self.style)
        if named or options.has("duplicates"):
            return top + "".join(map(make, jobs))
        return top + kept.text((self.fields, self.style, alone), jobs, ctx, make=make)

    def _counted(self, jobs: Iterable[Job]) -> Context:
        """With what the jobs cost where that is to be shown."""
        ctx = self.search.ctx
        if all(field.account.name != COST for field in self.fields):
            return ctx
        return replace(ctx, costs=self.search.desk.costs_of([job.id for job in jobs]))


def _with_runs(desk: Desk, jobs: Iterable[Job]) -> list[Job]:
    """Each job behind its earlier attempts; blocks."""
    return [
        record
        for job in jobs
        for record in (*map(former, desk.history.runs(job.id) if job.restarts else ()), job)
    ]


def former(run: Run) -> Job:
    """An attempt that a requeue followed: its state is REQUEUED unless it had ended before."""
    job = run.job
    if job.state.final:
        return job
    return replace(job, flags=JobFlag.COMPLETING | JobFlag.REQUEUED, state=JobState.RUNNING)


Named = Mapping[JobId, Sequence[JobRef]]


def _by_job(refs: Sequence[JobRef]) -> Named:
    """What was named of each job; nothing if no steps were named, which alone matter here."""
    named: dict[JobId, list[JobRef]] = {}
    if any(ref.step is not None for ref in refs):
        for ref in refs:
            named.setdefault(ref.job, []).append(ref)
    return named


def _rows_of(job: Job, steps: Sequence[Step], named: Named) -> list[AccountRow]:
    """The job's row and those of its steps; a step alone where only steps of it were named."""
    mine = _mine(job, named) if named else []
    if mine and all(ref.step is not None for ref in mine):
        wanted = {ref.step for ref in mine}
        return [(job, step) for step in steps if step.id in wanted]
    return [(job, None), *((job, step) for step in steps)]


def _mine(job: Job, named: Named) -> list[JobRef]:
    ids = {job.id, job.array.base if job.array else job.id}
    tasks = {None, job.array.task if job.array else None}
    return [ref for one in ids for ref in named.get(one, ()) if ref.task in tasks]
