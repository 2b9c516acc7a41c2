"""Protected mode: what never comes up is not bought again and again, restarts or not."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from broker.model import reports as rep
from broker.model.boots import BuyAgain
from broker.model.build import Build
from broker.model.effects import Launch
from broker.model.errors import Denied, Refusal, Unknown, Width
from broker.model.ids import NodeName
from broker.model.job import Hold
from broker.model.offer import MachineState, Market, Unstarted
from broker.model.spec import Resources
from broker.optimize.protected import MOST_FAILED, PROTECTED_SECONDS, barred, kind_of
from broker.provision.failover import launch
from tests.unit.broker.made import machine as made
from tests.unit.broker.test_engine import ALICE, ELASTIC, ROOT, Bench, machine


class Failing(Bench):
    """Machines are bought for one job, again and again."""

    def __init__(self, resources: Resources = Resources()) -> None:
        super().__init__(ELASTIC)
        self.id = self.submit(resources=resources)

    def launch(self) -> Launch:
        (found,) = [effect for effect in self.effects if isinstance(effect, Launch)]
        return found

    def buy(self) -> NodeName:
        """The first rung works."""
        wanted = self.launch()
        self.step(rep.Launched(group=wanted.group, machines=machine(wanted, self.now)))
        return wanted.nodes[0][0]

    def number(self, name: NodeName) -> int:
        return self.world.nodes[name].launch

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            name = self.buy()
            self.step(rep.NotBooted(node=name, launch=self.number(name), message="no python"))

    def end(self, name: NodeName, **how: object) -> None:
        """It is gone before it came up."""
        node = self.world.nodes[name]
        assert node.machine is not None
        gone = replace(node.machine, state=MachineState.TERMINATED, **how)  # type: ignore[arg-type]
        self.step(rep.Vanished(node=name, launch=node.launch, machine=gone))

    def again(self) -> "Failing":
        """The same after the service was started anew."""
        other = Failing.__new__(Failing)
        Bench.__init__(other, ELASTIC, self.store)
        other.id, other.now = self.id, self.now
        other.step()
        return other


def kind(bench: Failing) -> str:
    offer = bench.launch().rungs[0].offer
    return kind_of("local", offer, None)


def test_after_three_in_a_row_another_kind_is_bought_and_all_are_told_why() -> None:
    bench = Failing()
    bad = kind(bench)
    bench.fail(MOST_FAILED)
    shut = bench.world.boots[bad]
    assert (shut.failed, shut.until) == (3, bench.now + PROTECTED_SECONDS)
    wanted = bench.launch()
    assert bad not in {kind_of("local", rung.offer, None) for rung in wanted.rungs}
    (told,) = {one.message for one in wanted.tried}
    assert told.startswith(f"protected mode: 3 of {bad} in a row never came up (no python); next")


def test_a_restart_of_the_service_forgets_nothing_of_it() -> None:
    bench = Failing()
    bad = kind(bench)
    bench.fail(MOST_FAILED)
    after = bench.again()
    assert after.world.boots == bench.world.boots
    assert after.engine.snapshot.boots == bench.world.boots
    assert bad not in {kind_of("local", rung.offer, None) for rung in after.launch().rungs}


def test_one_that_comes_up_ends_it() -> None:
    bench = Failing()
    bench.fail(MOST_FAILED - 1)
    assert bench.world.boots
    name = bench.buy()
    bench.step(rep.Booted(node=name, launch=bench.number(name)))
    assert not bench.world.boots
    assert not bench.again().world.boots


def test_after_its_time_one_more_is_tried_and_if_that_fails_none_for_as_long() -> None:
    bench = Failing()
    bad = kind(bench)
    bench.fail(MOST_FAILED)
    bench.step(seconds=PROTECTED_SECONDS)
    assert bench.world.boots[bad].until is None
    record = bench.world.boots[bad]
    assert (record.failed, record.since < bench.now) == (3, True)
    assert barred(bench.launch().rungs, None, bench.world.boots)[1] == ()


@pytest.mark.parametrize(
    ("how", "counts"),
    [
        ({"ended_by_provider": True, "market": Market.SPOT}, 0),
        ({"ended_by_provider": True}, 0),
        ({"unstarted": Unstarted(Refusal.QUOTA, Width.REGION, "volumes")}, 0),
        ({"unstarted": Unstarted(Refusal.TRANSIENT, Width.NOTHING, "no such snapshot")}, 1),
        ({}, 1),
    ],
    ids=["taken back", "lost by EC2", "not started", "not with its image", "ended itself"],
)
def test_what_its_provider_took_away_says_nothing_of_its_image(
    how: dict[str, object], counts: int
) -> None:
    bench = Failing()
    bench.end(bench.buy(), **how)
    assert len(bench.world.boots) == counts


def test_a_jobs_own_image_keeps_no_other_job_from_the_type_and_the_job_is_held() -> None:
    own = Build(images=(("", "ami-bad"),))
    bench = Failing(Resources(build=own))
    bench.fail(MOST_FAILED)
    wanted = bench.launch()
    assert not wanted.rungs
    assert {(one.refusal, one.width) for one in wanted.tried} == {(Refusal.INVALID, Width.NOTHING)}
    rungs = bench.world.nodes[wanted.nodes[0][0]].rungs
    assert barred(rungs, None, bench.world.boots) == (rungs, ())
    bench.step(launch(wanted, {}))
    assert bench.world.jobs[JobId(bench.id)].hold is Hold.USER


def test_operators_end_it_and_nobody_else() -> None:
    bench = Failing()
    bad = kind(bench)
    bench.fail(MOST_FAILED)
    (denied, unknown) = bench.step(BuyAgain(by=ALICE, name=None), BuyAgain(by=ROOT, name="x"))
    assert isinstance(denied, Denied)
    assert isinstance(unknown, Unknown)
    assert bench.step(BuyAgain(by=ROOT, name=bad)) == [[bad]]
    assert not bench.world.boots
    assert bench.step(BuyAgain(by=ROOT, name=None)) == [[]]


def test_kinds_are_told_apart_by_region_type_and_a_jobs_own_image() -> None:
    one = made()
    assert kind_of("ec2", one, None) == "ec2:us-east-1,m7i.large"
    assert kind_of("ec2", one, Build(disk_gib=9)) == kind_of("ec2", one, None)
    own = Build(images=(("us-east-1", "ami-1"), ("", "ami-2")))
    assert kind_of("ec2", one, own) == "ec2:ami-1"
    assert kind_of("ec2", replace(one, region="eu-west-1"), own) == "ec2:ami-2"
