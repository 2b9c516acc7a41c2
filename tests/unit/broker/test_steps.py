"""Numbered steps in allocations: when each may start, what it gets, how it and the job end."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.errors import BadOption, Conflict, Denied, Unknown
from broker.model.ids import StepId
from broker.model.job import ExitCode, StepState
from broker.model.spec import Gres, Resources, StepSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ROOT, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def running(bench: Bench, **fields: object) -> JobId:
    """A job of 4 cpus, 4 GiB and 2 GPUs whose batch step runs."""
    asked = Resources(tasks=4, gres=(Gres(name="gpu", count=2),))
    job = bench.submit(**{"resources": asked, **fields})
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    return job


def add(bench: Bench, job: JobId, **fields: object) -> StepId:
    return asked_for(bench, job, fields)


def add_now(bench: Bench, job: JobId, **fields: object) -> StepId:
    return asked_for(bench, job, fields, immediate=True)


def asked_for(
    bench: Bench, job: JobId, fields: dict[str, object], *, immediate: bool = False
) -> StepId:
    bench.requests += 1
    spec = StepSpec(**{"name": "true", **fields})  # type: ignore[arg-type]
    asked = cmd.AddStep(
        job=job, by=ALICE, step=spec, request=f"s{bench.requests}", immediate=immediate
    )
    (reply,) = bench.step(asked, full=False)
    if isinstance(reply, Exception):
        raise reply
    return reply  # type: ignore[return-value]


def starts(bench: Bench) -> list[str]:
    return [effect.token.rpartition("/")[2] for effect in bench.effects if "start" in effect.token]


def end(bench: Bench, job: JobId, step: str, **record: object) -> None:
    key = f"{job}/1/{step}"
    whole = {"kind": "exited", "key": key, "code": 0, "signal": 0, "started": 1.0, **record}
    bench.journal("n1", whole)


def test_two_plain_steps_run_one_after_the_other(bench: Bench) -> None:
    job = running(bench)
    assert [add(bench, job), add(bench, job)] == ["0", "1"]
    assert starts(bench) == ["0"]
    end(bench, job, "0")
    assert starts(bench) == ["1"]


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ({}, {"overlap": True}, True),
        ({"overlap": True}, {}, True),
        ({"exact": True}, {"exact": True}, False),
        ({"exact": True, "gres": ()}, {"exact": True, "gres": ()}, True),
        ({"exact": True, "gres": (), "tasks": 3}, {"exact": True, "gres": (), "tasks": 2}, False),
        ({"exact": True, "gres": ()}, {"gres": ()}, False),
        ({"exact": True, "whole": True, "gres": ()}, {"exact": True, "gres": ()}, False),
        ({"exact": True, "cpus_per_task": 2, "gres": ()}, {"exact": True, "tasks": 2}, True),
        (
            {"exact": True, "gres": (Gres(name="gpu"),)},
            {"exact": True, "gres": (Gres(name="gpu"),)},
            True,
        ),
        (
            {"exact": True, "gres": (), "mem_per_node_mib": 3000},
            {"exact": True, "gres": (), "mem_per_node_mib": 2000},
            False,
        ),
        (
            {"exact": True, "gres": (), "mem_per_node_mib": 0},
            {"exact": True, "gres": (), "mem_per_node_mib": 4096},
            True,
        ),
    ],
)
def test_steps_run_together_where_the_allocation_has_room_for_both(
    bench: Bench, first: dict[str, object], second: dict[str, object], together: bool
) -> None:
    job = running(bench)
    add(bench, job, **first)
    add(bench, job, **second)
    assert starts(bench) == (["0", "1"] if together else ["0"])


def test_a_step_that_may_not_wait_is_refused_where_it_would_have_to(bench: Bench) -> None:
    job = running(bench)
    assert add_now(bench, job, exact=True, gres=()) == "0"
    assert add_now(bench, job, exact=True, gres=()) == "1"
    with pytest.raises(Conflict, match="Requested nodes are busy"):
        add_now(bench, job)
    assert add_now(bench, job, overlap=True) == "2"


def test_a_step_gets_the_lowest_free_cpus_and_gpus(bench: Bench) -> None:
    job = running(bench)
    one = {"exact": True, "gres": (Gres(name="gpu"),)}
    for _ in range(2):
        add(bench, job, **one)
    add(bench, job, overlap=True)
    shares = [bench.world.jobs[job].step(StepId(str(n))).share for n in range(3)]  # type: ignore[union-attr]
    assert [share.cpu_ids for share in shares if share] == [(0,), (1,), (0, 1, 2, 3)]
    assert [share.gpu_ids for share in shares if share] == [(0,), (1,), (0, 1)]
    assert [share.tres.mem_mib for share in shares if share] == [1024, 1024, 4096]
    assert dict(shares[0].tres.gres) == {"gpu": 1, "gpu:a10g": 1}  # type: ignore[union-attr]


def test_memory_of_a_job_with_a_figure_per_node_is_not_divided_by_cpus(bench: Bench) -> None:
    job = running(bench, resources=Resources(tasks=2, mem_per_node_mib=600))
    add(bench, job, exact=True)
    add(bench, job, exact=True, mem_per_node_mib=50)
    assert starts(bench) == ["0"]


def test_a_small_step_passes_one_that_waits(bench: Bench) -> None:
    job = running(bench)
    for cpus in (3, 2, 1):
        add(bench, job, exact=True, gres=(), tasks=cpus)
    assert starts(bench) == ["0", "2"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tasks": 5}, "More processors requested than permitted"),
        ({"tasks": 2, "cpus_per_task": 3}, "More processors requested than permitted"),
        ({"mem_per_node_mib": 5000}, "Memory required by task is not available"),
        ({"mem_per_cpu_mib": 2000}, "Memory required by task is not available"),
        ({"gres": (Gres(name="gpu", count=3),)}, "Invalid generic resource (gres) specification"),
        ({"gres": (Gres(name="gpu", type="h100"),)}, "Invalid generic resource"),
    ],
)
def test_a_step_that_is_larger_than_its_job_is_refused_with_slurms_text(
    bench: Bench, fields: dict[str, object], words: str
) -> None:
    job = running(bench)
    with pytest.raises(BadOption) as caught:
        add(bench, job, **fields)
    assert words in caught.value.message
    assert add(bench, job, tasks=5, overcommit=True) == "0"


def test_steps_wait_for_the_batch_step(bench: Bench) -> None:
    job = bench.submit()
    add(bench, job)
    assert starts(bench) == ["batch"]
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    assert starts(bench) == ["0"]


def test_each_tasks_end_is_kept_where_they_differ(bench: Bench) -> None:
    job = running(bench)
    add(bench, job, tasks=2)
    ends = [{"rank": 1, "code": 0, "signal": 9}, {"rank": 0, "code": 5, "signal": 0}]
    end(bench, job, "0", signal=9, tasks=ends)
    step = bench.world.jobs[job].step(StepId("0"))
    assert step is not None
    assert (step.state, str(step.exit)) == (StepState.CANCELLED, "0:9")
    assert step.tasks == (ExitCode(5, 0), ExitCode(0, 9))
    assert str(bench.world.jobs[job].derived) == "0:9"
    add(bench, job)
    end(bench, job, "1", code=5, tasks=[{"rank": 0, "code": 5, "signal": 0}])
    second = bench.world.jobs[job].step(StepId("1"))
    assert second is not None
    assert (second.state, second.tasks) == (StepState.FAILED, ())
    assert str(bench.world.jobs[job].derived) == "5:0"


@pytest.mark.parametrize(
    ("record", "state", "code"),
    [
        ({"cause": "time_limit", "signal": 15}, StepState.TIMEOUT, "0:15"),
        ({"cause": "out_of_memory", "signal": 9}, StepState.OUT_OF_MEMORY, "0:125"),
        ({"cause": "task_failure", "signal": 15}, StepState.CANCELLED, "0:15"),
        ({"cause": "launch_failed", "signal": 53}, StepState.CANCELLED, "0:53"),
        ({"code": 137}, StepState.FAILED, "137:0"),
    ],
)
def test_a_step_ends_as_its_cause_says_and_the_job_goes_on(
    bench: Bench, record: dict[str, object], state: StepState, code: str
) -> None:
    job = running(bench)
    add(bench, job, time_limit=60)
    end(bench, job, "0", **record)
    step = bench.world.jobs[job].step(StepId("0"))
    assert step is not None
    assert (step.state, str(step.exit)) == (state, code)
    assert bench.state(job) == "RUNNING"
    bench.run(job)
    assert (bench.state(job), str(bench.world.jobs[job].derived)) == ("COMPLETED", code)


def test_a_running_step_is_cancelled_on_its_node(bench: Bench) -> None:
    job = running(bench)
    add(bench, job)
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/0"})
    assert bench.step(cmd.CancelStep(job=job, step=StepId("0"), by=ALICE)) == [None]
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1/0"]
    end(bench, job, "0", signal=9, cause="cancelled")
    step = bench.world.jobs[job].step(StepId("0"))
    assert step is not None
    assert (step.state, str(step.exit)) == (StepState.CANCELLED, "0:9")
    assert bench.effects == []
    (again,) = bench.step(cmd.CancelStep(job=job, step=StepId("0"), by=ALICE))
    assert isinstance(again, Conflict)


def test_a_step_on_its_way_to_the_node_is_ended_there_once(bench: Bench) -> None:
    job = running(bench)
    add(bench, job)
    bench.step(cmd.CancelStep(job=job, step=StepId("0"), by=ALICE))
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1/0"]
    bench.journal("n1", {"kind": "refused", "key": f"{job}/1/0", "cause": "killed"})
    step = bench.world.jobs[job].step(StepId("0"))
    assert step is not None
    assert step.state is StepState.CANCELLED
    assert bench.effects == []


def test_a_waiting_step_is_cancelled_at_once(bench: Bench) -> None:
    job = running(bench)
    for _ in range(2):
        add(bench, job)
    bench.step(cmd.CancelStep(job=job, step=StepId("1"), by=ROOT))
    step = bench.world.jobs[job].step(StepId("1"))
    assert step is not None
    assert (step.state, step.started) == (StepState.CANCELLED, None)


def test_only_the_owner_cancels_steps_that_exist(bench: Bench) -> None:
    job = running(bench)
    add(bench, job)
    (denied,) = bench.step(cmd.CancelStep(job=job, step=StepId("0"), by=BOB))
    assert isinstance(denied, Denied)
    for wrong in (
        cmd.CancelStep(job=job, step=StepId("7"), by=ALICE),
        cmd.CancelStep(job=JobId(99), step=StepId("0"), by=ALICE),
    ):
        (reply,) = bench.step(wrong)
        assert isinstance(reply, Unknown)


def test_cancelling_the_batch_step_kills_it_by_signal(bench: Bench) -> None:
    job = running(bench)
    bench.step(cmd.CancelStep(job=job, step=StepId("batch"), by=ALICE))
    (signal,) = bench.world.jobs[job].signals
    assert (signal.number, signal.scope, signal.step) == (9, "full", "batch")


def test_a_signal_may_be_for_one_step(bench: Bench) -> None:
    job = running(bench)
    add(bench, job)
    ask = cmd.Signal(target=cmd.Target(job), by=ALICE, number=10, step=StepId("0"))
    assert bench.step(ask) == [None]
    (signal,) = bench.world.jobs[job].signals
    assert (signal.number, signal.scope, signal.step) == (10, "full", "0")
    end(bench, job, "0")
    (reply,) = bench.step(ask)
    assert isinstance(reply, Conflict)


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (ExitCode(), "COMPLETED", "None"),
        (ExitCode(1), "FAILED", "NonZeroExitCode"),
        (ExitCode(0, 9), "FAILED", "RaisedSignal:9(Killed)"),
    ],
)
def test_an_allocation_ends_with_the_exit_code_of_who_held_it(
    bench: Bench, code: ExitCode, state: str, reason: str
) -> None:
    job = running(bench, batch=None, allocator="salloc")
    assert bench.step(cmd.FinishAllocation(job=job, by=ALICE, exit=code)) == [None]
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1"]
    end(bench, job, "batch", signal=15, cause="finished")
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]
    assert (found.shown_state, found.reason, found.exit) == (state, reason, code)
    assert found.over


def test_a_cancelled_allocation_has_no_exit_code_of_its_own(bench: Bench) -> None:
    job = running(bench, batch=None, allocator="salloc")
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    end(bench, job, "batch", signal=15, cause="cancelled")
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    assert (bench.state(job), str(bench.world.jobs[job].exit)) == ("CANCELLED", "0:0")


def test_what_has_a_script_or_does_not_run_cannot_be_finished(bench: Bench) -> None:
    held = bench.submit(batch=None, hold=True)
    for job in (running(bench), held):
        (reply,) = bench.step(cmd.FinishAllocation(job=job, by=ALICE, exit=ExitCode()))
        assert isinstance(reply, Conflict)


def test_an_open_allocation_without_runs_ends_after_its_idle_time(bench: Bench) -> None:
    job = running(bench, batch=None, idle_seconds=300, steps=(StepSpec(name="x", overlap=True),))
    bench.step(seconds=400)
    assert bench.state(job) == "RUNNING"
    end(bench, job, "0")
    bench.step(seconds=299)
    assert bench.state(job) == "RUNNING"
    bench.step(seconds=1)
    assert bench.state(job) == "COMPLETING"
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1"]
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "COMPLETED"


@pytest.mark.parametrize(
    ("past_logins", "fields", "held"),
    [
        (False, {"name": "ssh", "overlap": True, "interactive": True}, True),
        (True, {"name": "ssh", "overlap": True, "interactive": True}, False),
        (True, {"name": "ssh"}, True),
        (True, {"name": "bash", "overlap": True, "interactive": True}, True),
    ],
)
def test_who_is_logged_in_holds_off_an_idle_end_unless_only_runs_do(
    bench: Bench, past_logins: bool, fields: dict[str, object], held: bool
) -> None:
    job = running(bench, batch=None, idle_seconds=300, idle_past_logins=past_logins)
    bench.step(seconds=200)
    step = add(bench, job, **fields)
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/{step}"})
    bench.step(seconds=100)
    assert bench.state(job) == ("RUNNING" if held else "COMPLETING")
    bench.step(seconds=900)
    assert bench.state(job) == ("RUNNING" if held else "COMPLETING")


def test_steps_that_live_when_the_batch_step_ends_are_ended(bench: Bench) -> None:
    job = running(bench)
    for _ in range(2):
        add(bench, job)
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/0"})
    bench.journal("n1", {"kind": "exited", "key": f"{job}/1/batch", "code": 0, "signal": 0})
    assert [effect.token for effect in bench.effects] == [f"kill {job}/1"]
    end(bench, job, "0", signal=15, cause="batch_ended")
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]
    assert [step.state for step in found.steps if step.numbered] == [StepState.CANCELLED] * 2
    assert (found.shown_state, str(found.derived)) == ("COMPLETED", "0:15")
