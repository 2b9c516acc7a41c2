"""Which jobs sacct lists: its window of time and its other filters, pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from broker.model.job import Job, JobState, Step
from gateway.query import past
from gateway.query import resources as res
from gateway.query.assocs import association_id
from gateway.query.context import Context
from gateway.query.select import JobRef, label_test
from gateway.query.steps import is_shown

FIRST_STEPS = {"batch": -3, "interactive": -3, "extern": -2}
LAST = float("inf")


Test = Callable[[Job], bool]


@dataclass(frozen=True, slots=True)
class Window:
    """The span that is asked about; seconds UTC, None for open ends."""

    start: int | None
    end: int | None
    given: bool = True
    """Whether it counts: not for jobs that were named and no start was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Filters that must all hold; None means any."""

    window: Window
    jobs: tuple[JobRef, ...] | None = None
    states: frozenset[str] | None = None
    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    names: frozenset[str] | None = None
    """In small letters, as partitions are: the database of Slurm's own does not tell them apart."""
    qos: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    constraints: frozenset[str] | None = None
    wckeys: frozenset[str] | None = None
    reasons: frozenset[str] | None = None
    flags: frozenset[str] | None = None
    associations: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    node_counts: tuple[int, int] | None = None
    cpu_counts: tuple[int, int] | None = None
    limits: tuple[int, int] | None = None
    """Seconds."""


def matching(jobs: Iterable[Job], wanted: AllOf, ctx: Context) -> Iterator[Job]:
    """Those of the jobs that are listed, in their order."""
    left = iter(jobs)
    for test in _tests(wanted, ctx):
        left = filter(test, left)
    return left


def _is_named(job: Job, refs: tuple[JobRef, ...]) -> bool:
    array = job.array
    base = array.base if array else job.het.base if job.het else job.id
    task = None if array is None else array.task
    return any(
        (ref.job in {base, job.id}) and ref.task in {None, task} and ref.means_part(job)
        for ref in refs
    )


def _time_test(wanted: AllOf) -> Test:
    """In the queue or running within the window; with states, in one of them then."""
    window, states, named = wanted.window, wanted.states, wanted.jobs is not None
    if states is not None:
        return lambda job: any(_was(job, state, window) for state in states)

    def there(job: Job) -> bool:
        if job.eligible is None and job.started is None and not named:
            return False
        return not window.given or _overlaps(_counts_from(job), job.ended, window)

    return there


def _counts_from(job: Job) -> int:
    """When it could start; of one that did before, and waits to start again, when it came."""
    return job.submitted if job.restarts or job.eligible is None else job.eligible


def _was(job: Job, state: str, window: Window) -> bool:
    """Whether it was in this state within the window, whatever it is now (22.05)."""
    if state in PASSING:
        start, end = PASSING[state](job)
        return start is not None and _overlaps(start, end, window)
    if job.state.label != state:
        return False
    since = job.ended if job.state.final else job.started
    return not window.given or _overlaps(since or job.submitted, job.ended, window)


Span = tuple[int | None, int | None]
"""From when to when, None for never and for until now."""


def _waited(job: Job) -> Span:
    return job.eligible, job.started if past.started(job) else job.ended


def _ran(job: Job) -> Span:
    return job.started if past.started(job) else None, job.ended


PASSING: Mapping[str, Callable[[Job], Span]] = {
    JobState.PENDING.label: _waited,
    JobState.RUNNING.label: _ran,
}
"""States that a job leaves again."""


def _overlaps(start: int, end: int | None, window: Window) -> bool:
    before = window.end is None or start <= window.end
    return before and (window.start is None or end is None or end >= window.start)


def _tests(wanted: AllOf, ctx: Context) -> Iterator[Test]:
    refs = wanted.jobs
    if refs is not None:
        yield lambda job: _is_named(job, refs)
    yield _time_test(wanted)
    if wanted.users is not None:
        uids = frozenset(map(int, wanted.users))
        yield lambda job: job.owner.uid in uids
    for chosen, label in (
        (wanted.accounts, lambda job: job.account),
        (wanted.names, lambda job: job.spec.name.lower()),
        (wanted.qos, lambda job: job.qos),
        (wanted.constraints, lambda job: job.spec.resources.constraint),
        (wanted.wckeys, lambda job: job.spec.wckey),
        (wanted.reasons, lambda job: past.reason(job, ctx)),
        (wanted.groups, lambda job: str(job.owner.gid)),
        (wanted.associations, lambda job: str(association_id(job, ctx))),
    ):
        if chosen is not None:
            yield label_test(chosen, label)
    if wanted.flags is not None:
        flags = wanted.flags
        yield lambda job: not flags.isdisjoint(past.flags(job, ctx).split(","))
    if wanted.partitions is not None:
        partitions = wanted.partitions
        yield lambda job: not partitions.isdisjoint(name.lower() for name in job.partitions)
    yield from _size_tests(wanted, ctx)


def _size_tests(wanted: AllOf, ctx: Context) -> Iterator[Test]:
    if wanted.nodes is not None:
        nodes = wanted.nodes
        yield lambda job: not nodes.isdisjoint(job.last_node_names)
    for span, get in (
        (wanted.node_counts, res.node_count),
        (wanted.cpu_counts, past.cpus),
        (wanted.limits, _seconds_allowed),
    ):
        if span is not None:
            yield _span_test(span, lambda job, get=get: get(job, ctx))  # type: ignore[misc]


def _seconds_allowed(job: Job, _: Context) -> int:
    return job.time_limit if isinstance(job.time_limit, int) else -1


def _span_test(span: tuple[int, int], get: Callable[[Job], int]) -> Test:
    return lambda job: span[0] <= get(job) <= span[1]


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """By id, the elements of an array by index behind its id; those that wait come last."""
    return sorted(jobs, key=_place)


def _place(job: Job) -> tuple[int, float]:
    if job.array is None:
        return job.id, 0
    return job.array.base, LAST if job.array.task is None else job.array.task


def steps_of(job: Job) -> list[Step]:
    """The batch step, then extern, then numbered ones."""
    shown = (step for step in job.steps if is_shown(job, step))
    return sorted(shown, key=_step_place)


def _step_place(step: Step) -> tuple[int, str]:
    place = int(step.id) if step.id.isdigit() else FIRST_STEPS.get(step.id, -1)
    return place, step.id


def cut_to(job: Job, window: Window, now: int) -> Job:
    """As `sacct -T` tells of it: what it and its steps ran outside the window is left out (22.05).

    Without a start nothing is, and of what still runs the window's end is taken for its end.
    """
    if window.start is None or not past.started(job):
        return job
    shown = window.start, now if window.end is None else window.end
    steps = tuple(_cut_step(step, shown) for step in job.steps)
    began, ended = _cut((job.started, job.ended), shown)
    return replace(job, started=began, ended=ended, steps=steps)


def _cut_step(step: Step, shown: tuple[int, int]) -> Step:
    began, ended = _cut((step.started, step.ended), shown)
    if began is not None and ended is not None and began > ended:
        began = ended = None
    return replace(step, started=began, ended=ended)


def _cut(ran: Span, shown: tuple[int, int]) -> Span:
    (began, ended), (start, end) = ran, shown
    if began is None:
        return None, ended
    return max(began, start), end if ended is None else min(ended, end)
