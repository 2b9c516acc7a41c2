"""Preemption by QOS: who is pushed out, how, and who is not."""

from dataclasses import replace

from accounting.assoc import Qos, book
from broker.model.site import Site
from broker.model.spec import Resources
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, Bench

WHOLE = Resources(tasks=4, tasks_per_node=4)


def site(**low: object) -> Site:
    grades = [
        Qos(name="high", priority=10, preempt=("low",)),
        Qos(name="low", priority=1, **low),  # type: ignore[arg-type]
    ]
    nodes = DECLARED.nodes[:2]
    part = replace(DECLARED.partitions[0], nodes=tuple(node.name for node in nodes))
    return replace(DECLARED, nodes=nodes, partitions=(part,), preempts=True, book=book(qos=grades))


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
    assert bench.state(urgent) in {"CONFIGURING", "RUNNING"}
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
    bench = Bench(replace(site(), preempts=False))
    jobs = [running(bench), running(bench)]
    bench.submit(ALICE, qos="high", resources=WHOLE)
    bench.step(seconds=1)
    assert {bench.state(job) for job in jobs} == {"RUNNING"}
