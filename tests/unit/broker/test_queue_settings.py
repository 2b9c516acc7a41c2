"""Settings of the queue: how far a pass looks, how often one is made, where ids end."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from broker.heart import Heart
from broker.model.commands import SetHold, Target
from broker.model.errors import Refused
from tests.unit.broker.test_engine import DECLARED, ROOT, Bench
from tests.unit.broker.test_heart import Clock, Log


def test_a_pass_looks_at_the_first_jobs_that_might_start() -> None:
    bench = Bench(replace(DECLARED, max_job_test=2))
    shut = bench.submit(partitions=("down",), hold=True)
    jobs = [bench.submit(hold=True) for _ in range(4)]
    bench.step(*(SetHold(target=Target(job), by=ROOT, hold=None) for job in [shut, *jobs]),
               full=False)  # fmt: skip
    bench.step()
    started = [bench.world.jobs[job].state.holds_nodes for job in jobs]
    assert started == [True, True, False, False]
    assert bench.world.jobs[shut].reason == "PartitionDown"
    bench.step()
    assert all(bench.world.jobs[job].state.holds_nodes for job in jobs)


def test_no_id_is_given_beyond_the_last() -> None:
    bench = Bench(replace(DECLARED, first_job_id=7, max_job_id=8))
    assert [bench.submit(), bench.submit()] == [7, 8]
    with pytest.raises(Refused, match="Resource temporarily unavailable"):
        bench.submit()
    assert JobId(9) not in bench.world.jobs


@pytest.mark.parametrize("interval", [5, 60])
def test_the_queue_is_looked_through_in_its_interval_though_nothing_happens(interval: int) -> None:
    bench = Bench(replace(DECLARED, pass_interval=interval))
    heart = Heart(engine=bench.engine, clock=Clock(), log=Log())
    bench.engine.room_made = False
    heart._next_pass = 100.0
    assert not heart._pass_due(100.0 + interval - 1, 0)
    assert heart._pass_due(100.0 + interval, 0)
