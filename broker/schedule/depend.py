"""Verdicts on dependencies: met, still open, or never to be met."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from accounting.ids import JobId
from broker.model.job import Job, JobState
from broker.model.spec import Dependency, DependencyKind


class Verdict(Enum):
    MET = "met"
    OPEN = "open"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left of a job's dependencies."""

    open: tuple[Dependency, ...]
    """Those still unmet; a failed one stays."""
    never: bool


Find = Callable[[Dependency], list[Job] | None]
"""Records that a dependency names; None if they are not known any more."""


def standing(
    wishes: Iterable[Dependency], find: Find, now: int, *, any_one: bool = False
) -> Standing:
    """Which of the dependencies remain; with `any_one` (`?`) a single met one is enough."""
    verdicts = [(wish, verdict(wish, find(wish), now)) for wish in wishes]
    if any_one and any(found is Verdict.MET for _, found in verdicts):
        return Standing((), never=False)
    left = tuple(wish for wish, found in verdicts if found is not Verdict.MET)
    failed = [found is Verdict.NEVER for _, found in verdicts if found is not Verdict.MET]
    return Standing(left, never=bool(failed) and (all(failed) if any_one else any(failed)))


def circles(own: JobId, wishes: Iterable[Dependency], known: Mapping[JobId, Job]) -> bool:
    """Whether a job that has these dependencies would wait for itself in the end."""
    seen: set[JobId] = set()
    left = [wish.job for wish in wishes]
    while left:
        number = left.pop()
        if number == own:
            return True
        if number is None or number in seen:
            continue
        seen.add(JobId(number))
        other = known.get(JobId(number))
        left += [wish.job for wish in other.after] if other is not None else []
    return False


def verdict(wish: Dependency, records: list[Job] | None, now: int) -> Verdict:
    """One dependency against the records it names."""
    if wish.kind is DependencyKind.SINGLETON:
        return Verdict.OPEN if records else Verdict.MET
    if records is None:
        return Verdict.MET
    return JUDGES[wish.kind](records, wish, now)


def _begun(records: list[Job], wish: Dependency, now: int) -> Verdict:
    for job in records:
        since = job.started or (job.ended if job.state is JobState.CANCELLED else None)
        if since is None or _waiting(job) or since + wish.delay > now:
            return Verdict.OPEN
    return Verdict.MET


def _waiting(job: Job) -> bool:
    return job.state is JobState.PENDING or job.configuring


def _any(records: list[Job], wish: Dependency, now: int) -> Verdict:
    return Verdict.MET if all(job.over for job in records) else Verdict.OPEN


def _ok(records: list[Job], wish: Dependency, now: int) -> Verdict:
    if any(job.over and job.state is not JobState.COMPLETED for job in records):
        return Verdict.NEVER
    return _any(records, wish, now)


def _not_ok(records: list[Job], wish: Dependency, now: int) -> Verdict:
    """Slurm 25.11: the job, or some task of the array, has to fail; judged when all are over."""
    if not all(job.over for job in records):
        return Verdict.OPEN
    failed = any(job.state is not JobState.COMPLETED for job in records)
    return Verdict.MET if failed else Verdict.NEVER


JUDGES: dict[DependencyKind, Callable[[list[Job], Dependency, int], Verdict]] = {
    DependencyKind.AFTER: _begun,
    DependencyKind.AFTERANY: _any,
    DependencyKind.AFTERBURSTBUFFER: _any,
    DependencyKind.AFTEROK: _ok,
    DependencyKind.AFTERCORR: _ok,
    DependencyKind.AFTERNOTOK: _not_ok,
}


def named(
    wish: Dependency, array: Callable[[JobId], list[Job]], job: Callable[[JobId], Job | None]
) -> list[Job] | None:
    """The records behind `12`, `12_3` and `12_*`; None when none is known."""
    if wish.job is None:
        return None
    whole = array(JobId(wish.job))
    if whole and wish.task is not None:
        return _of_task(whole, wish.task)
    if whole:
        return whole
    one = job(JobId(wish.job))
    return None if one is None else [one]


def _of_task(whole: list[Job], task: int) -> list[Job] | None:
    for record in whole:
        if record.array and record.array.task == task:
            return [record]
        if record.array and task in record.array.waiting:
            return [record]
    return None
