"""Heterogeneous jobs: components with ids one after the other, which share one fate."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.effects import StartStep
from broker.model.errors import BadOption, Conflict
from broker.model.job import Hold
from broker.model.spec import ArraySpec, Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, DECLARED, ELASTIC, Bench


def component(**resources: object) -> TaskSpec:
    asked = Resources(**resources)  # type: ignore[arg-type]
    return TaskSpec(name="het", batch=StepSpec(name="batch"), resources=asked)


def submit(bench: Bench, *specs: TaskSpec, hold: bool = False) -> list[JobId]:
    """Ids of the components."""
    held = [spec.model_copy(update={"hold": hold}) for spec in specs]
    bench.requests += 1
    (reply,) = bench.step(
        cmd.Submit(spec=held[0], owner=ALICE, request=f"h{bench.requests}", more=tuple(held[1:])),
        full=False,
    )
    if isinstance(reply, Exception):
        raise reply
    assert isinstance(reply, int)
    return [JobId(reply + offset) for offset in range(len(specs))]


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def test_components_start_together_on_nodes_of_their_own_the_last_one_first(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2))
    places = [[share.node for share in bench.world.jobs[job].shares] for job in (first, second)]
    assert places == [["n2"], ["n1"]]
    assert [bench.world.jobs[job].het.offset for job in (first, second)] == [0, 1]  # type: ignore[union-attr]
    starts = [effect for effect in bench.effects if isinstance(effect, StartStep)]
    assert [[one.id for one in effect.gang] for effect in starts] == [[first, second]] * 2
    assert bench.submit() == second + 1


def test_all_start_or_none(bench: Bench) -> None:
    blockers = [bench.submit(resources=Resources(cpus_per_task=4)) for _ in range(3)]
    jobs = submit(bench, component(tasks=1), component(tasks=1))
    assert [bench.state(job) for job in jobs] == ["PENDING", "PENDING"]
    later = bench.submit(resources=Resources(cpus_per_task=4), time_limit=86400)
    bench.step()
    assert bench.state(later) == "PENDING"
    bench.run(blockers[0])
    bench.step()
    assert [bench.state(job) for job in jobs] == ["CONFIGURING", "CONFIGURING"]


def test_the_end_of_the_leaders_script_ends_the_others(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2))
    bench.run(first, code=3)
    other = bench.world.jobs[second]
    assert (other.shown_state, other.state.label, other.kill_cause) == (
        "COMPLETING",
        "FAILED",
        "finished",
    )
    bench.journal("n1", {"kind": "gone", "attempt": other.key})
    assert [bench.state(job) for job in (first, second)] == ["FAILED", "FAILED"]


def test_the_whole_is_cancelled_and_held_but_no_waiting_part_of_it(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2), hold=True)
    (refused,) = bench.step(cmd.Cancel(target=cmd.Target(second), by=ALICE, alone=True))
    assert isinstance(refused, Conflict)
    assert refused.slurm_errno & 0xFF == 60
    bench.step(cmd.SetHold(target=cmd.Target(first), by=ALICE, hold=None))
    assert bench.world.jobs[second].hold is None
    bench.step(cmd.SetHold(target=cmd.Target(first), by=ALICE, hold=Hold.USER))
    bench.step(cmd.Cancel(target=cmd.Target(first), by=ALICE))
    assert all(
        bench.world.jobs[job].state.final or bench.world.jobs[job].completing
        for job in (first, second)
    )


def test_a_component_is_ended_once_where_its_whole_is_named_before_it(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2), hold=True)
    (replies,) = bench.step(cmd.CancelAll(jobs=(first, second), by=ALICE))
    assert [type(reply) for reply in replies] == [type(None), Conflict]  # type: ignore[union-attr]
    assert [bench.state(job) for job in (first, second)] == ["CANCELLED", "CANCELLED"]


def test_one_component_that_no_node_could_run_refuses_the_whole(bench: Bench) -> None:
    with pytest.raises(BadOption):
        submit(bench, component(tasks=1), component(cpus_per_task=9))
    assert not bench.world.jobs


def test_the_leaders_script_waits_for_the_machines_of_all() -> None:
    bench = Bench(ELASTIC)
    submit(bench, component(tasks=1), component(tasks=2))
    assert len(bench.world.nodes) == 2
    assert not [effect for effect in bench.effects if isinstance(effect, StartStep)]


def test_a_requeue_of_the_whole_brings_every_component_back(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2))
    bench.journal("n2", {"kind": "started", "key": f"{bench.world.jobs[first].key}/batch"})
    bench.step(cmd.Requeue(target=cmd.Target(first), by=ALICE))
    for job in (first, second):
        for share in bench.world.jobs[job].shares:
            bench.journal(share.node, {"kind": "gone", "attempt": bench.world.jobs[job].key})
    assert [bench.state(job) for job in (first, second)] == ["PENDING", "PENDING"]
    bench.step(seconds=DECLARED.requeue_delay + 1)
    assert [bench.state(job) for job in (first, second)] == ["CONFIGURING", "CONFIGURING"]


def test_an_engine_that_starts_anew_knows_the_components(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2))
    again = Bench(DECLARED, bench.store)
    het = again.world.jobs[second].het
    assert het is not None
    assert het.ids == (first, second)


def test_what_holds_a_component_open_has_no_exit_code_of_its_own(bench: Bench) -> None:
    first, second = submit(bench, component(tasks=1), component(tasks=2))
    key = f"{bench.world.jobs[second].key}/batch"
    bench.journal("n1", {"kind": "started", "key": key})
    bench.run(first)
    bench.journal("n1", {"kind": "exited", "key": key, "code": 0, "signal": 15})
    assert str(bench.world.jobs[second].exit) == "0:0"


def test_components_that_want_more_nodes_than_there_are_wait_for_another_configuration(
    bench: Bench,
) -> None:
    whole = component(min_nodes=3, max_nodes=3)
    jobs = submit(bench, whole, whole)
    assert {bench.world.jobs[job].reason for job in jobs} == {"PartitionConfig"}
    assert bench.state(bench.submit()) == "CONFIGURING"


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ((("n1",), ()), [(), ("n1",)]),
        ((("n1",), ("n2",)), [("n2",), ("n1",)]),
        (((), ()), [(), ()]),
    ],
)
def test_no_component_gets_a_node_that_another_names(
    bench: Bench, named: tuple[tuple[str, ...], ...], kept: list[tuple[str, ...]]
) -> None:
    jobs = submit(bench, *(component(nodelist=nodes) for nodes in named))
    assert [bench.world.jobs[job].spec.resources.exclude for job in jobs] == kept


def test_a_node_named_twice_and_arrays_are_refused(bench: Bench) -> None:
    with pytest.raises(BadOption, match="Invalid node name specified"):
        submit(bench, component(nodelist=("n1",)), component(nodelist=("n1",)))
    array = component().model_copy(update={"array": ArraySpec(tasks=(1, 2))})
    with pytest.raises(BadOption, match="Invalid job array specification"):
        submit(bench, component(), array)


@pytest.mark.parametrize(
    ("place", "alone", "changed"),
    [(0, False, [0, 1]), (0, True, [0]), (1, False, [1]), (1, True, [1])],
)
def test_a_change_is_of_all_components_or_of_the_one_that_is_named_alone(
    bench: Bench, place: int, alone: bool, changed: list[int]
) -> None:
    jobs = submit(bench, component(tasks=1), component(tasks=1), hold=True)
    target = cmd.Target(jobs[place], alone=alone)
    bench.step(cmd.Update(target=target, by=ALICE, comment="new"))
    bench.step(cmd.SetHold(target=target, by=ALICE, hold=None))
    found = [bench.world.jobs[job] for job in jobs]
    assert [n for n, job in enumerate(found) if job.spec.comment == "new"] == changed
    assert [n for n, job in enumerate(found) if job.hold is None] == changed
