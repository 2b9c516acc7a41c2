"""Tasks that are submitted over and over: judged once, and anew when their ground changes."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import SpzError
from broker.model.job import Owner
from broker.model.site import Site
from broker.model.spec import Dependency, DependencyKind, Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ROOT, START, Bench

BATCH = StepSpec(name="batch")
PLAIN = TaskSpec(name="loop", batch=BATCH)
CLOSED = TaskSpec(name="loop", batch=BATCH, partitions=("down",))
OPEN = replace(DECLARED, partitions=tuple(replace(one, state="UP") for one in DECLARED.partitions))
WAITING = {
    "a partition that is down": (CLOSED, "PartitionDown"),
    "the last of two that are shut": (
        TaskSpec(
            name="x",
            batch=BATCH,
            partitions=("down", "ec2"),
            time_limit=60,
            resources=Resources(min_nodes=9),
        ),
        "PartitionConfig",
    ),
    "a begin that has not come": (CLOSED.model_copy(update={"begin": START + 60}), "BeginTime"),
    "another job": (
        CLOSED.model_copy(
            update={"after": (Dependency(kind=DependencyKind.AFTERANY, job=JobId(1)),)}
        ),
        "Dependency",
    ),
    "its user": (CLOSED.model_copy(update={"hold": True}), "JobHeldUser"),
}


def submitted(bench: Bench, spec: TaskSpec, owner: Owner = ALICE, *, times: int = 1) -> list[Any]:
    asked = [
        cmd.Submit(spec=spec, owner=owner, request=f"{bench.world.next_job_id}.{number}")
        for number in range(times)
    ]
    return bench.step(*asked, full=False)


@pytest.mark.parametrize("what", WAITING)
def test_what_waits_says_at_once_why(what: str) -> None:
    bench = Bench(DECLARED)
    submitted(bench, CLOSED)
    spec, reason = WAITING[what]
    (job,) = submitted(bench, spec)
    assert bench.world.jobs[job].reason == reason
    bench.step(seconds=1)
    assert bench.world.jobs[job].reason == reason


def test_a_job_of_a_partition_that_is_down_is_one_fact() -> None:
    bench = Bench(DECLARED)
    before = len(bench.store.events)
    submitted(bench, CLOSED, times=3)
    assert [type(fact) for _, fact in bench.store.events[before:]] == [ev.Queued] * 3
    assert not bench.engine.room_made


def test_it_starts_when_the_partition_is_up() -> None:
    bench = Bench(DECLARED)
    (job,) = submitted(bench, CLOSED)
    bench.step(cmd.Reconfigure(site=OPEN, by=ROOT))
    bench.step()
    assert bench.state(job) == "CONFIGURING"


def test_the_same_task_is_read_once_and_its_jobs_differ_in_id_and_moment() -> None:
    bench = Bench(DECLARED)
    first, second = submitted(bench, CLOSED, times=2)
    read = bench.world.last_read
    bench.step(seconds=5)
    (third,) = submitted(bench, CLOSED)
    assert bench.world.last_read is read
    jobs = [bench.world.jobs[job] for job in (first, second, third)]
    assert [job.submitted for job in jobs] == [START, START, START + 5]
    assert [job.eligible for job in jobs] == [START, START, START + 5]
    assert len({job.priority for job in jobs}) == 3


ROOT_ONLY = replace(
    DECLARED, partitions=(replace(DECLARED.partitions[0], root_only=True), DECLARED.partitions[1])
)
FULL = replace(DECLARED, max_job_count=1)


@pytest.mark.parametrize("site", [ROOT_ONLY, FULL], ids=["root only", "full"])
def test_a_site_that_has_changed_refuses_what_it_took_before(site: Site) -> None:
    bench = Bench(DECLARED)
    submitted(bench, TaskSpec(name="x", batch=BATCH, partitions=("ec2",)))
    spec = TaskSpec(name="loop", batch=BATCH, partitions=("ec2",), hold=True)
    submitted(bench, spec)
    bench.step(cmd.Reconfigure(site=site, by=ROOT))
    (reply,) = submitted(bench, spec)
    assert isinstance(reply, SpzError)


def test_the_same_task_of_another_user_is_that_users() -> None:
    bench = Bench(DECLARED)
    (mine,) = submitted(bench, CLOSED)
    (theirs,) = submitted(bench, CLOSED, BOB)
    assert [bench.world.jobs[job].owner for job in (mine, theirs)] == [ALICE, BOB]


def test_what_may_start_is_looked_for_room_in_its_own_step_still() -> None:
    bench = Bench(DECLARED)
    jobs = submitted(bench, PLAIN, times=2)
    assert [bench.state(job) for job in jobs] == ["CONFIGURING", "CONFIGURING"]
