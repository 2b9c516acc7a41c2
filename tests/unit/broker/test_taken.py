"""Machines that are taken back, with notice and without, and purchases nobody answers for."""

from dataclasses import replace

import pytest

from broker.model import reports as rep
from broker.model.effects import Kill, Launch, Terminate
from broker.model.errors import Refusal, Width
from broker.model.offer import MachineState, Market
from tests.unit.broker.test_engine import ELASTIC, Bench, machine

NOTICE = {"kind": "notice", "action": "terminate", "when": "2026-11-29T21:00:00Z"}


def running(bench: Bench, *, requeue: bool) -> int:
    job = bench.submit(requeue=requeue)
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    bench.step(rep.Booted(node=launch.nodes[0][0], launch=launch.nodes[0][1]))
    bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    return int(job)


@pytest.mark.parametrize(
    ("requeue", "while_ending", "key", "nodes"),
    [(True, "PENDING", "/2", ["ec2-2"]), (False, "PREEMPTED", "/1", [])],
)
def test_a_notice_drains_the_node_and_pushes_its_jobs_out(
    requeue: bool, while_ending: str, key: str, nodes: list[str]
) -> None:
    bench = Bench(ELASTIC)
    job = running(bench, requeue=requeue)
    bench.journal("ec2-1", NOTICE)
    node = bench.world.nodes["ec2-1"]  # type: ignore[index]
    assert (node.drain, "2026-11-29T21:00:00Z" in node.reason) == (True, True)
    (kill,) = [e for e in bench.effects if isinstance(e, Kill)]
    found = bench.world.jobs[job]  # type: ignore[index]
    assert (kill.job.kill_cause, found.state.label) == ("taken_back", while_ending)
    bench.journal("ec2-1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]  # type: ignore[index]
    assert (found.key, [share.node for share in found.shares]) == (f"{job}{key}", nodes)


def test_a_notice_that_came_another_way_than_by_the_journal_counts_like_one_in_it() -> None:
    bench = Bench(ELASTIC)
    job = running(bench, requeue=True)
    node = bench.world.nodes["ec2-1"]  # type: ignore[index]
    here = {"start": node.journal, "position": node.journal}
    told = rep.Journal(node=node.name, launch=node.launch, records=(NOTICE,), **here)
    bench.step(told)
    node = bench.world.nodes["ec2-1"]  # type: ignore[index]
    assert (node.drain, node.journal) == (True, here["start"])
    (kill,) = [e for e in bench.effects if isinstance(e, Kill)]
    assert kill.job.id == job
    bench.step(replace(told, start=here["start"] + 1))  # of a journal that went on meanwhile


def test_what_is_bought_after_an_older_store_was_restored_is_taken_for_nothing_else() -> None:
    numbers = set()
    for later in (0, 1):
        bench = Bench(ELASTIC)
        bench.now += later
        bench.submit()
        (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
        numbers.add(launch.nodes[0])
    assert len(numbers) == 2 and {name for name, _ in numbers} == {"ec2-1"}


@pytest.mark.parametrize("requeue", [True, False])
def test_a_spot_machine_that_vanishes_preempts_its_job(requeue: bool) -> None:
    bench = Bench(ELASTIC)
    job = running(bench, requeue=requeue)
    node = bench.world.nodes["ec2-1"]  # type: ignore[index]
    assert node.machine is not None
    gone = replace(
        node.machine,
        state=MachineState.TERMINATED,
        market=Market.SPOT,
        terminated_at=bench.now,
        ended_by_provider=True,
    )
    bench.step(rep.Vanished(node=node.name, launch=node.launch, machine=gone), full=False)
    found = bench.world.jobs[job]  # type: ignore[index]
    assert found.state.label == ("PENDING" if requeue else "PREEMPTED")
    assert str(found.exit) == ("0:0" if requeue else "0:15")
    if requeue:
        assert [run.job.state.label for run in bench.world.runs] == ["PREEMPTED"]


def test_a_purchase_nobody_answers_for_is_given_up_at_its_deadline() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    assert [type(effect) for effect in bench.effects] == [Launch]
    deadline = bench.world.nodes["ec2-1"].boot_deadline  # type: ignore[index]
    assert deadline is not None
    bench.now = deadline
    bench.step(full=False)
    assert bench.world.jobs[job].state.label == "PENDING"
    assert [type(effect) for effect in bench.effects] == [Terminate]


def test_quotas_and_ceilings_are_slurms_reasons() -> None:
    for message, reason in (
        ("quota L-1216C47A (Standard, on-demand) allows 32 vCPUs", "AssocGrpCpuLimit"),
        ("ceiling of user alice: 9 of 10 USD an hour in use", "AssocGrpBilling"),
    ):
        bench = Bench(ELASTIC)
        job = bench.submit()
        (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
        offer = launch.rungs[0].offer
        tried = rep.Tried(offer, Refusal.QUOTA, Width.PROVIDER, message)
        bench.step(rep.NotLaunched(group=launch.group, tried=(tried,)), full=False)
        found = bench.world.jobs[job]
        assert (found.reason, found.detail) == (reason, message)
