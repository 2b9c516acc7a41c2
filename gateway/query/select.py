"""Which jobs a reader asks for, and in what order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accounting.ids import JobId
from broker.model.job import Job, JobState
from broker.model.reservation import names_of
from gateway.query.column import JobGetter
from gateway.query.context import Context
from gateway.query.fields import BY_LETTER
from gateway.query.job import end, state_code, waits
from gateway.query.kinds import MOMENT

DEFAULT_SORT = "P,t,-p"
"""squeue's order: partition, state, then priority, the highest first."""


class SortError(ValueError):
    """A letter that nothing can be sorted by."""


@dataclass(frozen=True, slots=True)
class JobRef:
    """A job as named on a command line: `12`, `12_3`, `12.0`, `12+1`."""

    job: JobId
    """Of `12+1` the component's own, 13."""
    task: int | None = None
    step: str | None = None
    part: int | None = None
    """Which component of a heterogeneous job is meant alone."""

    @property
    def leader(self) -> JobId:
        return JobId(self.job - (self.part or 0))

    def means_part(self, job: Job) -> bool:
        """Whether no component is named, or the job is that one."""
        return self.part is None or self.part == (job.het.offset if job.het else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for; None means any."""

    jobs: tuple[JobRef, ...] | None = None
    users: frozenset[str] | None = None
    """Names, or uids as text."""
    not_user: int | None = None
    states: frozenset[str] | None = None
    """Long words; None means what has not ended."""
    all_states: bool = False
    partitions: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()
    """Partitions that are not shown."""
    accounts: frozenset[str] | None = None
    names: frozenset[str] | None = None
    """In lower case; case does not count (22.05)."""
    qos: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    licenses: frozenset[str] | None = None
    reservations: frozenset[str] | None = None
    over: int | None = None
    """Seconds that it must have run at least."""
    under: int | None = None


def select(jobs: Iterable[Job], wanted: Wanted, ctx: Context) -> list[Job]:
    """The jobs that pass every filter, in the order of the records."""
    tests = list(_tests(wanted, ctx))
    if not tests:
        return list(jobs)
    if len(tests) == 1:
        return [job for job in jobs if tests[0](job)]
    return [job for job in jobs if all(test(job) for test in tests)]


Test = Callable[[Job], bool]


def _tests(wanted: Wanted, ctx: Context) -> Iterator[Test]:
    yield from _who_tests(wanted)
    yield from _state_tests(wanted, ctx)
    yield from _place_tests(wanted)


def _who_tests(wanted: Wanted) -> Iterator[Test]:
    if wanted.jobs is not None:
        yield _is_one_of(wanted.jobs)
    if wanted.users is not None:
        users = wanted.users
        yield lambda job: job.owner.user in users or str(job.owner.uid) in users
    if wanted.not_user is not None:
        yield lambda job: job.owner.uid != wanted.not_user
    if wanted.names is not None:
        names = wanted.names
        yield lambda job: job.spec.name.lower() in names


def _is_one_of(refs: tuple[JobRef, ...]) -> Test:
    whole = {ref.job for ref in refs if ref.task is None and ref.part is None}
    parts = {(ref.leader, ref.part) for ref in refs if ref.part is not None}
    elements = {(ref.job, ref.task) for ref in refs if ref.task is not None}

    def test(job: Job) -> bool:
        array = job.array
        leader, offset = (job.het.base, job.het.offset) if job.het else (job.id, 0)
        if job.id in whole or leader in whole or (leader, offset) in parts:
            return True
        if array is not None and array.base in whole:
            return True
        if array is None or not elements:
            return False
        tasks = array.waiting if array.task is None else (array.task,)
        return any((array.base, task) in elements for task in tasks)

    return test


def _state_tests(wanted: Wanted, ctx: Context) -> Iterator[Test]:
    if wanted.states is not None:
        states = wanted.states
        yield lambda job: job.shown_state in states
    elif not wanted.all_states:
        yield lambda job: not job.state.final or job.completing
    if wanted.over is not None or wanted.under is not None:
        low, high = wanted.over or 0, wanted.under
        yield lambda job: _runs_within(job, ctx, low=low, high=high)


def _runs_within(job: Job, ctx: Context, *, low: int, high: int | None) -> bool:
    if job.started is None or job.state is not JobState.RUNNING:
        return False
    ran = ctx.now - job.started
    return ran >= low and (high is None or ran <= high)


def _place_tests(wanted: Wanted) -> Iterator[Test]:
    if wanted.hidden:
        hidden = wanted.hidden
        yield lambda job: not hidden.issuperset(job.partitions)
    if wanted.partitions is not None:
        partitions = wanted.partitions
        yield lambda job: not partitions.isdisjoint(job.partitions)
    if wanted.nodes is not None:
        nodes = wanted.nodes
        yield lambda job: job.state.holds_nodes and not nodes.isdisjoint(job.last_node_names)
    yield from _label_tests(wanted)


def _label_tests(wanted: Wanted) -> Iterator[Test]:
    for chosen, label in (
        (wanted.accounts, lambda job: job.account),
        (wanted.qos, lambda job: job.qos),
    ):
        if chosen is not None:
            yield label_test(chosen, label)
    if wanted.reservations is not None:
        names = wanted.reservations
        yield lambda job: not names.isdisjoint(names_of(job.spec.reservation))
    if wanted.licenses is not None:
        licenses = wanted.licenses
        yield lambda job: not licenses.isdisjoint(_license_names(job))


def label_test(chosen: frozenset[str], label: Callable[[Job], str | None]) -> Test:
    """Whether it has one of these labels."""
    return lambda job: label(job) in chosen


def _license_names(job: Job) -> list[str]:
    return [word.partition(":")[0] for word in (job.spec.licenses or "").split(",")]


# ---------------------------------------------------------------- arrays and partitions


def named_elements(jobs: Iterable[Job], refs: Sequence[JobRef]) -> Iterator[Job]:
    """Of an array that waits only the tasks that were named before all of it was (22.05)."""
    for job in jobs:
        array = job.array
        tasks = _named_tasks(job, refs) & {*array.waiting} if array and array.waiting else set()
        if array is None or not tasks:
            yield job
            continue
        task = min(tasks) if len(tasks) == 1 else None
        waiting = () if task is not None else tuple(sorted(tasks))
        yield replace(job, array=replace(array, task=task, waiting=waiting, limit=None))


def _named_tasks(job: Job, refs: Sequence[JobRef]) -> set[int]:
    mine = {job.id, job.array.base if job.array else job.id}
    tasks = set()
    for ref in refs:
        if ref.job in mine and ref.task is None:
            break
        if ref.job in mine and ref.task is not None:
            tasks.add(ref.task)
    return tasks


def spread_arrays(jobs: Iterable[Job]) -> Iterator[Job]:
    """A record for each waiting element in place of the array's (`squeue -r`)."""
    for job in jobs:
        array = job.array
        if array is None or array.task is not None:
            yield job
            continue
        for task in array.waiting:
            yield replace(job, array=replace(array, task=task, waiting=()))


def gather_arrays(jobs: Sequence[Job]) -> Iterator[Job]:
    """One row for all tasks of an array that wait, with each of their reasons (25.11)."""
    apart: dict[int, list[Job]] = {}
    for job in jobs:
        if job.array is not None and job.array.task is not None and waits(job):
            apart.setdefault(job.array.base, []).append(job)
    done: set[int] = set()
    for job in jobs:
        array = job.array
        if array is None or not waits(job) or array.base not in apart:
            yield job
        elif array.base not in done:
            done.add(array.base)
            others = [one for one in apart[array.base] if one.id != job.id]
            yield _gathered(job, others) if others else job


def _gathered(first: Job, others: list[Job]) -> Job:
    arrays = [job.array for job in (first, *others) if job.array is not None]
    tasks = {task for array in arrays for task in (*array.waiting, array.task) if task is not None}
    reasons = dict.fromkeys(job.reason for job in (first, *others))
    place = replace(arrays[0], task=None, waiting=tuple(sorted(tasks)))
    return replace(first, array=place, reason=",".join(reasons))


def spread_partitions(jobs: Iterable[Job]) -> Iterator[Job]:
    """A record for each partition that a job may go to (`squeue -P`)."""
    for job in jobs:
        if len(job.partitions) < 2:
            yield job
            continue
        for partition in job.partitions:
            yield replace(job, partitions=(partition,))


# ---------------------------------------------------------------- order

LAST = float("inf")


def _id_value(job: Job, _: Context) -> tuple[int, float]:
    """By array, then by index; those that still wait come behind the others."""
    if job.array is None:
        return job.id, LAST
    return job.array.base, LAST if job.array.task is None else job.array.task


def _key(get: JobGetter, *, none_last: bool) -> Callable[[Job, Context], Any]:
    def key(job: Job, ctx: Context) -> tuple[bool, Any]:
        value = get(job, ctx)
        if value is None:
            return none_last, ""
        return not none_last, value if isinstance(value, int) else str(value)

    return key


SORT_VALUES: dict[str, Callable[[Job, Context], Any]] = {
    "i": _id_value,
    "p": lambda job, _: job.priority,
    "P": lambda job, _: job.partition,
    "t": state_code,
    "e": _key(end, none_last=True),
}


UNSORTED = frozenset("abkoqrswxyAEFKRWXYZ")
"""Letters of columns that Slurm does not sort by (22.05)."""


def ordered(jobs: list[Job], text: str, ctx: Context) -> list[Job]:
    """Sorted by letters, the first counts most; `-` turns an order round, and that of equal jobs.

    Raises SortError.
    """
    if text == DEFAULT_SORT:
        return sorted(jobs, key=_default_key)
    keys = [(_sort_value(letter), down) for letter, down in sort_letters(text)]
    found = sorted(jobs, key=lambda job: job.id, reverse=any(down for _, down in keys))
    for value, down in reversed(keys):
        found.sort(key=lambda job, value=value: value(job, ctx), reverse=down)  # type: ignore[misc]
    return found


def _default_key(job: Job) -> tuple[str, str, int, int]:
    return job.partition, state_code(job), -job.priority, -job.id


def sort_letters(text: str) -> list[tuple[str, bool]]:
    """The letters of `--sort`, and whether each counts downwards."""
    found = []
    down = False
    for char in text:
        if char in "-+":
            down = char == "-"
        elif char not in ", #":
            found.append((char, down))
            down = False
    return found


def _sort_value(letter: str) -> Callable[[Job, Context], Any]:
    special = SORT_VALUES.get(letter)
    if special is not None:
        return special
    column = BY_LETTER.get(letter)
    if column is None or letter in UNSORTED:
        raise SortError(letter)
    return _key(column.get, none_last=column.kind is MOMENT)


def check_sort(text: str) -> None:
    """Raises SortError for the last letter that is no key: Slurm reads from the end (22.05)."""
    for letter, _down in reversed(sort_letters(text)):
        _sort_value(letter)
