"""Steps over several nodes: what they get of each, and how they begin and end as one."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import effects as ef
from broker.model import reports as rep
from broker.model.errors import BadOption
from broker.model.ids import StepId
from broker.model.job import ExitCode, Step, StepState
from broker.model.spec import Gres, Output, Resources
from tests.unit.broker import test_steps
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench
from tests.unit.broker.test_steps import starts


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def add(bench: Bench, job: JobId, **fields: object) -> StepId:
    """One of srun's."""
    return test_steps.add(bench, job, interactive=True, **fields)


def running(bench: Bench, **fields: object) -> JobId:
    """A job on two nodes, of two cpus each."""
    asked = Resources(min_nodes=2, max_nodes=2, tasks=4, tasks_per_node=2)
    job = bench.submit(**{"resources": asked, **fields})
    assert [share.tres.cpu for share in bench.world.jobs[job].shares] == [2, 2]
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    return job


def step_of(bench: Bench, job: JobId, number: str = "0") -> Step:
    found = bench.world.jobs[job].step(StepId(number))
    assert found is not None
    return found


def say(bench: Bench, node: str, kind: str, job: JobId, **record: object) -> None:
    key = f"{job}/1/{record.pop('step', '0')}"
    ended = {"code": 0, "signal": 0, "started": 1.0} if kind == "exited" else {}
    bench.journal(node, {"kind": kind, "key": key, **ended, **record})


def placed(step: Step) -> list[tuple[str, int]]:
    return [(share.node, share.tasks) for share in step.shares]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nodes": 2, "tasks": 2}, [("n1", 1), ("n2", 1)]),
        ({"nodes": 2, "tasks": 4}, [("n1", 2), ("n2", 2)]),
        ({"nodes": 2, "tasks": 3}, [("n1", 2), ("n2", 1)]),
        ({"nodes": 2, "tasks": 2, "cpus_per_task": 2}, [("n1", 1), ("n2", 1)]),
        ({"nodes": 1, "relative": 1}, [("n2", 1)]),
        ({"nodes": 1, "nodelist": ("n2",)}, [("n2", 1)]),
        ({"nodes": 1, "exclude": ("n1",)}, [("n2", 1)]),
        ({"nodes": 2, "tasks": 5, "overcommit": True}, [("n1", 3), ("n2", 2)]),
        (
            {"nodes": 2, "tasks": 3, "distribution": "arbitrary", "hosts": ("n2", "n1", "n2")},
            [("n1", 1), ("n2", 2)],
        ),
    ],
)
def test_a_step_gets_its_nodes_and_its_tasks_on_each(
    bench: Bench, fields: dict[str, object], expected: list[tuple[str, int]]
) -> None:
    job = running(bench)
    add(bench, job, **fields)
    assert placed(step_of(bench, job)) == expected


def test_steps_of_one_node_each_run_side_by_side(bench: Bench) -> None:
    job = running(bench)
    for _ in range(3):
        add(bench, job)
    assert [placed(step_of(bench, job, str(n))) for n in range(3)] == [[("n1", 1)], [("n2", 1)], []]


def test_exact_steps_leave_the_rest_of_each_node_to_others(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2, exact=True, gres=())
    add(bench, job, nodes=2, tasks=2, exact=True, gres=())
    assert starts(bench) == ["0", "0@n2", "1", "1@n2"]
    assert [share.cpu_ids for share in step_of(bench, job, "1").shares] == [(1,), (1,)]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"nodes": 2, "tasks": 5}, "More processors requested than permitted"),
        ({"nodes": 2, "tasks": 3, "cpus_per_task": 2}, "More processors requested than permitted"),
        ({"nodes": 1, "nodelist": ("n3",)}, "Requested node configuration is not available"),
        ({"nodes": 2, "exclude": ("n1",)}, "Requested node configuration is not available"),
        ({"nodes": 2, "tasks": 2, "gres": (Gres(name="gpu"),)}, "Invalid generic resource"),
        ({"nodes": 2, "tasks": 2, "mem_per_node_mib": 5000}, "Memory required by task"),
    ],
)
def test_a_step_that_its_nodes_are_too_small_for_is_refused(
    bench: Bench, fields: dict[str, object], words: str
) -> None:
    job = running(bench)
    with pytest.raises(BadOption) as caught:
        add(bench, job, **fields)
    assert words in caught.value.message


def test_a_step_ends_when_it_has_on_all_nodes_with_the_worst_end(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=4)
    assert starts(bench) == ["0", "0@n2"]
    say(bench, "n2", "started", job)
    assert step_of(bench, job).state is StepState.RUNNING
    assert starts(bench) == ["0"], "the other node has still to begin"
    say(bench, "n1", "started", job)
    assert starts(bench) == []
    tasks = [{"rank": 2, "code": 0, "signal": 0}, {"rank": 3, "code": 3, "signal": 0}]
    say(bench, "n2", "exited", job, code=3, tasks=tasks, user_us=5, max_rss_kib=7)
    assert step_of(bench, job).state is StepState.RUNNING
    say(bench, "n1", "exited", job, signal=9, user_us=2, max_rss_kib=9)
    step = step_of(bench, job)
    assert (step.state, step.exit) == (StepState.FAILED, ExitCode(3)), "a code is above a signal"
    assert step.tasks == (ExitCode(0, 9), ExitCode(0, 9), ExitCode(), ExitCode(3))
    assert (step.usage.user_us, step.usage.max_rss_kib) == (7, 9)


def test_a_step_of_a_file_that_all_nodes_write_begins_on_the_first(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2, output=Output(stdout="out"))
    assert starts(bench) == ["0"]
    say(bench, "n1", "started", job)
    assert starts(bench) == ["0@n2"]


@pytest.mark.parametrize(
    ("cause", "state"),
    [("launch_failed", StepState.CANCELLED), ("supervisor_lost", StepState.FAILED)],
)
def test_a_step_that_fails_on_one_node_is_ended_on_the_others(
    bench: Bench, cause: str, state: StepState
) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2)
    say(bench, "n1", "started", job)
    say(bench, "n2", "exited", job, cause=cause)
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1/0"]
    say(bench, "n1", "exited", job, signal=9, cause=cause)
    assert step_of(bench, job).state is state


def test_a_refused_part_dooms_the_step(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2)
    node = bench.world.jobs[job].shares[1].node
    bench.step(rep.StepRefused(key=f"{job}/1/0", message="no", node=node))
    assert step_of(bench, job).kill_cause == "launch_failed"


def test_a_cancelled_step_is_ended_on_every_node(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2)
    for node in ("n1", "n2"):
        say(bench, node, "started", job)
    bench.step(cmd.CancelStep(job=job, by=ALICE, step=StepId("0")))
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1/0", f"kill {job}/1/0@n2"]
    say(bench, "n1", "exited", job, signal=9)
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1/0@n2"]
    say(bench, "n2", "exited", job, signal=9)
    assert step_of(bench, job).state is StepState.CANCELLED


def test_signals_and_limits_go_to_all_nodes_of_a_step(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2, time_limit=600)
    for node in ("n1", "n2"):
        say(bench, node, "started", job)
    bench.step(cmd.Signal(target=cmd.Target(job), by=ALICE, number=10, step=StepId("0")))
    bench.step(cmd.UpdateStep(job=job, step=StepId("0"), by=ALICE, time_limit=60))
    sent = [e for e in bench.effects if isinstance(e, ef.SendSignal | ef.TellLimit)]
    assert [[e.node.name, *(node.name for node in e.more)] for e in sent] == [["n1", "n2"]] * 2


def test_a_job_is_over_when_all_of_its_nodes_are_clear(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, nodes=2, tasks=2)
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "COMPLETING"
    (kill,) = bench.effects
    assert isinstance(kill, ef.Kill)
    assert [node.name for node in kill.nodes] == ["n2"]
    bench.journal("n2", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "CANCELLED"
    assert bench.world.jobs[job].cleared == ()
