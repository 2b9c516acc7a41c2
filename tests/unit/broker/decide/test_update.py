"""What a user may change of a job, and what only administrators may."""

from dataclasses import replace

import pytest

from accounting.assoc import Account, Association, Qos, book
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import Limits
from broker.decide.commands import NOT_PENDING, OVER
from broker.model import commands as cmd
from broker.model.errors import Conflict, Denied, OverLimit
from broker.model.ids import NodeName
from broker.model.job import Hold
from broker.model.site import Partition
from broker.model.spec import ArraySpec, Gres, Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, DECLARED, ELASTIC, ROOT, Bench

SITE = replace(
    DECLARED,
    partitions=(
        *DECLARED.partitions,
        Partition("rootonly", root_only=True, nodes=(NodeName("n1"),)),
    ),
)
CHANGES = [
    ({"partitions": ("rootonly",)}, False),
    ({"partitions": ("down",)}, True),
    ({"time_limit": 8 * 86400}, False),
    ({"time_limit": 7 * 86400}, True),
    ({"time_limit": 8 * 86400, "partitions": ("down",)}, True),
]


@pytest.mark.parametrize(("change", "users"), CHANGES)
def test_users_stay_within_what_partitions_allow(change: dict[str, object], users: bool) -> None:
    for by, may in ((ALICE, users), (ROOT, True)):
        bench = Bench(SITE)
        job = bench.submit(hold=True)
        asked = cmd.Update(target=cmd.Target(job), by=by, **change)  # type: ignore[arg-type]
        (reply,) = bench.step(asked)
        assert isinstance(reply, Denied) is not may


MOVED = (
    # how many there are, the limit, whether they may move
    (2, 1, False),
    (2, 2, True),
)


@pytest.mark.parametrize(("count", "most", "may"), MOVED)
def test_components_that_move_together_count_together(count: int, most: int, may: bool) -> None:
    few = Qos(name="few", limits=Limits(max_submit_jobs=most))
    both = Association(user=UserName("alice"), account=AccountName("lab"), qos=("normal", "few"))
    known = book([Account(name=AccountName("lab"))], [both], qos=[few], enforce=["limits", "qos"])
    bench = Bench(replace(DECLARED, book=known))
    first, *more = [
        TaskSpec(name="j", batch=StepSpec(name="batch"), account="lab", hold=True)
        for _ in range(count)
    ]
    asked = cmd.Submit(spec=first, more=tuple(more), owner=ALICE, request="r")
    (job,) = bench.step(asked)
    (reply,) = bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, qos="few"))
    assert isinstance(reply, OverLimit) is not may
    assert {one.qos for one in bench.world.jobs.values()} == {"few" if may else "normal"}


def updated(bench: Bench, job: JobId, path: str, value: object) -> object:
    wish = ((path, value),)
    (reply,) = bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, spec=wish))
    return reply


TOO_MUCH = [
    ("resources.mem_per_node_mib", 999_999, 1000),
    ("resources.mem_per_cpu_mib", 999_999, 1000),
    ("resources.gres", (Gres(name="gpu", count=9),), ()),
    ("resources.gres", (Gres(name="gpu", type="h100", count=1),), ()),
    ("resources.exclude", ("n1", "n2", "n3", "n4"), ()),
    ("resources.min_cpus_per_node", 5, 1),
    ("resources.tmp_mib", 99_999_999, None),
]


@pytest.mark.parametrize(("path", "value", "back"), TOO_MUCH)
def test_a_job_changed_to_what_no_node_has_is_held_for_that_until_it_is_changed_back(
    path: str, value: object, back: object
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(begin=bench.now + 60)
    assert updated(bench, job, path, value) is None
    held = bench.world.jobs[job]
    assert (held.reason, held.priority) == ("BadConstraints", 0)
    bench.step(seconds=120)
    assert bench.world.jobs[job].reason == "BadConstraints"
    assert updated(bench, job, path, back) is None
    bench.step(seconds=1)
    assert bench.state(job) == "CONFIGURING"


@pytest.mark.parametrize(("path", "value", "back"), TOO_MUCH)
def test_one_that_its_user_holds_is_told_so_when_it_is_released(
    path: str, value: object, back: object
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(hold=True)
    assert updated(bench, job, path, value) is None
    assert bench.world.jobs[job].reason == "JobHeldUser"
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None))
    assert (bench.world.jobs[job].reason, bench.world.jobs[job].hold) == (
        "BadConstraints",
        Hold.USER,
    )


def test_what_is_not_sold_is_told_in_more_words() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(begin=bench.now + 60)
    assert updated(bench, job, "resources.mem_per_node_mib", 2**40) is None
    assert bench.world.jobs[job].reason == "BadConstraints"
    assert bench.world.jobs[job].detail


BEYOND = [
    ({"resources.min_nodes": 5, "resources.max_nodes": 5}, "PartitionConfig"),
    ({"resources.min_nodes": 99, "resources.max_nodes": 99}, None),
    ({"resources.min_cpus_per_node": 17}, None),
    ({"resources.tasks": 17}, None),
]


@pytest.mark.parametrize(("fields", "reason"), BEYOND)
def test_more_nodes_are_waited_for_and_more_cpus_than_the_partition_has_are_refused(
    fields: dict[str, object], reason: str | None
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(hold=True, resources=Resources())
    wish = cmd.Update(target=cmd.Target(job), by=ALICE, spec=tuple(fields.items()))
    (reply,) = bench.step(wish)
    assert isinstance(reply, Conflict) is (reason is None)
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None))
    bench.step(seconds=1)
    assert reason is None or bench.world.jobs[job].reason == reason


FATES = [
    # what is asked of an array of which task 1 is over, 2 runs and 3 and 4 wait
    (cmd.Update, {"partitions": ("ec2", "down")}, "3-4: No error\n1: {over}\n2: {runs}\n"),
    (cmd.Update, {"time_limit": 60}, "2-4: No error\n1: {over}\n"),
    (cmd.Update, {"array_limit": 7}, None),
    (cmd.SetHold, {"hold": Hold.USER}, "2-4: No error\n1: {over}\n"),
    (cmd.SetHold, {"hold": None}, "2-4: No error\n1: {over}\n"),
]


@pytest.mark.parametrize(("command", "change", "told"), FATES)
def test_what_some_tasks_of_an_array_are_past_is_done_for_the_rest_and_told(
    command: type, change: dict[str, object], told: str | None
) -> None:
    bench = Bench(DECLARED)
    array = bench.submit(array=ArraySpec(tasks=(1, 2, 3, 4), limit=1))
    for _ in range(2):
        bench.step(seconds=1)
        running = next(job for job in bench.world.jobs.values() if job.state.holds_nodes)
        if running.array is not None and running.array.task == 1:
            bench.run(running.id)
    (reply,) = bench.step(command(target=cmd.Target(array), by=ALICE, **change), full=False)
    expected = told and told.format(over=OVER, runs=NOT_PENDING)
    assert reply == expected
