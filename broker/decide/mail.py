"""Which mails follow from what happened to a job, with Slurm's subjects (25.11)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from broker.model import events as ev
from broker.model.job import Job, JobState
from broker.model.spec import UNLIMITED
from sbatch_shim.grammar.values import show_long

WORDS = {
    "BEGIN": "Began",
    "END": "Ended",
    "FAIL": "Failed",
    "REQUEUE": "Requeued",
    "INVALID_DEPEND": "Invalid dependency",
    "TIME_LIMIT": "Reached time limit",
    "TIME_LIMIT_90": "Reached 90% of time limit",
    "TIME_LIMIT_80": "Reached 80% of time limit",
    "TIME_LIMIT_50": "Reached 50% of time limit",
}
NEVER = "DependencyNeverSatisfied"
PERCENTS = (90, 80, 50)
QUIET_ENDS = (JobState.COMPLETED, JobState.CANCELLED)
"""Ends that are no failure to Slurm."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One to be sent; `kind` is the word of --mail-type that asked for it."""

    to: str
    subject: str
    kind: str
    job: Job


def mails(fact: ev.Event, job: Job, elements: Iterable[Job]) -> Iterator[Mail]:
    """What the job's user asked to be told of the fact; `elements` are those of its array.

    `job` is the record as the fact left it.
    """
    asked = {word.upper() for word in job.spec.mail_types}
    if not asked - {"NONE", "ARRAY_TASKS"}:
        return
    whole = job.array is not None and "ARRAY_TASKS" not in asked
    tasks = list(elements) if whole else [job]
    for kind in _kinds(fact, tasks, asked):
        if whole and not _speaks_for_array(kind, job, tasks):
            continue
        subject = f"Slurm {_name(job, whole=whole)} {WORDS[kind]}{_time(kind, job, fact.at)}"
        if kind in ("END", "FAIL"):
            subject += _summary(job, tasks) if whole else f", {job.state.label}, {_code(job)}"
        yield Mail(job.spec.mail_user or job.owner.user, subject, kind, job)


def _kinds(fact: ev.Event, tasks: Sequence[Job], asked: set[str]) -> list[str]:
    """Kinds of mail that were asked for and are due; a failure is told as an end where only
    ends were asked for. An array failed if one of its tasks did.
    """
    match fact:
        case ev.Started():
            due = ["BEGIN"]
        case ev.Requeued():
            due = ["REQUEUE"]
        case ev.Waits() if fact.reason == NEVER:
            due = ["INVALID_DEPEND"]
        case ev.LimitNear():
            due = [f"TIME_LIMIT_{fact.percent}"]
        case ev.Ended() if all(one.state in QUIET_ENDS or not one.state.final for one in tasks):
            due = ["END"]
        case ev.Ended():
            limit = ["TIME_LIMIT"] if fact.state is JobState.TIMEOUT else []
            due = [*limit, "FAIL" if "FAIL" in asked else "END"]
        case _:
            due = []
    return [kind for kind in due if kind in asked]


def _speaks_for_array(kind: str, job: Job, elements: Iterable[Job]) -> bool:
    """One mail for all: with the first task that begins, with the last that ends."""
    if kind == "BEGIN":
        others = (one for one in elements if one.id != job.id)
        return all(one.started is None or one.configuring for one in others)
    if kind in ("END", "FAIL"):
        return all(one.id == job.id or one.state.final for one in elements)
    return True


def _name(job: Job, *, whole: bool) -> str:
    name = f"Name={job.spec.name}"
    if job.array is None:
        return f"Job_id={job.id} {name}"
    if whole or job.array.task is None:
        return f"Array Summary Job_id={job.array.base}_* ({job.id}) {name}"
    return f"Array Task Job_id={job.array.base}_{job.array.task} ({job.id}) {name}"


def _time(kind: str, job: Job, at: int) -> str:
    if job.started is None:
        return ""
    if kind == "BEGIN":
        return f", Queued time {show_long(max(0, job.started - job.submitted))}"
    ended = job.ended if kind in ("END", "FAIL", "REQUEUE") and job.ended is not None else at
    return f", Run time {show_long(max(0, ended - job.started - job.suspended_for))}"


def _code(job: Job) -> str:
    return f"ExitCode {job.exit.code}"


def _summary(job: Job, tasks: Sequence[Job]) -> str:
    """How the tasks of an array ended: the least and the greatest of what wait() gave of them."""
    ends = sorted((one.exit.code << 8 | one.exit.signal, one.exit) for one in tasks)
    least, most = ends[0][1], ends[-1][1]
    if most.signal:
        told = f", Mixed, MaxSignal [{most.signal}]"
    elif least.signal:
        told = f", Mixed, MaxExitCode [{most.code}]"
    else:
        state = "Mixed" if most.code and not least.code else job.state.label
        told = f", {state}, ExitCode [{least.code}-{most.code}]"
    again = any(one.restarts for one in tasks)
    return told + (", with requeued tasks" if again else "")


def near_limit(job: Job, now: int) -> ev.LimitNear | None:
    """Told once for each percentage that was asked for and is reached, the highest first."""
    if job.started is None or job.time_limit == UNLIMITED or job.state is not JobState.RUNNING:
        return None
    asked = {word.upper() for word in job.spec.mail_types}
    ran = 100 * (now - job.started - job.suspended_for)
    for percent in PERCENTS:
        wanted = f"TIME_LIMIT_{percent}" in asked and percent > job.limit_percent
        if wanted and ran >= percent * int(job.time_limit):
            return ev.LimitNear(job=job.id, at=now, percent=percent)
    return None
