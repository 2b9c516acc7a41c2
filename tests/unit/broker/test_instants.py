"""A node's clock that is wrong changes nothing of what its jobs are said to have taken."""

import pytest

from broker.model.job import Job
from tests.unit.broker.test_engine import DECLARED, START, Bench

RUN = 600
HOUR = 3600


def ran(start: int, end: int) -> tuple[Job, Bench]:
    """A job of ten minutes, by a clock that is so far off at its start and at its end."""
    bench = Bench(DECLARED)
    job = bench.submit(time_limit=1800)
    bench.step(seconds=10)
    record, node = bench.world.jobs[job], bench.world.jobs[job].shares[0].node
    key = f"{record.key}/batch"
    bench.journal(node, {"kind": "started", "key": key, "at": bench.now + start})
    bench.step(seconds=RUN)
    off = bench.now + end
    bench.journal(node, {"kind": "exited", "key": key, "code": 0, "signal": 0, "at": off})
    bench.journal(node, {"kind": "gone", "attempt": record.key, "at": off})
    return bench.world.jobs[job], bench


@pytest.mark.parametrize("start", [-HOUR, -2 * RUN, 0, HOUR])
@pytest.mark.parametrize("end", [-HOUR, -2 * RUN, 0, HOUR])
def test_start_end_and_use_are_right_where_the_clock_is_behind_ahead_or_jumps(
    start: int, end: int
) -> None:
    job, bench = ran(start, end)
    assert job.shown_state == "COMPLETED"
    assert (job.started, job.ended) == (START + 10, START + 10 + RUN)
    (step,) = job.steps
    assert (step.started, step.ended) == (job.started, job.ended)
    used = [one.tres_seconds.cpu for one in bench.store.entries.values() if one.kind == "usage"]
    assert sum(used) == RUN


@pytest.mark.parametrize(("off", "took"), [(-3, RUN - 3), (3, RUN), (-40, RUN - 40)])
def test_a_clock_that_is_slightly_off_is_believed(off: int, took: int) -> None:
    """Not beyond now: what was late to be read was when the node says it was."""
    job, _ = ran(0, off)
    assert job.started is not None and job.ended is not None
    assert job.ended - job.started == took
