"""Gangs, lost nodes, machines of another type than thought: one attempt lives, all is owned."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.tres import gres_counts
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Kill, KillStep, Launch
from broker.model.job import JobState, StepState
from broker.model.offer import Ranked
from broker.model.site import Elastic, Site
from broker.model.spec import ALL, Gres, Resources, StepSpec
from tests.unit.broker.test_engine import ALICE, ELASTIC, Bench, machine
from tests.unit.broker.test_steps import add

GANG = Resources(min_nodes=2, max_nodes=2)


def bring_up_all(bench: Bench, *, but: str = "") -> None:
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    for name, number in launch.nodes:
        if name != but:
            bench.step(rep.Booted(node=name, launch=number))


def not_booted(bench: Bench, name: str) -> rep.NotBooted:
    node = bench.world.nodes[name]  # type: ignore[index]
    return rep.NotBooted(node=node.name, launch=node.launch, message="no agent")


def vanish(bench: Bench, name: str) -> None:
    node = bench.world.nodes[name]  # type: ignore[index]
    bench.step(rep.Vanished(node=node.name, launch=node.launch), full=False)


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("requeue", [True, False])
def test_a_gang_that_loses_another_node_is_ended_on_its_host_before_anything_else(
    begun: bool, requeue: bool
) -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=GANG, requeue=requeue)
    bring_up_all(bench)
    if begun:
        bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    vanish(bench, "ec2-2")
    assert bench.world.jobs[job].completing
    assert [type(effect) for effect in bench.effects] == [Kill]
    bench.journal("ec2-1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]
    if requeue:
        assert (found.key, found.restarts) == (f"{job}/2", 1)
    else:
        assert (found.shown_state, str(found.exit)) == ("NODE_FAIL", "1:0")


def test_a_gang_that_loses_its_host_is_over_there_at_once() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=GANG)
    bring_up_all(bench)
    vanish(bench, "ec2-1")
    assert bench.world.jobs[job].state is JobState.PENDING
    assert not bench.world.jobs[job].shares


def test_what_other_nodes_say_of_an_attempts_end_does_not_end_it() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=GANG)
    bring_up_all(bench)
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    bench.journal("ec2-2", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "COMPLETING"
    bench.journal("ec2-1", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "CANCELLED"


def test_the_name_of_a_lost_node_is_not_given_anew_while_a_job_still_holds_it() -> None:
    bench = Bench(ELASTIC)
    bench.submit(resources=GANG)
    bring_up_all(bench)
    vanish(bench, "ec2-2")
    other = bench.submit(resources=Resources(cpus_per_task=64))
    assert [share.node for share in bench.world.jobs[other].shares] == ["ec2-3"]


def test_nodes_that_came_up_for_a_gang_that_did_not_start_are_let_go() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=GANG)
    bring_up_all(bench, but="ec2-2")
    bench.step(not_booted(bench, "ec2-2"))
    bring_up_all(bench, but="ec2-3")
    bench.step(not_booted(bench, "ec2-3"))
    assert bench.world.jobs[job].attempt == 2, "the one in its place did not boot either"
    assert bench.world.nodes["ec2-1"].idle_since is not None or bench.world.holders["ec2-1"]  # type: ignore[index]
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    bench.step(seconds=300)
    assert {n.state.label for n in bench.world.nodes.values()} <= {"TERMINATING", "LAUNCHING"}


def launched_as(bench: Bench, gpu: str, cpus: int) -> None:
    """The first rung refused; the machines are of another type than the record thought."""
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    first = launch.rungs[0].offer
    gres = gres_counts({f"gpu:{gpu}": 4}) if gpu else ()
    other = replace(first, instance_type="other", cpus=cpus, mem_mib=64_000, gres=gres)
    for name, _ in launch.nodes:
        node = bench.world.nodes[name]
        bench.world.nodes[name] = replace(node, rungs=(Ranked(other, 1, "the second"),))
        bench.store.nodes[name] = bench.world.nodes[name]
    machines = machine(replace(launch, rungs=(Ranked(other, 1, "the second"),)), bench.now)
    bench.step(rep.Launched(group=launch.group, machines=machines))


@pytest.mark.parametrize(
    ("resources", "gpu", "cpus", "held"),
    [
        (Resources(min_nodes=2, max_nodes=2, exclusive=True), "", 32, [(32, ()), (32, ())]),
        (Resources(min_nodes=2, max_nodes=2, mem_per_node_mib=ALL), "", 8, [(1, ()), (1, ())]),
        (Resources(gres=(Gres(name="gpu"),)), "h100", 8, [(1, (0,))]),
        (
            Resources(min_nodes=2, max_nodes=2, gpus=(Gres(name="gpu", count=3),)),
            "h100",
            8,
            [(1, (0, 1)), (1, (0,))],
        ),
    ],
)
def test_a_job_gets_its_share_of_the_machines_that_really_came(
    resources: Resources, gpu: str, cpus: int, held: list[tuple[int, tuple[int, ...]]]
) -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=resources)
    launched_as(bench, gpu, cpus)
    shares = bench.world.jobs[job].shares
    assert [(len(share.cpu_ids), share.gpu_ids) for share in shares] == held
    for share in shares:
        whole = bench.world.nodes[share.node].whole
        assert share.tres.fits(whole)
        assert share.tres.mem_mib == whole.mem_mib or resources.mem_per_node_mib != ALL


def test_an_allocation_whose_host_step_ends_takes_steps_on_their_way_with_it() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(batch=None, steps=(StepSpec(name="train"),), cluster="dev")
    bring_up_all(bench)
    bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    bench.journal("ec2-1", {"kind": "exited", "key": f"{job}/1/batch", "cause": "time_limit"})
    assert bench.state(job) == "COMPLETING", "step 0 may have been started by now"
    bench.journal("ec2-1", {"kind": "gone", "attempt": f"{job}/1"})
    assert bench.state(job) == "TIMEOUT"


NO_KILL: dict[str, Any] = {"resources": GANG, "requeue": True, "options": (("no-kill", ""),)}
ENDED = {"kind": "exited", "code": 0, "signal": 0, "started": 1.0}


def test_a_job_that_asked_to_goes_on_with_the_nodes_that_are_left() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(**NO_KILL)
    bring_up_all(bench)
    bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    both = add(bench, job, interactive=True, tasks=2, nodes=2)
    for node in ("ec2-1", "ec2-2"):
        bench.journal(node, {"kind": "started", "key": f"{job}/1/{both}"})
    vanish(bench, "ec2-2")
    found = bench.world.jobs[job]
    assert (found.shown_state, [share.node for share in found.shares]) == ("RUNNING", ["ec2-1"])
    assert (found.alloc.node, found.restarts) == (1, 0)
    assert [type(effect) for effect in bench.effects] == [KillStep]
    end = {"kind": "exited", "key": f"{job}/1/{both}", "code": 0, "signal": 15}
    bench.journal("ec2-1", {**end, "started": 1.0})
    step = bench.world.jobs[job].step(both)
    assert step is not None and (step.state, str(step.exit)) == (StepState.NODE_FAIL, "1:0")
    bench.journal("ec2-1", {**ENDED, "key": f"{job}/1/batch"})
    assert bench.world.jobs[job].state is JobState.COMPLETED


@pytest.mark.parametrize(("lost", "option"), [("ec2-1", ""), ("ec2-2", "off"), ("ec2-2", "OFF")])
def test_a_job_without_its_host_or_that_wants_none_less_is_over(lost: str, option: str) -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(**{**NO_KILL, "requeue": False, "options": (("no-kill", option),)})
    bring_up_all(bench)
    bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    vanish(bench, lost)
    assert bench.world.jobs[job].state is JobState.NODE_FAIL


def test_nodes_of_a_job_are_in_the_order_in_which_lists_show_them() -> None:
    """`scontrol show hostnames` begins with the node that has rank 0."""
    few = Elastic("ec2-", 12)
    bench = Bench(Site(partitions=(replace(ELASTIC.partitions[0], elastic=few),)))
    asked = Resources(min_nodes=11, max_nodes=11, exclusive=True)
    first = bench.submit(resources=asked)
    bring_up_all(bench)
    bench.run(first)
    second = bench.submit(resources=asked)
    names = [share.node for share in bench.world.jobs[second].shares]
    assert names == [f"ec2-{number}" for number in range(1, 12)]
