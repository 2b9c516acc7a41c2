"""What is asked for again because its answer was lost is not done again."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.errors import Conflict, Unknown
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench


def once(command: cmd.Repeated, request: str = "r") -> cmd.Once:
    return cmd.Once(request=request, command=command)


def running(bench: Bench) -> cmd.Target:
    job = bench.submit()
    bench.step()
    bench.journal("n1", {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    return cmd.Target(job)


def test_a_signal_is_sent_once_for_each_request() -> None:
    bench = Bench(DECLARED)
    target = running(bench)
    signal = cmd.Signal(target=target, by=ALICE, number=10)
    assert bench.step(once(signal), once(signal)) == [None, None]
    assert bench.step(once(signal)) == [None]
    assert len(bench.world.jobs[target.job].signals) == 1
    bench.step(once(signal, "other"))
    assert len(bench.world.jobs[target.job].signals) == 2


def test_a_job_that_was_requeued_is_not_refused_when_the_request_comes_again() -> None:
    bench = Bench(DECLARED)
    target = running(bench)
    requeue = once(cmd.Requeue(target=target, by=ALICE))
    assert bench.step(requeue) == [None]
    assert bench.step(requeue) == [None]
    assert bench.world.jobs[target.job].restarts == 1
    (reply,) = bench.step(cmd.Requeue(target=target, by=ALICE))
    assert isinstance(reply, Conflict)


def test_requests_are_known_after_a_restart_and_refusals_are_not_kept() -> None:
    bench = Bench(DECLARED)
    target = running(bench)
    signal = once(cmd.Signal(target=target, by=ALICE, number=10))
    bench.step(signal)
    again = Bench(DECLARED, bench.store)
    assert again.step(signal) == [None]
    assert len(again.world.jobs[target.job].signals) == 1
    nobody = cmd.Signal(target=cmd.Target(JobId(99)), by=ALICE, number=9)
    (reply,) = bench.step(once(nobody, "unknown"))
    assert isinstance(reply, Unknown)
    assert set(bench.store.requests) >= {"r"}
    assert "unknown" not in bench.store.requests


@pytest.mark.parametrize("times", [1, 2])
def test_many_commands_hold_requests_of_their_own(times: int) -> None:
    bench = Bench(DECLARED)
    target = running(bench)
    signals = tuple(
        once(cmd.Signal(target=target, by=ALICE, number=number), f"r{number}")
        for number in (10, 12)
    )
    for _ in range(times):
        assert bench.step(cmd.Many(signals)) == [[None, None]]
    assert [one.number for one in bench.world.jobs[target.job].signals] == [10, 12]
