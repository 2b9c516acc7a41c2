"""Changed time limits and notices reach the nodes: due while untold, once, in the last form."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import SendNotice, TellLimit
from broker.model.errors import Conflict, Denied
from broker.model.ids import StepId
from broker.model.spec import StepSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ROOT, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def running(bench: Bench) -> JobId:
    job = bench.submit(time_limit=3600)
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    return job


def limits(bench: Bench) -> list[TellLimit]:
    return [effect for effect in bench.effects if isinstance(effect, TellLimit)]


def change(bench: Bench, job: JobId, seconds: int, by: object = ALICE) -> object:
    asked = cmd.Update(target=cmd.Target(job), by=by, time_limit=seconds)  # type: ignore[arg-type]
    (reply,) = bench.step(asked)
    return reply


def test_a_changed_limit_is_due_until_the_node_has_it(bench: Bench) -> None:
    job = running(bench)
    change(bench, job, 600)
    (due,) = limits(bench)
    bench.step()
    assert limits(bench) == [due]
    bench.step(rep.LimitDone(job=job, attempt=1, serial=due.serial))
    assert limits(bench) == []


def test_what_was_changed_again_since_stays_due(bench: Bench) -> None:
    job = running(bench)
    change(bench, job, 600)
    (first,) = limits(bench)
    change(bench, job, 300)
    (second,) = limits(bench)
    bench.step(rep.LimitDone(job=job, attempt=1, serial=first.serial))
    assert [one.token for one in limits(bench)] == [second.token]
    assert second.serial > first.serial
    assert second.job.time_limit == 300


def test_a_limit_changed_before_the_start_is_told_after_it(bench: Bench) -> None:
    job = bench.submit(time_limit=3600)
    change(bench, job, 600)
    assert limits(bench) == []
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    assert len(limits(bench)) == 1


def test_suspending_and_resuming_tell_the_node_of_the_limit(bench: Bench) -> None:
    job = running(bench)
    bench.step(cmd.Suspend(target=cmd.Target(job), by=ROOT))
    (stands,) = limits(bench)
    assert stands.job.state.label == "SUSPENDED"
    bench.step(cmd.Suspend(target=cmd.Target(job), by=ROOT, resume=True), seconds=50)
    (goes,) = limits(bench)
    assert (goes.job.state.label, goes.job.suspended_for) == ("RUNNING", 50)


def test_a_job_that_stays_suspended_does_not_run_out_of_time(bench: Bench) -> None:
    job = running(bench)
    bench.step(cmd.Suspend(target=cmd.Target(job), by=ROOT))
    bench.step(seconds=100_000)
    assert bench.state(job) == "SUSPENDED"


def test_a_steps_own_limit_is_told_and_users_only_shorten_it(bench: Bench) -> None:
    job = running(bench)
    spec = StepSpec(name="more", time_limit=600)
    bench.step(cmd.AddStep(job=job, by=ALICE, step=spec, request="s1"))
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/0"})
    (refused,) = bench.step(cmd.UpdateStep(job=job, step=StepId("0"), by=ALICE, time_limit=900))
    assert isinstance(refused, Denied)
    bench.step(cmd.UpdateStep(job=job, step=StepId("0"), by=ALICE, time_limit=60))
    (due,) = limits(bench)
    assert due.step is not None
    assert due.step.spec is not None
    assert due.step.spec.time_limit == 60
    bench.step(rep.LimitDone(job=job, attempt=1, serial=due.serial, step=due.step.id))
    assert limits(bench) == []


def test_a_notice_is_due_until_the_node_has_it(bench: Bench) -> None:
    job = running(bench)
    (denied,) = bench.step(cmd.Notify(target=cmd.Target(job), by=BOB, text="hello"))
    assert isinstance(denied, Denied)
    bench.step(cmd.Notify(target=cmd.Target(job), by=ALICE, text="hello"))
    (due,) = bench.effects
    assert isinstance(due, SendNotice)
    assert due.notice.text == "hello"
    bench.step(rep.NoticeDone(job=job, attempt=1, serial=due.notice.serial))
    assert bench.effects == []


def test_a_job_that_waits_takes_no_notice(bench: Bench) -> None:
    job = bench.submit(hold=True)
    (refused,) = bench.step(cmd.Notify(target=cmd.Target(job), by=ALICE, text="hello"))
    assert isinstance(refused, Conflict)


def test_top_deals_out_the_priorities_of_ones_own_jobs_anew(bench: Bench) -> None:
    begin = 4_000_000_000
    jobs = [bench.submit(begin=begin) for _ in range(3)]
    other = bench.submit(BOB, begin=begin)
    was = {job: bench.world.jobs[job].priority for job in (*jobs, other)}
    (denied,) = bench.step(cmd.ToTop(jobs=(other,), by=ALICE))
    assert isinstance(denied, Denied)
    bench.step(cmd.ToTop(jobs=(jobs[2],), by=ALICE))
    now = {job: bench.world.jobs[job].priority for job in (*jobs, other)}
    first, second, third = jobs
    assert now == {
        third: was[first],
        first: was[second],
        second: was[third],
        other: was[other],
    }
