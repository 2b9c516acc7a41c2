"""What a partition's state, as an administrator sets it, does to jobs."""

import pytest

from accounting.ids import JobId
from broker.model.commands import SetHold, Target
from broker.model.errors import Denied
from broker.model.partition import SetPartition, Value
from tests.unit.broker.test_engine import DECLARED, ROOT, Bench


def update(bench: Bench, name: str = "ec2", **changes: Value) -> None:
    (reply,) = bench.step(SetPartition(name=name, by=ROOT, changes=changes))
    assert reply is None


def release(bench: Bench, job: JobId) -> None:
    bench.step(SetHold(target=Target(job), by=ROOT, hold=None))
    bench.step()


def placed(bench: Bench, job: JobId) -> bool:
    return bench.world.jobs[job].state.holds_nodes


@pytest.mark.parametrize(("state", "reason"), [("DOWN", "PartitionDown"),
                                               ("INACTIVE", "PartitionInactive")])  # fmt: skip
def test_jobs_wait_while_their_partition_starts_none_and_start_when_it_is_up(
    state: str, reason: str
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(hold=True)
    update(bench, state=state)
    release(bench, job)
    assert bench.world.jobs[job].reason == reason
    update(bench, state="UP")
    assert placed(bench, job)


@pytest.mark.parametrize(("state", "starts"), [("DRAIN", True), ("INACTIVE", False)])
def test_a_partition_that_queues_nothing_refuses_new_jobs(state: str, starts: bool) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(hold=True)
    update(bench, state=state)
    with pytest.raises(Denied, match=r"Required partition not available \(inactive or drain\)"):
        bench.submit(partitions=("ec2",))
    release(bench, job)
    assert placed(bench, job) is starts


def test_of_several_partitions_those_that_queue_are_taken() -> None:
    bench = Bench(DECLARED)
    update(bench, state="DRAIN")
    job = bench.submit(partitions=("ec2", "down"))
    assert bench.world.jobs[job].partitions == ("down",)
