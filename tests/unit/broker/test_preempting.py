"""Preemption by QOS: who is pushed out, how, and who is not."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.assoc import Qos, book
from broker.model import reports as rep
from broker.model.effects import Launch
from broker.model.job import Owner
from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Resources
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, Bench, machine

WHOLE = Resources(tasks=4, tasks_per_node=4)


def site(**low: object) -> Site:
    grades = [
        Qos(name="high", priority=10, preempt=("low",)),
        Qos(name="low", priority=1, **low),  # type: ignore[arg-type]
    ]
    nodes = DECLARED.nodes[:2]
    part = replace(DECLARED.partitions[0], nodes=tuple(node.name for node in nodes))
    return replace(DECLARED, nodes=nodes, partitions=(part,), preempts="qos", book=book(qos=grades))


def running(bench: Bench, qos: str = "low", seconds: int = 1) -> int:
    job = bench.submit(BOB, qos=qos, resources=WHOLE)
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
    bench.step(seconds=seconds)
    return job


def test_the_youngest_of_a_lower_qos_goes_back_to_the_queue() -> None:
    bench = Bench(site())
    old, young = running(bench), running(bench)
    urgent = bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert [bench.state(job) for job in (old, young)] == ["RUNNING", "COMPLETING"]
    bench.step(seconds=1)
    assert bench.state(old) == "RUNNING", "one is enough"
    bench.journal("n2", {"kind": "gone", "attempt": f"{young}/1"})
    bench.step(seconds=1)
    assert bench.state(urgent) == "CONFIGURING"
    assert bench.state(young) == "PENDING"


def test_where_the_qos_says_cancel_it_ends_as_preempted() -> None:
    bench = Bench(site(preempt_mode="cancel"))
    first, second = running(bench), running(bench)
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert bench.state(first) == "RUNNING"
    assert bench.world.jobs[second].state.label == "PREEMPTED"


def test_a_job_has_its_grace_time_after_the_signal() -> None:
    bench = Bench(site(grace_time=30))
    running(bench)
    job = running(bench)
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert bench.state(job) == "RUNNING"
    assert 15 in {signal.number for signal in bench.world.jobs[job].signals}
    bench.step(seconds=20)
    assert bench.state(job) == "RUNNING"
    bench.step(seconds=11)
    assert bench.state(job) == "COMPLETING"


def test_nobody_is_pushed_out_by_the_same_qos_or_before_the_exempt_time() -> None:
    bench = Bench(site(exempt_time=1000))
    jobs = [running(bench), running(bench)]
    bench.submit(ALICE, qos="low", resources=WHOLE)
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert {bench.state(job) for job in jobs} == {"RUNNING"}


def test_nobody_is_pushed_out_where_it_would_not_be_enough() -> None:
    bench = Bench(site())
    jobs = [running(bench), running(bench, "normal")]
    two = Resources(min_nodes=2, tasks=8, tasks_per_node=4)
    bench.submit(ALICE, qos="high", resources=two)
    bench.step(seconds=1)
    assert {bench.state(job) for job in jobs} == {"RUNNING"}


def test_nobody_is_pushed_out_unless_it_is_configured() -> None:
    bench = Bench(replace(site(), preempts=""))
    jobs = [running(bench), running(bench)]
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert {bench.state(job) for job in jobs} == {"RUNNING"}


SIZES = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["low", "other", "normal", "high"])),
    min_size=1,
    max_size=6,
)


@example([(3, "low"), (4, "normal"), (1, "low")], 3, "requeue")
@given(SIZES, st.integers(1, 4), st.sampled_from(["requeue", "cancel"]))
def test_as_few_as_are_needed_of_those_of_lower_rank_are_pushed_out(
    jobs: list[tuple[int, str]], wanted: int, mode: str
) -> None:
    at_home = site(preempt_mode=mode)
    grade = Qos(name="other", priority=5, preempt=("low",), exempt_time=1000)
    bench = Bench(replace(at_home, book=book(qos=[*at_home.book.qos.values(), grade])))
    ran = []
    for cpus, qos in jobs:
        job = bench.submit(BOB, qos=qos, resources=Resources(tasks=cpus, tasks_per_node=cpus))
        if bench.world.jobs[job].shares:
            key = f"{bench.world.jobs[job].key}/batch"
            bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
            bench.step(seconds=1)
            ran.append((job, bench.world.jobs[job].shares[0].node, cpus, qos))
    before = {job for job, *_ in ran if bench.state(job) == "RUNNING"}
    urgent = bench.submit(
        ALICE, qos="high", resources=Resources(tasks=wanted, tasks_per_node=wanted)
    )
    waited = not bench.world.jobs[urgent].shares
    bench.step(seconds=1)
    gone = {job for job in before if bench.state(job) != "RUNNING"}
    assert {qos for job, _, _, qos in ran if job in gone} <= {"low"}
    for lucky in gone:
        left = {"n1": 4, "n2": 4}
        for job, node, cpus, _ in ran:
            left[node] -= cpus if job not in gone or job == lucky else 0
        assert waited and max(left.values()) < wanted, "one of them might have stayed"


def bought(most: int) -> Site:
    """A partition of so many machines that are bought, each of them too small for two jobs."""
    elastic = Elastic("ec2-", most, buy=BuyPolicy(instance_types=("m7i.xlarge",)), idle_seconds=600)
    part = Partition("ec2", default=True, elastic=elastic, def_mem_per_cpu_mib=1024)
    grades = site().book.qos.values()
    return Site(partitions=(part,), preempts="qos", book=book(qos=grades))


def launched(bench: Bench, owner: Owner, qos: str) -> int:
    """A job that runs on a machine of its own."""
    job = bench.submit(owner, qos=qos, resources=WHOLE)
    (launch,) = [effect for effect in bench.effects if isinstance(effect, Launch)]
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    (share,) = bench.world.jobs[job].shares
    bench.step(rep.Booted(node=share.node, launch=share.launch))
    bench.journal(share.node, {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    return job


def test_where_no_more_may_be_bought_a_machine_is_emptied_for_one_that_is_bought_anew() -> None:
    bench = Bench(bought(2))
    old, young = launched(bench, BOB, "low"), launched(bench, BOB, "low")
    urgent = bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert [bench.state(job) for job in (old, young)] == ["RUNNING", "COMPLETING"]
    assert bench.state(urgent) == "PENDING"


def test_nobody_is_pushed_out_while_a_machine_may_still_be_bought() -> None:
    bench = Bench(bought(2))
    job = launched(bench, BOB, "low")
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert bench.state(job) == "RUNNING"


@pytest.mark.parametrize(
    ("tier", "mode", "low"),
    [
        (2, "requeue", "COMPLETING"),
        (2, "cancel", "COMPLETING"),
        (2, "off", "RUNNING"),
        (1, "requeue", "RUNNING"),
    ],
)
def test_a_partition_of_a_higher_tier_pushes_out_jobs_of_a_lower_one(
    tier: int, mode: str, low: str
) -> None:
    (part,) = site().partitions
    parts = (
        replace(part, preempt_mode=mode),
        replace(part, name="top", default=False, priority_tier=tier),
    )
    bench = Bench(replace(site(), partitions=parts, preempts="partition_prio"))
    old, young = (running(bench, qos="normal") for _ in range(2))
    bench.submit(ALICE, resources=WHOLE, partitions=("top",))
    bench.step(seconds=1)
    assert [bench.state(job) for job in (old, young)] == ["RUNNING", low]
    ended = bench.world.jobs[young].state.label
    assert ended == {"COMPLETING": {"requeue": "PENDING", "cancel": "PREEMPTED"}}.get(low, {}).get(
        mode, "RUNNING"
    )
