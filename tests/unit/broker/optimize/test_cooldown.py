"""Refusals are remembered as widely as they were meant, for longer each time, and forgotten."""

from dataclasses import dataclass, replace

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import BuyPolicy, Market, Need, Offer
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import FORGET_SECONDS, PAUSES, Cooldown, Place
from broker.optimize.rank import rank

NOW = 1_800_000_000
OFFER = Offer(
    "ec2", "us-east-1", ("use1-az1", "use1-az2"), "g5.xlarge", Market.ON_DEMAND, 1_006_000,
    cpus=4, mem_mib=16384, family="g5",
)  # fmt: skip
HERE = Place("ec2", "us-east-1", "use1-az1", "g5.xlarge", "g5", Market.ON_DEMAND)


def refusal(width: Width, why: Refusal = Refusal.CAPACITY) -> ProviderError:
    return ProviderError(why, width, "no capacity")


def cooled(width: Width) -> Cooldown:
    cool = Cooldown()
    cool.refused(OFFER, refusal(width), now=NOW)
    return cool


OTHERS = {
    "other zone": replace(HERE, zone="use1-az6"),
    "other type": replace(HERE, instance_type="g5.2xlarge"),
    "other family": replace(HERE, instance_type="c7i.large", family="c7i"),
    "other market": replace(HERE, market=Market.SPOT),
    "other region": replace(HERE, region="us-west-2", zone="usw2-az1"),
    "other provider": replace(HERE, provider="local"),
}
WIDTHS = [
    (Width.TYPE_IN_ZONE, set()),
    (Width.TYPE_IN_REGION, {"other zone"}),
    (Width.FAMILY_IN_REGION, {"other zone", "other type"}),
    (Width.MARKET_IN_REGION, {"other zone", "other type", "other family"}),
    (Width.REGION, {"other zone", "other type", "other family", "other market"}),
    (Width.PROVIDER, set(OTHERS) - {"other provider"}),
]


@pytest.mark.parametrize("width, ruled_out", WIDTHS)
def test_a_refusal_rules_out_what_its_width_says(width: Width, ruled_out: set[str]) -> None:
    cool = cooled(width)
    assert cool.against(HERE, now=NOW)
    assert {name for name, place in OTHERS.items() if cool.against(place, now=NOW)} == ruled_out


def test_a_refusal_of_no_width_rules_out_nothing() -> None:
    cool = cooled(Width.NOTHING)
    assert cool.quiet()
    assert cool.against(HERE, now=NOW) is None


def test_each_zone_of_the_offer_is_ruled_out() -> None:
    cool = cooled(Width.TYPE_IN_ZONE)
    assert {entry.key[3] for entry in cool.entries(NOW)} == {"use1-az1", "use1-az2"}


def test_the_pause_doubles_up_to_its_longest() -> None:
    cool, now, pauses = Cooldown(), NOW, []
    for _ in range(8):
        entry = cool.refused(OFFER, refusal(Width.TYPE_IN_REGION), now=now)[0]
        pauses.append(entry.until - now)
        now = entry.until
    assert pauses == [60, 120, 240, 480, 960, 1800, 1800, 1800]


def test_quiet_time_takes_refusals_off_the_count() -> None:
    cool = Cooldown()
    for _ in range(3):
        cool.refused(OFFER, refusal(Width.REGION), now=NOW)
    until = cool.entries(NOW)[0].until
    later = cool.refused(OFFER, refusal(Width.REGION), now=until + 2 * FORGET_SECONDS)[0]
    assert later.strikes == 2


def test_a_pause_ends() -> None:
    cool = cooled(Width.REGION)
    until = NOW + PAUSES[Refusal.CAPACITY].first
    assert cool.against(HERE, now=until - 1)
    assert cool.against(HERE, now=until) is None
    assert cool.entries(until) == ()


def test_success_opens_at_once_and_halves_the_count() -> None:
    cool = Cooldown()
    for _ in range(4):
        cool.refused(OFFER, refusal(Width.TYPE_IN_REGION), now=NOW)
    cool.succeeded(OFFER, now=NOW)
    assert cool.against(HERE, now=NOW) is None
    assert cool.refused(OFFER, refusal(Width.TYPE_IN_REGION), now=NOW)[0].strikes == 3


def test_a_refusal_of_many_machines_says_nothing_about_one() -> None:
    cool = Cooldown()
    cool.refused(OFFER, refusal(Width.REGION), now=NOW, nodes=64)
    assert cool.against(HERE, now=NOW, nodes=1) is None
    assert cool.against(HERE, now=NOW, nodes=64)
    cool.refused(OFFER, refusal(Width.REGION), now=NOW, nodes=1)
    assert cool.against(HERE, now=NOW, nodes=1)


def test_what_no_longer_counts_is_dropped() -> None:
    cool = cooled(Width.REGION)
    cool.forget(NOW + 60)
    assert not cool.quiet()
    cool.forget(NOW + 60 + FORGET_SECONDS)
    assert cool.quiet()


def test_entries_can_be_carried_over_a_restart() -> None:
    before = cooled(Width.FAMILY_IN_REGION)
    after = Cooldown(before.entries(NOW))
    assert after.against(HERE, now=NOW) == before.against(HERE, now=NOW)


@dataclass(frozen=True)
class Report:
    refusal: Refusal = Refusal.QUOTA
    width: Width = Width.MARKET_IN_REGION
    message: str = "VcpuLimitExceeded"


def test_a_report_of_a_refusal_will_do_in_place_of_the_error() -> None:
    entry = Cooldown().refused(OFFER, Report(), now=NOW)[0]
    assert (entry.until - NOW, entry.message) == (300, "VcpuLimitExceeded")


def test_refused_offers_stand_behind_all_others(small: Catalog) -> None:
    need, cool = Need(gpu_type="A10G", gpus=1), Cooldown()
    best = rank(need, small, cool, target=BuyPolicy(), now=NOW)[0].offer
    cool.refused(best, refusal(Width.TYPE_IN_REGION), now=NOW)
    found = rank(need, small, cool, target=BuyPolicy(regions=("us-east-1",)), now=NOW)
    assert found[-1].offer == best
    assert found[-1].cooling_until == NOW + 60
    assert (
        found[-1].reason == "behind the others: type in region refused for capacity (no capacity)"
    )
    assert all(one.cooling_until is None for one in found[:-1])


def test_an_on_demand_offer_names_the_zones_that_are_open(small: Catalog) -> None:
    need, cool = Need(gpu_type="A10G", gpus=1), Cooldown()
    best = rank(need, small, cool, target=BuyPolicy(), now=NOW)[0].offer
    shut = replace(best, zones=best.zones[:2])
    cool.refused(shut, refusal(Width.TYPE_IN_ZONE), now=NOW)
    found = rank(need, small, cool, target=BuyPolicy(), now=NOW)[0]
    assert found.offer.zones == best.zones[2:]
    assert found.cooling_until is None


def test_when_the_whole_provider_refuses_the_order_is_kept(small: Catalog) -> None:
    need, cool = Need(cpus=4), Cooldown()
    before = rank(need, small, cool, target=BuyPolicy(), now=NOW)
    cool.refused(before[0].offer, refusal(Width.PROVIDER, Refusal.AUTH), now=NOW)
    after = rank(need, small, cool, target=BuyPolicy(), now=NOW)
    assert [one.offer for one in after] == [one.offer for one in before]
    assert {one.cooling_until for one in after} == {NOW + 3600}
