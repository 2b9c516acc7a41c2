"""Each kind of dependency against each state of the job it names."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.job import ArrayPlace, Job, JobFlag, JobState, Owner
from broker.model.spec import Dependency, DependencyKind, StepSpec, TaskSpec
from broker.schedule.depend import Verdict, named, standing, verdict

PENDING = Job(
    id=JobId(1),
    spec=TaskSpec(name="x", batch=StepSpec(name="batch")),
    owner=Owner(1, 1, "u", "u"),
    account="root",
    qos="normal",
    partitions=("ec2",),
    submitted=0,
    time_limit=60,
    want=Tres(cpu=1),
)
BOOTING = replace(PENDING, state=JobState.RUNNING, flags=JobFlag.CONFIGURING, started=50)
RUNNING = replace(PENDING, state=JobState.RUNNING, started=50)
ENDING = replace(RUNNING, state=JobState.FAILED, flags=JobFlag.COMPLETING, ended=90)
DONE = replace(RUNNING, state=JobState.COMPLETED, ended=90)
FAILED = replace(RUNNING, state=JobState.FAILED, ended=90)
CANCELLED = replace(PENDING, state=JobState.CANCELLED, ended=90)
MET, OPEN, NEVER = Verdict


@pytest.mark.parametrize(
    ("kind", "records", "found"),
    [
        ("after", [PENDING], OPEN),
        ("after", [BOOTING], OPEN),
        ("after", [RUNNING], MET),
        ("after", [CANCELLED], MET),
        ("after", [RUNNING, PENDING], OPEN),
        ("afterany", [RUNNING], OPEN),
        ("afterany", [ENDING], OPEN),
        ("afterany", [FAILED, DONE], MET),
        ("afterok", [RUNNING], OPEN),
        ("afterok", [DONE], MET),
        ("afterok", [FAILED], NEVER),
        ("afterok", [FAILED, RUNNING], NEVER),
        ("afterok", [CANCELLED], NEVER),
        ("afternotok", [FAILED, RUNNING], OPEN),
        ("afternotok", [FAILED, DONE], MET),
        ("afternotok", [DONE, DONE], NEVER),
        ("aftercorr", [DONE], MET),
        ("aftercorr", [FAILED], NEVER),
        ("afterany", None, MET),
        ("afterok", None, MET),
        ("singleton", [RUNNING], OPEN),
        ("singleton", [], MET),
    ],
)
def test_a_dependency_is_met_open_or_never_to_be_met(
    kind: str, records: list[Job] | None, found: Verdict
) -> None:
    wish = Dependency(kind=DependencyKind(kind), job=None if kind == "singleton" else 1)
    assert verdict(wish, records, 100) is found


@pytest.mark.parametrize(("now", "found"), [(109, OPEN), (110, MET)])
def test_after_with_minutes_counts_from_the_start(now: int, found: Verdict) -> None:
    wish = Dependency(kind=DependencyKind.AFTER, job=1, delay=60)
    assert verdict(wish, [RUNNING], now) is found


@pytest.mark.parametrize(
    ("any_one", "jobs", "still", "never"),
    [
        (False, (DONE, RUNNING), 1, False),
        (False, (FAILED, RUNNING), 2, True),
        (True, (DONE, RUNNING), 0, False),
        (True, (FAILED, RUNNING), 2, False),
        (True, (FAILED, FAILED), 2, True),
    ],
)
def test_all_have_to_be_met_or_with_a_question_mark_one(
    any_one: bool, jobs: tuple[Job, Job], still: int, never: bool
) -> None:
    wishes = [Dependency(kind=DependencyKind.AFTEROK, job=number) for number in (0, 1)]
    left = standing(wishes, lambda wish: [jobs[wish.job or 0]], 100, any_one=any_one)
    assert (len(left.open), left.never) == (still, never)


@pytest.mark.parametrize(
    ("task", "found"), [(None, [7, 8]), (0, [8]), (1, [7]), (2, [7]), (5, None)]
)
def test_a_task_is_found_in_its_own_record_or_in_the_arrays(
    task: int | None, found: list[int] | None
) -> None:
    base = ArrayPlace(base=JobId(7), task=None, waiting=(1, 2))
    whole = [
        replace(PENDING, id=JobId(7), array=base),
        replace(RUNNING, id=JobId(8), array=replace(base, task=0, waiting=())),
    ]
    wish = Dependency(kind=DependencyKind.AFTERANY, job=7, task=task)
    records = named(wish, lambda _: whole, lambda _: None)
    assert (None if records is None else [job.id for job in records]) == found
