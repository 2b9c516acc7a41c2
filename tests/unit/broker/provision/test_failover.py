"""A walk along ranked offers buys all nodes or none, once, and tells every refusal."""

from dataclasses import replace

import pytest

from broker.model.effects import Launch
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import Market, Offer, Ranked
from broker.model.reports import Launched, NotLaunched
from broker.providers.fake import FakeCloud
from broker.providers.refusals import Rule
from broker.provision.failover import launch

A, B = (NodeName("ec2-1"), 1), (NodeName("ec2-2"), 2)
FIRST = Offer("fake", "us-east-1", ("z1", "z2"), "m7i.large", Market.ON_DEMAND, 100, 2, 8192)
FIRST = replace(FIRST, family="m7i")
LARGER = replace(FIRST, instance_type="m7i.xlarge")
SPOT = replace(LARGER, market=Market.SPOT, zones=("z1",))
ELSEWHERE = replace(FIRST, region="us-west-2", zones=("z9",))
OTHERS = replace(FIRST, provider="other")


class Clock:
    def now(self) -> int:
        return 1000


def effect(*offers: Offer) -> Launch:
    return Launch("7/1", (A, B), tuple(Ranked(offer, 1, "") for offer in offers))


@pytest.mark.parametrize(
    ("width", "bought"),
    [
        (Width.NOTHING, LARGER),
        (Width.TYPE_IN_ZONE, LARGER),
        (Width.TYPE_IN_REGION, LARGER),
        (Width.FAMILY_IN_REGION, SPOT),
        (Width.MARKET_IN_REGION, SPOT),
        (Width.REGION, ELSEWHERE),
        (Width.PROVIDER, OTHERS),
    ],
)
def test_the_next_offer_is_tried_that_a_refusal_does_not_rule_out(
    width: Width, bought: Offer
) -> None:
    here, there = FakeCloud(Clock(), []), FakeCloud(Clock(), [], name="other")
    here.refuse(Rule(instance_type=FIRST.instance_type, region=FIRST.region, width=width))
    walk = effect(FIRST, LARGER, SPOT, ELSEWHERE, OTHERS)
    seen = launch(walk, {"fake": here, "other": there})
    assert isinstance(seen, Launched)
    assert (seen.offer, seen.nodes) == (bought, 2)
    assert [(one.offer, one.width) for one in seen.tried] == [(FIRST, width)]


def test_when_all_refuse_nothing_is_bought_and_every_refusal_is_told() -> None:
    cloud = FakeCloud(Clock(), [])
    cloud.refuse(Rule(refusal=Refusal.QUOTA))
    seen = launch(effect(FIRST, LARGER, OTHERS), {"fake": cloud})
    assert isinstance(seen, NotLaunched)
    assert [one.refusal for one in seen.tried] == [Refusal.QUOTA, Refusal.QUOTA, Refusal.INVALID]
    assert (seen.nodes, cloud.machines()) == (2, [])


def test_a_walk_that_was_cut_off_after_it_bought_finds_what_it_bought() -> None:
    cloud = FakeCloud(Clock(), [])
    cloud.lost_replies = 1
    with pytest.raises(OSError, match="lost"):
        launch(effect(FIRST), {"fake": cloud})
    again = launch(effect(LARGER, FIRST), {"fake": cloud})
    assert isinstance(again, Launched)
    assert [machine.instance_type for machine in again.machines] == ["m7i.large"] * 2
    assert len(cloud.machines()) == 2
