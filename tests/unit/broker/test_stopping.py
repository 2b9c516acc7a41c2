"""Clusters whose machines are stopped and started: states, effects, who pays, what can go wrong."""

from collections import Counter
from dataclasses import replace

import pytest

from accounting.change import Change
from accounting.ids import JobId
from accounting.limits import Limits
from broker.decide.stopping import never_stops
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Kill, Launch, Prepare, StartMachine, StartStep, StopMachine
from broker.model.errors import Conflict, Denied, Refusal, Width
from broker.model.job import Hold
from broker.model.node import Node, NodeState
from broker.model.offer import BuyPolicy, Machine, MachineState, Market
from broker.model.rates import PUBLISHED, Rate, Rates
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Resources, StepSpec
from broker.model.stopping import (
    MachineNotStarted,
    MachineStarted,
    MachineStopped,
    StartCluster,
    StopCluster,
)
from broker.optimize.costs import parts
from broker.schedule.budgets import REASON
from tests.unit.broker.test_admission import with_limits
from tests.unit.broker.test_budgets import dollars
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ELASTIC, ROOT, Bench, machine

BUY = BuyPolicy(root_gib=100, public_address=True)
SITE = Site(
    partitions=(
        Partition("ec2", default=True, elastic=Elastic("ec2-", 8, buy=BUY), def_mem_per_cpu_mib=1),
    )
)
DAY = 86400


def not_started(kept: Machine, why: str) -> MachineNotStarted:
    return MachineNotStarted(
        node=kept.node,
        launch=kept.launch,
        machine=kept,
        refusal=Refusal.CAPACITY,
        width=Width.TYPE_IN_ZONE,
        message=why,
    )


class Dev:
    """A cluster of some nodes that is up, one run in it over."""

    def __init__(self, nodes: int = 1, site: Site = SITE) -> None:
        self.bench = Bench(site)
        asked = Resources(min_nodes=nodes, max_nodes=nodes, exclusive=True)
        steps = (StepSpec(name="run"),)
        self.id = self.bench.submit(
            resources=asked, batch=None, steps=steps, cluster="dev", requeue=False
        )
        (launch,) = [one for one in self.bench.effects if isinstance(one, Launch)]
        bought = machine(launch, self.bench.now)
        self.bench.step(rep.Launched(group=launch.group, machines=bought))
        self.boot(seconds=30)
        self.begin()
        self.journal("0", "started")
        self.journal("0", "exited")

    @property
    def job(self):  # type: ignore[no-untyped-def]
        return self.bench.world.jobs[self.id]

    @property
    def nodes(self) -> list[Node]:
        return list(self.bench.world.nodes.values())

    def effects(self, kind: type) -> list[object]:
        return [one for one in self.bench.effects if isinstance(one, kind)]

    def boot(self, seconds: int) -> None:
        for number, effect in enumerate(self.effects(Prepare)):
            node = effect.node  # type: ignore[attr-defined]
            report = rep.Booted(node=node.name, launch=node.launch)
            self.bench.step(report, seconds=0 if number else seconds)

    def begin(self) -> None:
        self.journal("batch", "started")

    def journal(self, step: str, kind: str) -> None:
        record = {"kind": kind, "key": f"{self.job.key}/{step}", "code": 0, "signal": 0}
        self.bench.journal(self.job.shares[0].node, record)

    def ask(self, kind: type = StopCluster, by: object = ALICE) -> object:
        (reply,) = self.bench.step(kind(job=self.id, by=by), seconds=10)
        return reply

    def clear(self) -> None:
        """Nothing of the attempt is left on its nodes."""
        key = self.job.key
        for share in self.job.shares:
            self.bench.journal(share.node, {"kind": "gone", "attempt": key})

    def told(self, node: Node, **changes: object) -> Machine:
        assert node.machine is not None
        return replace(node.machine, **changes)  # type: ignore[arg-type]

    def halt(self) -> None:
        """Its machines are stopped 10 s after that was asked."""
        now = self.bench.now
        for node in self.nodes:
            kept = self.told(node, state=MachineState.STOPPED, stopped_at=now)
            report = MachineStopped(node=node.name, launch=node.launch, machine=kept)
            self.bench.step(report)

    def stop(self) -> None:
        assert self.ask() is None
        self.clear()
        self.halt()

    def wake(self) -> None:
        self.bench.step(seconds=5)
        now = self.bench.now
        for node in [effect.node for effect in self.effects(StartMachine)]:  # type: ignore[attr-defined]
            runs = self.told(
                node, state=MachineState.RUNNING, stopped_at=None, launched_at=now, running_at=now
            )
            self.bench.step(MachineStarted(node=node.name, launch=node.launch, machine=runs))


def spent(dev: Dev) -> Counter[str]:
    """Micro-dollars by what of the machine they are for."""
    found: Counter[str] = Counter()
    for entry in dev.bench.store.entries.values():
        found[(entry.machine or "").partition("/")[2]] += entry.cost
    return found


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_cluster_is_stopped_and_started_with_its_runs_and_machines(nodes: int) -> None:
    dev = Dev(nodes)
    before = {node.machine.id for node in dev.nodes if node.machine}
    assert dev.ask() is None
    assert (dev.job.shown_state, len(dev.effects(Kill))) == ("COMPLETING", 1)
    dev.clear()
    assert [node.state for node in dev.nodes] == [NodeState.STOPPING] * nodes
    assert len(dev.effects(StopMachine)) == nodes
    dev.halt()
    assert [node.state for node in dev.nodes] == [NodeState.STOPPED] * nodes
    assert (dev.job.shown_state, dev.job.hold, len(dev.job.kept)) == ("PENDING", Hold.USER, nodes)
    assert not dev.bench.effects
    dev.bench.step(seconds=DAY)
    assert not dev.bench.effects, "nobody lets go of them, nothing is planned for it"

    assert dev.ask(StartCluster) is None
    assert (dev.job.shown_state, dev.job.attempt) == ("CONFIGURING", 2)
    dev.wake()
    dev.boot(seconds=30)
    assert [node.keeper for node in dev.nodes] == [None] * nodes
    (batch,) = dev.effects(StartStep)
    assert (batch.step, batch.job.attempt) == ("batch", 2)  # type: ignore[attr-defined]
    dev.begin()
    assert (dev.job.shown_state, dev.job.kept) == ("RUNNING", ())
    assert {node.machine.id for node in dev.nodes if node.machine} == before
    runs = [step for step in dev.job.steps if step.numbered]
    assert [(run.id, run.state.name) for run in runs] == [("0", "COMPLETED")]
    (number,) = dev.bench.step(
        cmd.AddStep(job=dev.id, by=ALICE, step=StepSpec(name="again"), request="r")
    )
    assert number == "1", "numbers of runs go on, so do the names of their texts"


def dear_rates() -> Rates:
    here = Dev().nodes[0].machine
    assert here is not None
    return PUBLISHED.with_rows(
        [
            Rate("gp3", here.region, "", 160_000, "2027-01-01", "price-list"),
            Rate("address", here.region, "", 7_000, "2027-01-01", "price-list"),
        ]
    )


def beside_of(dev: Dev) -> dict[str, int]:
    open_ones = (one for one in dev.nodes[0].beside if not one.closed)
    return {one.part: one.prices[-1].micro_usd_per_hour for one in open_ones}


def test_what_is_beside_a_machine_is_billed_at_the_rates_of_its_region() -> None:
    dev = Dev(site=replace(SITE, rates=dear_rates()))
    assert beside_of(dev) == {"volume": 100 * 160_000 // 730, "address": 7_000}


def test_new_figures_count_at_once_for_what_begins_after_them() -> None:
    dev, rates = Dev(site=replace(SITE, offered_features=frozenset())), dear_rates()
    before = beside_of(dev)
    told = cmd.TakeFigures(rates=rates, words=frozenset({"m9x"}), by=ALICE)
    (reply,) = dev.bench.step(told)
    assert isinstance(reply, Denied)
    assert dev.bench.world.site.rates is not rates
    assert dev.bench.step(replace(told, by=ROOT)) == [None]
    assert dev.bench.world.site.offered_features == {"m9x"}
    dev.bench.step(seconds=DAY)
    assert beside_of(dev) == before
    dev.stop()
    dev.ask(StartCluster)
    dev.wake()
    dev.boot(seconds=30)
    assert beside_of(dev) == before | {"address": 7_000}


def test_a_stopped_machine_costs_its_volume_and_nothing_else_to_its_owner() -> None:
    dev = Dev()
    price = dev.nodes[0].micro_usd_per_hour
    beside = parts(BUY, "us-east-1", PUBLISHED)
    volume, address = beside["volume"], beside["address"]
    began = dev.nodes[0].machine.running_at if dev.nodes[0].machine else 0
    dev.stop()
    halted = dev.bench.now
    dev.bench.step(seconds=DAY)
    dev.ask(StartCluster)
    dev.wake()
    again = dev.bench.now
    dev.boot(seconds=30)
    dev.begin()
    (node,) = dev.nodes
    dev.bench.step(cmd.Cancel(target=cmd.Target(dev.id), by=ALICE), seconds=3600)
    dev.clear()
    dev.bench.step(seconds=400)
    over = dev.bench.now
    gone = dev.told(node, state=MachineState.TERMINATED, terminated_at=over)
    dev.bench.step(rep.Terminated(node=node.name, launch=node.launch, machine=gone))
    runs = max(60, halted - began), over - again
    assert spent(dev) == {
        "": sum(seconds * price // 3600 for seconds in runs),
        "volume": (over - began) * volume // 3600,
        "address": sum(seconds * address // 3600 for seconds in runs),
    }
    stood = [entry.job for entry in dev.bench.store.entries.values() if halted < entry.at <= again]
    assert set(stood) == {dev.id}


@pytest.mark.parametrize("late", [False, True])
def test_a_start_without_room_stops_all_of_it_again_and_says_why(late: bool) -> None:
    dev = Dev(2)
    dev.stop()
    dev.ask(StartCluster)
    first, second = dev.nodes
    if late:
        dev.bench.step(seconds=DAY)
    else:
        runs = dev.told(first, state=MachineState.RUNNING, running_at=dev.bench.now)
        dev.bench.step(MachineStarted(node=first.name, launch=first.launch, machine=runs))
        why = "no room"
        dev.bench.step(not_started(dev.told(second), why))
    assert dev.job.detail == (f"{first.name} did not come up in time" if late else "no room")
    assert (dev.job.shown_state, dev.job.hold, len(dev.job.kept)) == ("PENDING", Hold.USER, 2)
    dev.halt()
    assert [node.state for node in dev.nodes] == [NodeState.STOPPED] * 2
    assert dev.ask(StartCluster) is None
    assert dev.job.attempt == 3


def test_a_release_of_a_stopped_cluster_is_its_start() -> None:
    dev = Dev()
    dev.stop()
    dev.bench.step(cmd.SetHold(target=cmd.Target(dev.id), by=ALICE, hold=None))
    assert len(dev.effects(StartMachine)) == 1
    assert not dev.effects(Launch)


def test_what_a_stopped_cluster_kept_goes_with_it() -> None:
    dev = Dev(2)
    dev.stop()
    dev.bench.step(cmd.Cancel(target=cmd.Target(dev.id), by=ALICE))
    dev.bench.step(seconds=1)
    assert [node.state for node in dev.nodes] == [NodeState.TERMINATING] * 2


def test_a_cluster_ends_when_a_machine_that_was_kept_for_it_is_gone() -> None:
    dev = Dev(2)
    dev.stop()
    first = dev.nodes[0]
    gone = dev.told(first, state=MachineState.TERMINATED, terminated_at=dev.bench.now)
    dev.bench.step(rep.Vanished(node=first.name, launch=first.launch, machine=gone))
    assert (dev.job.shown_state, dev.job.reason) == ("NODE_FAIL", "NodeDown")
    dev.bench.step(seconds=1)
    assert [node.state for node in dev.nodes] == [NodeState.TERMINATING]


def test_an_idle_cluster_is_stopped_where_its_user_wants_that() -> None:
    dev = Dev()
    change = (("idle_seconds", 60), ("idle_stops", True))
    dev.bench.step(cmd.Update(target=cmd.Target(dev.id), by=ALICE, spec=change))
    dev.bench.step(seconds=61)
    dev.clear()
    assert [node.state for node in dev.nodes] == [NodeState.STOPPING]


def test_a_service_that_starts_anew_goes_on_with_what_was_under_way() -> None:
    dev = Dev()
    dev.ask()
    dev.clear()
    again = Bench(SITE, dev.bench.store)
    again.step()
    assert [type(effect) for effect in again.effects] == [StopMachine]


def test_stopping_and_starting_twice_is_doing_it_once() -> None:
    dev = Dev()
    assert dev.ask(StartCluster) is None
    dev.ask()
    assert dev.ask() is None
    dev.clear()
    slow = dev.ask(StartCluster)
    assert isinstance(slow, Conflict)
    assert "still being stopped" in slow.message
    dev.halt()
    assert dev.ask() is None
    assert dev.job.restarts == 1


def test_a_limit_that_others_have_filled_keeps_a_cluster_stopped() -> None:
    limited = with_limits(qos=Limits(), user=Limits(max_jobs=1))
    dev = Dev(site=replace(SITE, book=limited.book))
    dev.stop()
    other = dev.bench.submit()
    barred = dev.ask(StartCluster)
    assert isinstance(barred, Conflict)
    assert "cannot be started now: AssocMaxJobsLimit" in barred.message
    dev.bench.step(cmd.Cancel(target=cmd.Target(other), by=ALICE))
    assert dev.ask(StartCluster) is None


def test_a_budget_that_is_used_up_keeps_a_cluster_stopped() -> None:
    dev = Dev()
    dev.stop()
    for usd, starts in ((0.0, False), (1e6, True)):
        change = Change(budgets=(dollars(usd),))
        basis = dev.bench.world.site.book
        dev.bench.step(cmd.ChangeBook(change=change, basis=basis, by=ROOT, action="Set Budget"))
        told = dev.ask(StartCluster)
        assert (told is None) is starts, told
        assert starts or f"cannot be started now: {REASON}" in told.message  # type: ignore[union-attr]


def test_a_budget_that_is_used_up_holds_against_its_release_by_scontrol_too() -> None:
    dev = Dev()
    dev.stop()
    change, basis = Change(budgets=(dollars(0.0),)), dev.bench.world.site.book
    dev.bench.step(cmd.ChangeBook(change=change, basis=basis, by=ROOT, action="Set Budget"))
    release = cmd.SetHold(target=cmd.Target(dev.id), by=ALICE, hold=None)
    (told,) = dev.bench.step(release)
    assert isinstance(told, Conflict)
    assert f"cannot be started now: {REASON}" in told.message
    assert dev.job.kept


def test_only_who_may_change_it_may_stop_it() -> None:
    dev = Dev()
    assert isinstance(dev.ask(by=BOB), Denied)


def test_spot_machines_declared_nodes_and_plain_jobs_are_never_stopped() -> None:
    dev = Dev()
    spot = replace(dev.nodes[0], machine=dev.told(dev.nodes[0], market=Market.SPOT))
    assert "stopping spot machines is not supported" in never_stops([spot])
    bench = Bench(DECLARED)
    plain = bench.submit(cluster="dev", batch=None)
    bench.journal("n1", {"kind": "started", "key": f"{plain}/1/batch"})
    (reply,) = bench.step(StopCluster(job=plain, by=ALICE))
    assert isinstance(reply, Conflict)
    assert "declared" in reply.message
    job = Bench(ELASTIC)
    (reply,) = job.step(StopCluster(job=JobId(job.submit()), by=ALICE))
    assert "not up" in getattr(reply, "message", "")


def console_stops(dev: Dev) -> None:
    """Somebody stops its first machine in EC2's console."""
    node = dev.nodes[0]
    assert node.machine is not None
    halted = replace(node.machine, state=MachineState.STOPPED, stopped_at=dev.bench.now)
    dev.bench.step(rep.Vanished(node=node.name, launch=node.launch, machine=halted), seconds=5)


def test_a_cluster_whose_machine_was_stopped_in_the_console_is_a_stopped_one() -> None:
    dev = Dev(nodes=2)
    console_stops(dev)
    assert (bool(dev.job.kept), dev.job.hold) == (True, Hold.USER)
    assert {node.state for node in dev.nodes} == {NodeState.STOPPED, NodeState.STOPPING}
    assert {one.keeper for one in dev.nodes} == {dev.id}


def test_any_other_job_on_it_is_lost_and_the_machine_let_go() -> None:
    bench = Bench(SITE)
    job = bench.submit(requeue=True)
    (launch,) = [one for one in bench.effects if isinstance(one, Launch)]
    bought = machine(launch, bench.now)
    bench.step(rep.Launched(group=launch.group, machines=bought))
    ((name, number),) = launch.nodes
    bench.step(rep.Booted(node=name, launch=number))
    bench.journal(name, {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    halted = replace(bought[0], state=MachineState.STOPPED)
    bench.step(rep.Vanished(node=name, launch=number, machine=halted), seconds=5)
    assert bench.world.jobs[job].restarts == 1
    assert bench.world.nodes[name].state is NodeState.TERMINATING
