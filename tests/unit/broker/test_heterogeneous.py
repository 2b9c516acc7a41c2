"""Heterogeneous jobs: components with ids one after the other, which share one fate."""

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch, StartStep
from broker.model.errors import BadOption, Conflict
from broker.model.job import Hold
from broker.model.node import Node, NodeState
from broker.model.spec import ArraySpec, Managed, Resources, StepSpec, TaskSpec
from broker.quotes import PROBE_SECONDS
from tests.unit.broker.test_engine import ALICE, DECLARED, ELASTIC, Bench, machine, refused


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


def family(node: Node) -> str:
    return next(name for name in ("c7i", "g5", "m7i") if name in node.features)


class Buying(Bench):
    """A heterogeneous job whose components want machines of their own."""

    def __init__(self, *constraints: str, managed: Managed | None = None) -> None:
        super().__init__(ELASTIC)
        specs = [component(constraint=one) for one in constraints]
        specs = [spec.model_copy(update={"managed": managed}) for spec in specs]
        self.jobs = submit(self, *specs)

    @property
    def launches(self) -> list[Launch]:
        return [effect for effect in self.effects if isinstance(effect, Launch)]

    def buy(self) -> str:
        """What the only launch that is due buys: its family."""
        (launch,) = self.launches
        self.step(rep.Launched(group=launch.group, machines=machine(launch, self.now)), full=False)
        return launch.rungs[0].offer.family

    def refuse(self) -> str:
        (launch,) = self.launches
        self.step(refused(launch), full=False)
        return launch.rungs[0].offer.family

    def states(self) -> dict[str, str]:
        """Of machines, by family."""
        return {family(node): node.state.label for node in self.world.nodes.values()}

    def boot(self, *families: str) -> None:
        for node in list(self.world.nodes.values()):
            if family(node) in families:
                self.step(rep.Booted(node=node.name, launch=node.launch), full=False)


def test_machines_of_components_are_bought_one_after_the_other_the_dearest_first() -> None:
    bench = Buying("c7i", "g5", "m7i")
    assert [bench.buy() for _ in range(3)] == ["g5", "m7i", "c7i"]
    assert not bench.launches


def test_where_one_component_has_no_capacity_none_keeps_a_machine_and_all_say_why() -> None:
    bench = Buying("c7i", "g5", "m7i")
    bench.buy()
    assert bench.refuse() == "m7i"
    assert bench.states() == {"g5": "TERMINATING"}
    records = [bench.world.jobs[job] for job in bench.jobs]
    assert {(one.shown_state, one.reason) for one in records} == {("PENDING", "Resources")}
    assert all("no capacity" in one.detail for one in records)


def test_what_was_refused_is_asked_for_first_the_next_time() -> None:
    bench = Buying("c7i", "g5", "m7i&us-east-1")
    bench.buy()
    bench.refuse()
    (gone,) = bench.world.nodes.values()
    bench.step(rep.Terminated(node=gone.name, launch=gone.launch, machine=None), seconds=5)
    assert not bench.launches, "while it rests, nothing is bought for the others either"
    bench.step(seconds=PROBE_SECONDS)
    assert bench.refuse() == "m7i"
    assert not bench.world.nodes
    bench.step(seconds=PROBE_SECONDS)
    assert [bench.buy() for _ in range(3)] == ["m7i", "g5", "c7i"]


def test_a_component_gives_back_the_idle_machine_that_it_was_to_have() -> None:
    bench = Buying("c7i")
    bench.step(seconds=1)
    bench.buy()
    bench.boot("c7i")
    bench.run(bench.jobs[0])
    submit(bench, component(constraint="c7i"), component(constraint="g5"))
    assert bench.states() == {"c7i": "UP", "g5": "LAUNCHING"}
    bench.refuse()
    assert bench.states() == {"c7i": "TERMINATING"}


def test_a_machine_that_another_job_has_meanwhile_stays_with_it() -> None:
    bench = Buying("c7i", "g5")
    bench.buy()
    other = bench.submit(resources=Resources(constraint="g5"))
    bench.refuse()
    assert bench.states() == {"g5": "BOOTING"}
    assert bench.state(other) == "CONFIGURING"


def test_where_one_machine_does_not_come_up_the_others_wait_for_whom_they_serve_first() -> None:
    """The gang finds them again if all can be had; until then anybody may."""
    bench = Buying("c7i", "g5")
    bench.buy(), bench.buy()
    bench.boot("g5")
    (lost,) = (node for node in bench.world.nodes.values() if node.state is NodeState.BOOTING)
    bench.step(rep.NotBooted(node=lost.name, launch=lost.launch, message="no ssh"), full=False)
    assert {bench.state(job) for job in bench.jobs} == {"PENDING"}
    bench.step()
    assert {bench.state(job) for job in bench.jobs} == {"CONFIGURING"}
    assert bench.buy() == "c7i"
    assert bench.states()["g5"] == "UP"


def test_tasks_of_a_managed_group_are_bought_for_together_at_first() -> None:
    bench = Buying("c7i", "g5", managed=Managed())
    bench.buy()
    bench.refuse()
    assert bench.states() == {"g5": "TERMINATING"}


def test_one_of_a_managed_group_that_starts_again_takes_no_other_with_it() -> None:
    bench = Buying("c7i", "g5", managed=Managed())
    bench.buy(), bench.buy()
    bench.boot("c7i", "g5")
    first, second = bench.jobs
    for job in bench.jobs:
        key = f"{bench.world.jobs[job].key}/batch"
        share = bench.world.jobs[job].shares[0]
        bench.journal(share.node, {"kind": "started", "key": key})
    node = bench.world.nodes[bench.world.jobs[first].shares[0].node]
    bench.step(rep.Vanished(node=node.name, launch=node.launch))
    bench.step(seconds=ELASTIC.requeue_delay + 1)
    assert bench.refuse() == "c7i"
    assert bench.state(second) == "RUNNING"
