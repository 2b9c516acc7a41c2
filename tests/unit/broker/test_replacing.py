"""A machine of a gang that fails before the job has begun is replaced alone, once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch, StartStep, Terminate
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import NodeState
from broker.model.offer import MachineState, Market, Unstarted
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Resources
from broker.provision.purpose import Lifetimes, purpose
from tests.unit.broker.test_engine import ALICE, ELASTIC, Bench, machine

FOUR = Resources(min_nodes=4, max_nodes=4)


class Gang(Bench):
    """Four machines were bought for one job; those named are up."""

    def __init__(self, *up: str, site: Site = ELASTIC, resources: Resources = FOUR) -> None:
        super().__init__(site)
        self.id = self.submit(resources=resources)
        self.buy()
        self.boot(*up)

    @property
    def job(self) -> Job:
        return self.world.jobs[JobId(self.id)]

    @property
    def names(self) -> list[str]:
        return [share.node for share in self.job.shares]

    def launches(self) -> list[Launch]:
        return [effect for effect in self.effects if isinstance(effect, Launch)]

    def buy(self) -> Launch:
        (launch,) = self.launches()
        self.step(rep.Launched(group=launch.group, machines=machine(launch, self.now)))
        return launch

    def number(self, name: str) -> int:
        return self.world.nodes[NodeName(name)].launch

    def boot(self, *names: str, seconds: int = 0) -> None:
        for name in names:
            self.step(rep.Booted(node=NodeName(name), launch=self.number(name)), seconds=seconds)

    def fail(self, name: str) -> None:
        found = NodeName(name), self.number(name)
        self.step(rep.NotBooted(node=found[0], launch=found[1], message="no agent"), full=False)

    def lose(self, name: str, **changes: Any) -> None:
        node = self.world.nodes[NodeName(name)]
        assert node.machine is not None
        gone = replace(
            node.machine, state=MachineState.TERMINATED, terminated_at=self.now, **changes
        )
        self.step(rep.Vanished(node=node.name, launch=node.launch, machine=gone), full=False)

    def linger(self, name: str) -> None:
        self.step(seconds=900, full=False)
        assert self.world.nodes[NodeName(name)].state is NodeState.TERMINATING


FAILS: dict[str, Callable[[Gang, str], None]] = {
    "its agent does not start": Gang.fail,
    "it vanishes": Gang.lose,
    "it is late": Gang.linger,
}


@pytest.mark.parametrize("how", FAILS)
def test_one_that_fails_is_replaced_alone_and_the_job_begins_when_all_are_up(how: str) -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    FAILS[how](gang, "ec2-2")
    assert gang.names == ["ec2-1", "ec2-3", "ec2-4", "ec2-5"]
    assert gang.job.configuring
    assert gang.job.attempt == 1
    assert not [effect for effect in gang.effects if isinstance(effect, StartStep)]
    launch = gang.buy()
    assert [name for name, _ in launch.nodes] == ["ec2-5"]
    gang.boot("ec2-5")
    (start,) = [effect for effect in gang.effects if isinstance(effect, StartStep)]
    assert start.node.name == "ec2-1"


def test_it_is_of_the_same_type_market_and_zone_as_the_others() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    stays = gang.world.nodes[NodeName("ec2-1")].machine
    gang.fail("ec2-2")
    (launch,) = gang.launches()
    (rung,) = launch.rungs
    assert stays is not None
    assert (rung.offer.instance_type, rung.offer.region, rung.offer.zones, rung.offer.market) == (
        stays.instance_type,
        stays.region,
        (stays.zone,),
        stays.market,
    )


def test_the_first_of_its_nodes_is_replaced_like_any_other() -> None:
    gang = Gang("ec2-2", "ec2-3", "ec2-4")
    gang.fail("ec2-1")
    assert gang.names == ["ec2-2", "ec2-3", "ec2-4", "ec2-5"], "the batch step is on the first"


def test_two_that_fail_at_once_are_both_replaced() -> None:
    gang = Gang("ec2-1", "ec2-4")
    gang.step(seconds=900, full=False)
    gang.step(seconds=1, full=False)
    assert gang.names == ["ec2-1", "ec2-4", "ec2-5", "ec2-6"]
    assert len(gang.launches()) == 2
    ended = {effect.node for effect in gang.effects if isinstance(effect, Terminate)}
    assert ended == {"ec2-2", "ec2-3"}


def given_back(gang: Gang) -> bool:
    return not gang.job.shares and gang.job.reason == "Resources"


def test_where_more_than_half_have_failed_all_are_given_back() -> None:
    gang = Gang("ec2-1")
    for name in ("ec2-2", "ec2-3"):
        gang.fail(name)
    assert not given_back(gang), "those that were bought again are on their way"
    gang.fail("ec2-4")
    assert given_back(gang)


def test_where_more_than_half_are_late_at_once_none_is_bought_again() -> None:
    gang = Gang("ec2-1")
    gang.step(seconds=900, full=False)
    assert given_back(gang)
    assert not gang.launches()


def test_one_in_place_of_another_that_fails_too_gives_all_back() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    gang.fail("ec2-2")
    gang.buy()
    gang.fail("ec2-5")
    assert given_back(gang)
    assert gang.world.nodes[NodeName("ec2-1")].idle_since == gang.now


def test_where_there_is_no_other_to_be_had_all_are_given_back() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    gang.fail("ec2-2")
    (launch,) = gang.launches()
    tried = rep.Tried(launch.rungs[0].offer, Refusal.CAPACITY, Width.TYPE_IN_ZONE, "none left")
    gang.step(rep.NotLaunched(group=launch.group, tried=(tried,)), full=False)
    assert given_back(gang)
    assert gang.job.detail == "none left"


def test_one_that_its_provider_took_back_is_not_bought_again_in_that_pool() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    gang.lose("ec2-2", ended_by_provider=True, market=Market.SPOT)
    assert given_back(gang)


@pytest.mark.parametrize(
    ("refusal", "again", "reason"),
    [
        (Refusal.TRANSIENT, True, ""),
        (Refusal.CAPACITY, False, "Resources"),
        (Refusal.QUOTA, False, "AssocGrpCpuLimit"),
    ],
)
def test_one_that_could_not_be_started_is_bought_again_where_that_may_pass(
    refusal: Refusal, again: bool, reason: str
) -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    gang.lose("ec2-2", unstarted=Unstarted(refusal, Width.TYPE_IN_ZONE, "so EC2 says"))
    assert bool(gang.launches()) is again
    if not again:
        told = "machine ended by its provider: so EC2 says"
        assert (gang.job.reason, gang.job.detail) == (reason, told)


def few(most: int) -> Site:
    part = Partition("ec2", default=True, elastic=Elastic("ec2-", most), def_mem_per_cpu_mib=1024)
    return Site(partitions=(part,))


@pytest.mark.parametrize("site", [few(4), replace(ELASTIC, max_bought=4)], ids=["names", "site"])
def test_where_no_more_machines_may_be_bought_all_are_given_back(site: Site) -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4", site=site)
    gang.fail("ec2-2")
    assert given_back(gang)


def test_one_in_place_of_another_is_bought_beside_one_of_the_others() -> None:
    """Where a fabric joins them that is their placement group; who is refused there goes back."""
    wish = Resources(min_nodes=3, max_nodes=3, constraint="efa")
    gang = Gang("ec2-1", "ec2-3", resources=wish)
    gang.fail("ec2-2")
    (launch,) = gang.launches()
    seen, lives = gang.engine.snapshot, Lifetimes(spare=1, unlimited=1)
    assert purpose(launch.nodes, seen, lives).beside == "m-ec2-1"
    assert purpose([("ec2-1", gang.number("ec2-1"))], seen, lives).beside == ""
    gang.step(rep.NotLaunched(group=launch.group, tried=(), nodes=1), full=False)
    assert given_back(gang)


def test_a_job_that_has_begun_is_not_helped_by_another_machine() -> None:
    gang = Gang("ec2-1", "ec2-2", "ec2-3", "ec2-4")
    gang.lose("ec2-2")
    assert gang.job.completing


@pytest.mark.parametrize(("lag", "bought"), [(60, False), (70, True)])
def test_one_that_is_far_behind_the_others_is_replaced_before_its_time_is_up(
    lag: int, bought: bool
) -> None:
    gang = Gang()
    gang.step(seconds=10)
    gang.boot("ec2-1", "ec2-3", "ec2-4")
    gang.step(seconds=lag - 10, full=False)
    assert ("ec2-5" in gang.names) == bought


def test_a_late_one_that_cannot_be_replaced_has_all_the_time_of_its_boot() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4", site=few(4))
    gang.step(seconds=120, full=False)
    assert gang.world.nodes[NodeName("ec2-2")].state is NodeState.BOOTING
    assert gang.job.configuring


def test_a_cancelled_job_lets_go_of_the_one_that_was_to_replace_another() -> None:
    gang = Gang("ec2-1", "ec2-3", "ec2-4")
    gang.fail("ec2-2")
    gang.step(cmd.Cancel(target=cmd.Target(JobId(gang.id)), by=ALICE))
    assert not gang.job.shares
    gang.buy()
    gang.boot("ec2-5")
    assert gang.world.nodes[NodeName("ec2-5")].idle_since is not None
