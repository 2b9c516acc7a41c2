"""Managed jobs: over when their run is, started again, moved to other regions, ended in groups."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Kill, Launch, StartStep
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.offer import MachineState, Market
from broker.model.spec import Managed, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, ELASTIC, Bench, machine

TASK = Managed()


class Managing(Bench):
    """A bench that submits managed jobs and plays their machines."""

    def managed(self, asked: Managed = TASK, nodes: int = 1) -> JobId:
        """One whose run has begun."""
        step = StepSpec(name="run", nodes=nodes, tasks=nodes)
        resources = {"min_nodes": nodes, "max_nodes": nodes}
        job = self.submit(
            batch=None, steps=(step,), managed=asked, requeue=True, resources=resources
        )
        self.up(job)
        return job

    def job(self, job: JobId) -> Job:
        return self.world.jobs[job]

    def node(self, job: JobId, place: int = 0) -> Node:
        return self.world.nodes[self.job(job).shares[place].node]

    def up(self, job: JobId) -> None:
        """Its machines come up, and the run begins on them."""
        for one in [e for e in self.effects if isinstance(e, Launch)]:
            self.step(rep.Launched(group=one.group, machines=machine(one, self.now)))
            for name, launch in one.nodes:
                self.step(rep.Booted(node=name, launch=launch))
        self.begin(job, "batch")
        for place in range(len(self.job(job).shares)):
            self.begin(job, "0", place)

    def begin(self, job: JobId, step: str, place: int = 0) -> None:
        key = f"{self.job(job).key}/{step}"
        self.journal(self.node(job, place).name, {"kind": "started", "key": key})

    def exits(self, job: JobId, code: int, place: int = 0) -> None:
        key = f"{self.job(job).key}/0"
        end = {"kind": "exited", "key": key, "code": code, "signal": 0}
        self.journal(self.node(job, place).name, end)

    def gone(self, job: JobId, *names: NodeName) -> None:
        """Nothing of the attempt is left on these nodes; a requeue's pause passes."""
        key = self.job(job).key
        for name in names:
            self.journal(name, {"kind": "gone", "attempt": key})
        self.step(seconds=70)
        self.step(seconds=1)

    def takes_back(self, job: JobId) -> str:
        """Notice, end and loss of its machine; the region where that was."""
        node = self.node(job)
        assert node.machine is not None
        self.journal(node.name, {"kind": "notice", "when": "soon"})
        self.gone(job, node.name)
        ended = replace(
            node.machine,
            state=MachineState.TERMINATED,
            market=Market.SPOT,
            terminated_at=self.now,
            ended_by_provider=True,
        )
        self.step(rep.Vanished(node=node.name, launch=node.launch, machine=ended))
        return node.machine.region


@pytest.fixture
def bench() -> Managing:
    return Managing(ELASTIC)


@pytest.mark.parametrize(("code", "state"), [(0, "COMPLETED"), (3, "FAILED")])
def test_a_managed_job_ends_as_its_run_does(bench: Managing, code: int, state: str) -> None:
    job = bench.managed()
    node = bench.node(job).name
    bench.exits(job, code)
    assert bench.state(job) == "COMPLETING"
    assert [e.job.kill_cause for e in bench.effects if isinstance(e, Kill)] == ["finished"]
    bench.gone(job, node)
    assert (bench.state(job), bench.job(job).exit.code) == (state, code)


def test_a_run_on_several_nodes_fails_if_it_does_on_one(bench: Managing) -> None:
    job = bench.managed(nodes=2)
    bench.exits(job, 0, place=0)
    assert bench.state(job) == "RUNNING"
    bench.exits(job, 4, place=1)
    assert bench.job(job).state.label == "FAILED"
    assert bench.job(job).exit.code == 4


def test_failures_start_it_again_as_often_as_was_asked(bench: Managing) -> None:
    job = bench.managed(Managed(max_restarts=1))
    for expected in ("RUNNING", "FAILED"):
        node = bench.node(job).name
        bench.exits(job, 3)
        bench.gone(job, node)
        if expected == "RUNNING":
            bench.up(job)
        assert bench.state(job) == expected
    assert (bench.job(job).restarts, bench.job(job).failures) == (1, 1)


def test_known_exit_codes_of_any_node_start_it_again_however_often(bench: Managing) -> None:
    job = bench.managed(Managed(exit_codes=(42,)), nodes=2)
    for _ in range(3):
        names = [share.node for share in bench.job(job).shares]
        bench.exits(job, 99, place=0)
        bench.exits(job, 42, place=1)
        bench.gone(job, *names)
        bench.up(job)
    assert (bench.state(job), bench.job(job).restarts, bench.job(job).failures) == ("RUNNING", 3, 0)


def test_pauses_before_it_starts_again_grow(bench: Managing) -> None:
    job = bench.managed(Managed(max_restarts=20))
    pauses = []
    for _ in range(8):
        node = bench.node(job).name
        bench.exits(job, 1)
        pauses.append((bench.job(job).not_before or 0) - bench.now)
        bench.gone(job, node)
        bench.up(job)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_it_goes_on_in_a_region_where_it_lost_nothing(bench: Managing) -> None:
    job = bench.managed()
    lost = []
    for _ in range(3):
        lost.append(bench.takes_back(job))
        bench.up(job)
    assert len({*lost, bench.node(job).machine.region}) == 4  # type: ignore[union-attr]
    assert bench.job(job).lost_regions == tuple(lost)
    assert (bench.state(job), bench.job(job).restarts) == ("RUNNING", 3)


def test_failover_stays_in_its_region_as_long_as_that_has_others(bench: Managing) -> None:
    job = bench.managed(Managed(eager=False))
    before = bench.node(job)
    region = bench.takes_back(job)
    bench.up(job)
    after = bench.node(job)
    assert before.machine and after.machine
    assert after.machine.region == region
    pool = (before.machine.instance_type, before.machine.zone)
    assert (after.machine.instance_type, after.machine.zone) != pool


def group(bench: Managing, *, delay: int = 0, restarts: int = 0) -> tuple[JobId, JobId]:
    """A primary task, and one that ends after it: components of one job."""
    spec = TaskSpec(
        name="first",
        steps=(StepSpec(name="run", nodes=1, tasks=1),),
        managed=Managed(kind="group", max_restarts=restarts),
        requeue=True,
    )
    other = Managed(kind="group", outlives=(0,), delay=delay)
    more = (spec.model_copy(update={"name": "other", "managed": other}),)
    (first,) = bench.step(cmd.Submit(spec=spec, more=more, owner=ALICE, request="g"), seconds=1)
    assert isinstance(first, int), first
    return JobId(first), JobId(first + 1)


def running_group(bench: Managing, *, delay: int = 0, restarts: int = 0) -> tuple[JobId, JobId]:
    """The same once both run."""
    first, other = group(bench, delay=delay, restarts=restarts)
    bench.up(first)
    bench.up(other)
    return first, other


def test_the_tasks_of_a_group_are_one_job_and_begin_together(bench: Managing) -> None:
    first, other = group(bench)
    assert [bench.job(one).het is not None for one in (first, other)] == [True, True]
    assert bench.job(other).spec.managed == Managed(kind="group", root=first, outlives=(first,))
    launches = [one for one in bench.effects if isinstance(one, Launch)]
    bench.step(rep.Launched(group=launches[0].group, machines=machine(launches[0], bench.now)))
    ((name, launch),) = launches[0].nodes
    bench.step(rep.Booted(node=name, launch=launch))
    assert [one for one in bench.effects if isinstance(one, StartStep)] == []


def test_a_task_of_a_group_fails_and_starts_again_by_itself(bench: Managing) -> None:
    first, other = running_group(bench, restarts=1)
    node = bench.node(first).name
    bench.exits(first, 1)
    bench.gone(first, node)
    assert (bench.job(first).restarts, bench.state(other)) == (1, "RUNNING")
    bench.up(first)
    assert bench.state(first) == "RUNNING"
    bench.exits(other, 0)
    assert bench.state(first) == "RUNNING"


def test_a_group_is_cancelled_by_its_first_job(bench: Managing) -> None:
    first, other = running_group(bench)
    bench.step(cmd.Cancel(target=cmd.Target(first), by=ALICE))
    assert {bench.job(one).state.label for one in (first, other)} == {"CANCELLED"}


@pytest.mark.parametrize(("code", "seconds"), [(0, 90), (1, 1)])
def test_others_end_after_the_primary_task_at_once_if_that_failed(
    bench: Managing, code: int, seconds: int
) -> None:
    first, other = running_group(bench, delay=90)
    node = bench.node(first).name
    bench.exits(first, code)
    key = bench.job(first).key
    bench.journal(node, {"kind": "gone", "attempt": key})
    bench.step(seconds=seconds - 1)
    assert bench.state(other) == "RUNNING"
    bench.step(seconds=1)
    assert bench.job(other).state.label == "CANCELLED"


def test_others_that_never_started_end_too(bench: Managing) -> None:
    first = bench.managed(Managed(kind="group"))
    other = bench.submit(
        batch=None,
        steps=(StepSpec(name="run"),),
        hold=True,
        managed=Managed(kind="group", outlives=(first,)),
    )
    node = bench.node(first).name
    bench.exits(first, 0)
    bench.gone(first, node)
    assert bench.state(other) == "CANCELLED"


def test_the_primary_task_is_known_as_long_as_others_outlive_it(bench: Managing) -> None:
    first, other = running_group(bench, delay=5000)
    node = bench.node(first).name
    bench.exits(first, 0)
    bench.gone(first, node)
    bench.step(seconds=4000)
    assert first in bench.world.jobs
    assert bench.state(other) == "RUNNING"
    bench.step(seconds=2000)
    assert bench.job(other).state.label == "CANCELLED"
