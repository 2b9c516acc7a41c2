"""Jobs that go back to the queue, wait for others, or are changed while they wait."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.errors import Conflict
from broker.model.job import Hold
from broker.model.spec import ArraySpec, Dependency, DependencyKind, Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ELASTIC, ROOT, START, Bench

ALL_OF_IT = Resources(min_nodes=4, exclusive=True)
MIN_JOB_AGE = DECLARED.min_job_age


def wish(kind: str, job: JobId) -> Dependency:
    return Dependency(kind=DependencyKind(kind), job=job)


def hold(bench: Bench, job: JobId) -> None:
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=Hold.USER))


def test_a_job_that_is_over_runs_again_when_it_is_requeued() -> None:
    bench = Bench(DECLARED)
    job = bench.submit()
    bench.run(job, code=3)
    assert bench.step(cmd.Requeue(target=cmd.Target(job), by=ALICE)) == [None]
    found = bench.world.jobs[job]
    assert (found.shown_state, found.restarts, found.ended) == ("PENDING", 1, None)
    bench.step(seconds=DECLARED.requeue_delay)
    assert bench.world.jobs[job].key == f"{job}/2"


def test_a_job_that_is_cancelled_in_the_step_of_its_submission_never_starts() -> None:
    bench = Bench(DECLARED)
    spec = TaskSpec(name="x", batch=StepSpec(name="batch"))
    submit = cmd.Submit(spec=spec, owner=ALICE, request="r")
    job = JobId(bench.world.next_job_id)
    replies = bench.step(submit, cmd.Cancel(target=cmd.Target(job), by=ALICE), full=False)
    assert replies == [job, None]
    assert bench.state(job) == "CANCELLED"


def requeue_held(bench: Bench, job: JobId) -> None:
    bench.step(cmd.Requeue(target=cmd.Target(job), by=ALICE, hold=True))
    if bench.world.jobs[job].completing:
        bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})


def requeue_held_when_over(bench: Bench, job: JobId) -> None:
    bench.run(job)
    requeue_held(bench, job)


def hold_then_requeue_by_loss(bench: Bench, job: JobId) -> None:
    hold(bench, job)
    bench.step(cmd.Requeue(target=cmd.Target(job), by=ALICE))
    hold(bench, job)
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})


@pytest.mark.parametrize(
    ("back", "reason"),
    [
        (requeue_held, "job requeued in held state"),
        (requeue_held_when_over, "job requeued in held state"),
        (hold_then_requeue_by_loss, "JobHeldUser"),
    ],
)
def test_a_held_job_that_comes_back_says_that_it_is_held(
    back: Callable[[Bench, JobId], None], reason: str
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit()
    back(bench, job)
    bench.step()
    found = bench.world.jobs[job]
    assert (found.shown_state, found.reason, found.priority) == ("PENDING", reason, 0)


def test_a_job_held_while_its_machine_boots_stays_held_when_that_does_not_come() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    hold(bench, job)
    (launch,) = bench.effects
    bench.step(rep.NotLaunched(group=launch.group, tried=()))  # type: ignore[union-attr]
    assert bench.world.jobs[job].reason == "JobHeldUser"
    assert not bench.world.nodes


@pytest.mark.parametrize("change", [{"partitions": ("down",)}, {"begin": START + 99}])
def test_what_decides_where_a_job_runs_is_changed_only_while_it_waits(
    change: dict[str, object],
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit()
    (reply,) = bench.step(cmd.Update(target=cmd.Target(job), by=ROOT, **change))  # type: ignore[arg-type]
    assert isinstance(reply, Conflict)


def test_two_dependencies_may_name_the_same_job() -> None:
    bench = Bench(DECLARED)
    first = bench.submit()
    second = bench.submit(after=(wish("after", first), wish("afterany", first)))
    bench.run(first)
    assert bench.state(second) == "CONFIGURING"
    assert not bench.world.waiters


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize(
    ("kind", "ends"), [("afterok", "DependencyNeverSatisfied"), ("afternotok", "None")]
)
def test_how_an_arrays_first_task_ended_is_known_when_its_last_one_ends(
    kind: str, ends: str, restart: bool
) -> None:
    bench = Bench(DECLARED)
    base = bench.submit(array=ArraySpec(tasks=(0, 1)), time_limit=7200)
    second = bench.submit(after=(wish(kind, base),))
    bench.run(JobId(base + 1), code=1)
    bench.step(seconds=MIN_JOB_AGE + 1)
    bench.step(seconds=MIN_JOB_AGE + 1)
    if restart:
        now = bench.now
        bench = Bench(DECLARED, bench.store)
        bench.now = now
    bench.run(base)
    assert bench.world.jobs[second].reason == ends


@pytest.mark.parametrize("kill", [True, False])
def test_a_task_whose_counterpart_failed_is_given_up_or_says_that_it_never_starts(
    kill: bool,
) -> None:
    bench = Bench(DECLARED)
    first = bench.submit(array=ArraySpec(tasks=(1, 2)))
    after = (wish("aftercorr", first),)
    second = bench.submit(array=ArraySpec(tasks=(1, 2)), after=after, kill_on_invalid_dep=kill)
    bench.run(JobId(first + 1), code=1)
    bench.run(first)
    if not kill:
        bench.step(seconds=MIN_JOB_AGE + 1)
    states = {
        task: (job.shown_state, job.reason)
        for job in bench.world.array_jobs(second)
        if job.array
        for task in (job.array.waiting or (job.array.task,))
    }
    lost = ("CANCELLED" if kill else "PENDING", "DependencyNeverSatisfied")
    assert states == {1: lost, 2: ("CONFIGURING", "None")}


def test_a_dependency_laid_on_later_is_judged_at_once() -> None:
    bench = Bench(DECLARED)
    first = bench.submit()
    bench.run(first, code=1)
    second = bench.submit(hold=True)
    after = (wish("afterok", first),)
    bench.step(cmd.Update(target=cmd.Target(second), by=ROOT, after=after))
    bench.step(cmd.SetHold(target=cmd.Target(second), by=ALICE, hold=None))
    assert bench.world.jobs[second].reason == "DependencyNeverSatisfied"


def test_a_step_cannot_be_added_to_a_whole_array() -> None:
    bench = Bench(DECLARED)
    base = bench.submit(array=ArraySpec(tasks=(0, 1)), hold=True)
    (reply,) = bench.step(cmd.AddStep(job=base, by=ALICE, step=StepSpec(name="x"), request="step"))
    assert isinstance(reply, Conflict)


def test_jobs_that_only_wait_do_not_keep_the_ones_behind_them_from_being_looked_at() -> None:
    bench = Bench(DECLARED)
    whole = bench.submit(resources=Resources(min_nodes=4, max_nodes=4, exclusive=True))
    for _ in range(30):
        bench.submit(after=(wish("afterok", whole),))
    later = bench.submit(time_limit=60)
    bench.run(whole, code=1)
    assert bench.state(later) == "CONFIGURING"


def test_nodes_for_one_user_alone_are_not_given_to_two_in_one_pass() -> None:
    alone = tuple(replace(p, exclusive_user=True) for p in DECLARED.partitions)
    bench = Bench(replace(DECLARED, partitions=alone))
    jobs = [bench.submit(owner, hold=True) for owner in (ALICE, BOB, ALICE)]
    release = [cmd.SetHold(target=cmd.Target(job), by=ROOT, hold=None) for job in jobs]
    bench.step(*release)
    nodes = [bench.world.jobs[job].shares[0].node for job in jobs]
    assert nodes == ["n1", "n2", "n1"]


@pytest.mark.parametrize(
    ("asked", "reason", "again"),
    [
        ({"partitions": ("down",)}, "PartitionDown", False),
        ({"time_limit": 30 * 86400}, "PartitionTimeLimit", False),
        (
            {"partitions": ("down", "ec2"), "time_limit": 60, "resources": ALL_OF_IT},
            "Resources",
            True,
        ),
    ],
)
def test_a_new_job_that_no_room_would_start_calls_for_no_look_at_the_whole_queue(
    asked: dict[str, Any], reason: str, again: bool
) -> None:
    bench = Bench(DECLARED)
    bench.submit()
    bench.step()
    job = bench.submit(**asked)
    assert (bench.world.jobs[job].reason, bench.engine.room_made) == (reason, again)
