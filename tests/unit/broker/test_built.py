"""Machines with wishes of a job's own: bought and billed so, shared with nobody else."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from broker.model import reports as rep
from broker.model.build import Build
from broker.model.effects import Launch, Prepare
from broker.model.errors import Refusal, Width
from broker.model.job import IMPOSSIBLE, Hold, JobState
from broker.model.offer import BuyPolicy
from broker.model.rates import PUBLISHED
from broker.model.site import Elastic, Site
from broker.model.spec import Resources
from broker.optimize.costs import parts
from broker.provision.purpose import Lifetimes, purpose
from tests.unit.broker.test_engine import ELASTIC, Bench, machine

BUY = BuyPolicy(root_gib=30)
SITE = Site(partitions=(replace(ELASTIC.partitions[0], elastic=Elastic("ec2-", 8, buy=BUY)),))
LABELLED = Build(labels=(("team", "nlp"),), disk_gib=500)
OTHER = Build(labels=(("team", "vision"),), disk_gib=500)


def submit(bench: Bench, build: Build | None) -> JobId:
    return bench.submit(resources=Resources(exclusive=True, build=build), time_limit=600)


def up(bench: Bench) -> None:
    (launch,) = [one for one in bench.effects if isinstance(one, Launch)]
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    (prepare,) = [one for one in bench.effects if isinstance(one, Prepare)]
    bench.step(rep.Booted(node=prepare.node.name, launch=prepare.node.launch))


def test_a_purchase_bears_the_wishes_and_is_billed_for_its_volume() -> None:
    bench = Bench(SITE)
    submit(bench, LABELLED)
    up(bench)
    (node,) = bench.world.nodes.values()
    seen = bench.engine.snapshot
    asked = purpose([node.identity], seen, Lifetimes(spare=60, unlimited=60))
    assert (node.build, asked.build) == (LABELLED, LABELLED)
    (volume,) = (one for one in node.beside if one.part == "volume")
    assert volume.prices[0].micro_usd_per_hour == 500 * 80_000 // 730
    usual = parts(BUY, "us-east-1", PUBLISHED)
    assert parts(BUY, "us-east-1", PUBLISHED, build=LABELLED)["volume"] > usual["volume"]


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (None, None, True),
        (LABELLED, LABELLED, True),
        (LABELLED, OTHER, False),
        (LABELLED, None, False),
        (None, LABELLED, False),
    ],
)
def test_an_idle_machine_is_for_those_alone_who_want_what_it_was_made_of(
    first: Build | None, second: Build | None, shared: bool
) -> None:
    bench = Bench(SITE)
    job = submit(bench, first)
    up(bench)
    bench.run(job)
    other = submit(bench, second)
    bench.step(seconds=2)
    names = {share.node for share in bench.world.jobs[other].shares}
    assert names == ({"ec2-1"} if shared else {"ec2-2"})


def test_a_wish_that_no_machine_can_meet_holds_the_job_and_says_why() -> None:
    bench = Bench(SITE)
    job = submit(bench, Build(images=(("", "ami-1"),)))
    (launch,) = [one for one in bench.effects if isinstance(one, Launch)]
    why = "image_id: ami-1 is no image in us-east-1"
    tried = tuple(
        rep.Tried(rung.offer, Refusal.INVALID, Width.NOTHING, why) for rung in launch.rungs
    )
    bench.step(rep.NotLaunched(group=launch.group, tried=tried))
    bench.step(seconds=100)
    found = bench.world.jobs[job]
    assert (found.state, found.hold, found.reason) == (JobState.PENDING, Hold.USER, IMPOSSIBLE)
    assert why in found.detail
    assert not bench.world.nodes


def test_it_is_bought_only_where_an_image_is_named() -> None:
    bench = Bench(SITE)
    submit(bench, None)
    (launch,) = [one for one in bench.effects if isinstance(one, Launch)]
    region = launch.rungs[-1].offer.region
    named = Bench(SITE)
    submit(named, Build(images=((region, "ami-1"),)))
    (launch,) = [one for one in named.effects if isinstance(one, Launch)]
    assert {rung.offer.region for rung in launch.rungs} == {region}
