"""What is billed beside machines, by region: rates, their days, and what follows from them."""

from dataclasses import replace

import pytest

from broker.model.build import Build, Volume
from broker.model.offer import BuyPolicy, Market, Need, Offer
from broker.model.rates import BETWEEN_REGIONS, COUNTED, PUBLISHED, UNITS, Rate
from broker.optimize.bundled import FORMAT, bundled, catalog_of, packaged
from broker.optimize.cooldown import Cooldown
from broker.optimize.costs import hourly, parts
from broker.optimize.figures import RegionFigures, refreshed
from broker.optimize.rank import rank
from broker.optimize.shelf import shelve

NOW = 1_800_000_000
"""2027-01-15."""
DEAR = PUBLISHED.with_rows(
    [
        Rate("gp3", "sa-east-1", "", 152_000, "2027-01-10", "price-list"),
        Rate("address", "sa-east-1", "", 6_000, "2027-01-10", "price-list"),
        Rate("gp3-iops", "sa-east-1", "", 9_500, "2027-01-10", "price-list"),
    ]
)
POLICY = BuyPolicy(root_gib=100, public_address=True, regions=("us-east-1", "sa-east-1"))


@pytest.mark.parametrize(
    ("volume", "region", "month"),
    [
        (Volume(gib=100), "us-east-1", 100 * 80_000),
        (Volume(gib=100), "sa-east-1", 100 * 152_000),
        (Volume(gib=100), "eu-north-1", 100 * 80_000),
        (Volume(gib=10, iops=3000, mbps=125), "sa-east-1", 10 * 152_000),
        (Volume(gib=10, iops=4000), "sa-east-1", 10 * 152_000 + 1000 * 9_500),
        (Volume(gib=10, mbps=225), "sa-east-1", 10 * 152_000 + 100 * 40_000),
        (Volume(kind="io2", gib=10, iops=100), "us-east-1", 10 * 125_000 + 100 * 65_000),
        (Volume(kind="standard", gib=10, iops=100), "us-east-1", 10 * 50_000),
    ],
)
def test_a_volume_costs_what_its_region_asks(volume: Volume, region: str, month: int) -> None:
    assert hourly(volume, region, DEAR) == month // 730


@pytest.mark.parametrize(
    ("source", "target", "gib", "cost"),
    [
        ("us-east-1", "us-east-2", 10, 100_000),
        ("us-east-1", "eu-west-1", 10, 200_000),
        ("eu-west-1", "us-east-1", 10, 200_000),
        ("af-south-1", "eu-west-1", 1, 147_000),
        ("xx-new-1", "eu-west-1", 1, 147_000),
        ("us-east-1", "us-east-1", 10, 0),
        ("", "us-east-1", 10, 0),
    ],
)
def test_data_is_paid_for_by_the_region_that_sends_it(
    source: str, target: str, gib: int, *, cost: int
) -> None:
    assert PUBLISHED.moving(gib, source, target) == cost


def test_every_rate_has_a_unit_a_day_and_a_source_and_each_of_them_counts_everywhere() -> None:
    assert {rate.item for rate in PUBLISHED} == UNITS.keys()
    assert set(COUNTED) <= UNITS.keys()
    for rate in PUBLISHED:
        assert rate.micro_usd > 0 and rate.as_of and rate.source
    for item in UNITS:
        assert PUBLISHED.of(item, "ap-new-9").item == item
    with pytest.raises(KeyError):
        PUBLISHED.of("water", "us-east-1")


def offer(region: str, price: int) -> Offer:
    return Offer(
        provider="local",
        region=region,
        zones=(f"{region}-z1",),
        instance_type="m7i.large",
        market=Market.ON_DEMAND,
        micro_usd_per_hour=price,
        cpus=2,
        mem_mib=8192,
        family="m7i",
        as_of="2027-01-14",
    )


def test_the_cheapest_counts_what_its_own_region_asks_for_volumes_and_addresses() -> None:
    """A machine that is cheaper by less than its volume is dearer comes second."""
    beside = {region: sum(parts(POLICY, region, DEAR).values()) for region in POLICY.regions}
    more = beside["sa-east-1"] - beside["us-east-1"]
    for less, first in ((more - 10, "us-east-1"), (more + 10, "sa-east-1")):
        here, there = offer("us-east-1", 100_000), offer("sa-east-1", 100_000 - less)
        sold = replace(shelve([here, there]), rates=DEAR)
        need = Need(cpus=1, run_seconds=3600)
        found = rank(need, sold, Cooldown(), target=POLICY, now=NOW)
        assert found[0].offer.region == first
        costs = {one.offer.region: one.expected_micro_usd for one in found}
        paid = 3660
        hourly_there = 100_000 - less + beside["sa-east-1"]
        assert costs["sa-east-1"] == -(-hourly_there * paid // 3600)


def test_rates_that_are_old_are_said_to_be_old_like_every_price() -> None:
    sold = shelve([offer("us-east-1", 100_000), offer("sa-east-1", 100_000)])
    sold = replace(sold, rates=DEAR)
    found = rank(Need(cpus=1), sold, Cooldown(), target=POLICY, now=NOW)
    told = {one.offer.region: one for one in found}
    old = "rates of volumes and addresses of 2025, 744 days old: `spz catalog refresh`"
    assert told["us-east-1"].old_price == old
    assert old in told["us-east-1"].notes
    assert told["sa-east-1"].old_price == ""
    bare = replace(POLICY, root_gib=0, public_address=False)
    (first, _) = rank(Need(cpus=1), sold, Cooldown(), target=bare, now=NOW)
    assert first.old_price == "", "none of them counts"


def figures(region: str, rates: dict[tuple[str, str], int]) -> RegionFigures:
    return RegionFigures(
        region=region,
        opt_in=False,
        zones=(),
        offered={},
        types={},
        on_demand=None,
        spot={},
        rates=rates,
    )


def test_rates_that_were_read_are_kept_with_their_day_and_others_as_they_were() -> None:
    read = {("gp3", ""): 96_000, (BETWEEN_REGIONS, "us-east-1"): 21_000}
    first = refreshed(packaged(), [figures("eu-west-1", read)], "2027-01-10")
    again = refreshed(first, [figures("eu-west-1", {("gp3", ""): 97_000})], "2027-01-12")
    assert again["format"] == FORMAT
    rates = catalog_of(again, "ec2").rates
    gp3 = rates.of("gp3", "eu-west-1")
    assert (gp3.micro_usd, gp3.as_of, gp3.source) == (97_000, "2027-01-12", "price-list")
    route = rates.of(BETWEEN_REGIONS, "eu-west-1", "us-east-1")
    assert (route.micro_usd, route.as_of) == (21_000, "2027-01-10")
    assert rates.of(BETWEEN_REGIONS, "eu-west-1", "us-west-2").micro_usd == 20_000
    assert rates.of("gp3", "us-east-1") == PUBLISHED.of("gp3", "us-east-1")
    assert bundled("ec2").rates.of("address", "eu-west-1").micro_usd == 5_000


def test_an_address_of_a_build_costs_the_same() -> None:
    assert parts(POLICY, "sa-east-1", DEAR)["address"] == 6_000
    assert parts(POLICY, "sa-east-1", DEAR, build=Build(disk_gib=10))["volume"] == 1_520_000 // 730
