"""Ranking: agrees with looking at everything, says why, and leaves out what nobody asked for."""

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.build import Build
from broker.model.errors import BadOption, ProviderError, Refusal, Width
from broker.model.offer import Alternative, BuyPolicy, Market, Need, Offer
from broker.optimize.bundled import catalog_of
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.optimize.query import queries
from broker.optimize.rank import FIRST, paid_for, rank, ranking
from broker.optimize.shelf import shelve
from tests.unit.broker.optimize.conftest import cut, unpacked
from tests.unit.broker.optimize.exhaustive import search

NOW = 1_800_000_000
SMALL = catalog_of(cut(unpacked()), "local")
OFFERS = list(SMALL)
SHELVED = shelve(OFFERS)
PLAIN = BuyPolicy()
SPOT = BuyPolicy(spot=True)

GPUS = st.sampled_from(["A10G", "a10g", "T4", "H100", "A100", "A100-80GB", "l4", "T4g", "B200"])
CONSTRAINTS = st.sampled_from(
    [
        "g5",
        "spot",
        "ondemand&us-east-1",
        "us-east-1|eu-west-1",
        "use1-az4",
        "(use1-az4|euw1-az1)&c6a",
        "[us-east-1|us-west-2]&nvme",
        "arm64",
        "t3|spot&us-east-2",
        "[spot*2&ondemand*1]",
        "on-demand|g5",
        "spot&ondemand|t3",
        "af-south-1",
        "afs1-az1",
        "gpu-fraction|g5",
        "opt-in&m7i",
        "intel&metal",
        "m7i.4xlarge",
    ]
)
CAPS = st.sampled_from([None] * 6 + [150_000, 1_006_000, 6_880_000])
ALTERNATIVES = st.builds(
    Alternative,
    regions=st.sampled_from([(), (), (), ("us-east-1", "af-south-1"), ("eu-west-1",)]),
    zones=st.sampled_from([()] * 5 + [("use1-az4",), ("afs1-az1", "euw1-az2")]),
    instance_types=st.sampled_from([()] * 5 + [("c6a.4xlarge", "t3.xlarge"), ("p5.48xlarge",)]),
    families=st.sampled_from([()] * 5 + [("m7i",), ("g5", "g5g")]),
    markets=st.sampled_from([(), (), (Market.SPOT,), (Market.ON_DEMAND,), tuple(Market)]),
    gpu=st.sampled_from([None] * 4 + [("A10G", 1), ("t4", 2), ("H100", 8)]),
    max_micro_usd_per_hour=CAPS,
)
NEEDS = st.builds(
    Need,
    cpus=st.sampled_from([1, 1, 2, 4, 7, 16, 90]),
    mem_mib=st.sampled_from([0] * 4 + [7_000, 15_565, 400_000]),
    nodes=st.integers(1, 5),
    gpu_type=st.one_of(st.none(), GPUS),
    gpus=st.sampled_from([0, 0, 0, 0, 1, 1, 4, 8]),
    tmp_mib=st.sampled_from([0] * 6 + [100_000]),
    cpus_exactly=st.sampled_from([None] * 8 + [16]),
    constraint=st.one_of(st.none(), st.none(), CONSTRAINTS),
    alternatives=st.lists(ALTERNATIVES, max_size=3).map(tuple),
    ordered=st.booleans(),
    run_seconds=st.sampled_from([1, 59, 600, 3600, 86_400, 2_000_000]),
    data_gib=st.sampled_from([0, 0, 0, 1, 70]),
    data_region=st.sampled_from(["eu-west-1", "af-south-1", "us-east-1"]),
)
POLICIES = st.builds(
    BuyPolicy,
    arch=st.sampled_from(["x86_64", "x86_64", "arm64"]),
    burstable=st.booleans(),
    opt_in_regions=st.booleans(),
    gpu_fractions=st.booleans(),
    spot=st.booleans(),
    regions=st.sampled_from([()] * 5 + [("us-east-1", "af-south-1")]),
    families=st.sampled_from([()] * 5 + [("c6a", "t3", "g5")]),
    prefer=st.sampled_from(["cost", "cost", "time"]),
    boot_seconds=st.sampled_from([0, 60]),
    memory_share_percent=st.sampled_from([95, 100]),
    root_gib=st.sampled_from([0, 0, 30]),
    public_address=st.booleans(),
    max_micro_usd_per_hour=CAPS,
)


def sold(offer: Offer) -> tuple[str, str, str, tuple[str, ...]]:
    return offer.instance_type, offer.region, offer.market, offer.zones


@settings(max_examples=100)
@given(need=NEEDS, policy=POLICIES)
def test_ranking_agrees_with_an_exhaustive_search(need: Need, policy: BuyPolicy) -> None:
    expected = search(need, OFFERS, policy)
    found = list(ranking(need, SHELVED, Cooldown(), target=policy, now=NOW))
    assert [sold(one.offer) for one in found] == [fit.sold for fit in expected]
    assert [one.expected_micro_usd for one in found] == [fit.cost for fit in expected]
    packed = list(ranking(need, SMALL, Cooldown(), target=policy, now=NOW))
    assert [one.expected_micro_usd for one in packed] == [fit.cost for fit in expected]
    assert {sold(one.offer) for one in packed} == {fit.sold for fit in expected}


@pytest.mark.parametrize(
    "need",
    [
        Need(gpu_type="A10G", gpus=1),
        Need(cpus=4),
        Need(gpu_type="H100", gpus=8, nodes=2),
        Need(constraint="spot&use1-az4", cpus=3),
    ],
)
def test_first_offers_of_the_whole_table_agree_with_an_exhaustive_search(
    need: Need, whole: Catalog
) -> None:
    expected = search(need, list(whole), BuyPolicy())[:FIRST]
    found = rank(need, whole, Cooldown(), target=BuyPolicy(), now=NOW)
    assert [one.expected_micro_usd for one in found] == [fit.cost for fit in expected]


def first(need: Need, policy: BuyPolicy = PLAIN) -> str:
    found = rank(need, SMALL, Cooldown(), target=policy, now=NOW)
    return found[0].offer.instance_type if found else ""


def everything(need: Need, policy: BuyPolicy = PLAIN) -> list[Offer]:
    return [o.offer for o in ranking(need, SMALL, Cooldown(), target=policy, now=NOW)]


ELSEWHERE = {
    "us-east-1": {("us-east-1", Market.ON_DEMAND)},
    "spot&use1-az4": {("us-east-1", Market.SPOT)},
    "[spot*2&ondemand*1]": set[tuple[str, Market]](),
    "[eu-west-1|us-east-1]&on-demand": {
        ("us-east-1", Market.ON_DEMAND),
        ("eu-west-1", Market.ON_DEMAND),
    },
}


@pytest.mark.parametrize("expression", ELSEWHERE)
def test_only_markets_and_regions_that_a_constraint_can_hold_in_are_looked_at(
    expression: str,
) -> None:
    """A job whose machines are to be in one zone is planned as fast as another."""
    (asked,) = queries(Need(constraint=expression), SMALL, PLAIN)
    found = {
        (region.name, market)
        for market in asked.markets
        for region, within in zip(SMALL.regions, asked.within[market], strict=True)
        if within
    }
    assert found == ELSEWHERE[expression]


def test_a_partitions_own_feature_may_have_a_markets_name() -> None:
    assert everything(Need(constraint="spot"), BuyPolicy(features=("spot",))) != []
    both = everything(Need(constraint="spot&ondemand"), BuyPolicy(features=("spot",)))
    assert {offer.market for offer in both} == {Market.ON_DEMAND}


@pytest.mark.parametrize(
    "word, policy",
    [
        ("arm64", BuyPolicy(arch="arm64")),
        ("burstable", BuyPolicy(burstable=True)),
        ("opt-in", BuyPolicy(opt_in_regions=True)),
        ("gpu-fraction", BuyPolicy(gpu_fractions=True)),
        ("spot", BuyPolicy(spot=True)),
    ],
)
def test_what_cheapest_leaves_out_comes_by_setting_or_by_name(word: str, policy: BuyPolicy) -> None:
    assert not any(word in offer.features for offer in everything(Need()))
    assert any(word in offer.features for offer in everything(Need(), policy))
    named = everything(Need(constraint=word))
    assert named
    assert all(word in offer.features for offer in named)


@pytest.mark.parametrize("name", ["A10G", "a10g", "nvidia_a10g", "A10g"])
def test_gpu_names_are_matched_ignoring_case_and_signs(name: str) -> None:
    assert first(Need(gpu_type=name, gpus=1)) == "g5.xlarge"


def test_a_gpu_name_is_matched_whole() -> None:
    kinds = {offer.instance_type for offer in everything(Need(gpu_type="A100", gpus=8))}
    assert kinds == {"p4d.24xlarge"}


def test_any_gpu_means_one_that_runs_cuda(whole: Catalog) -> None:
    found = rank(Need(gpus=1), whole, Cooldown(), target=BuyPolicy(), now=NOW)
    assert found[0].offer.instance_type == "g4dn.xlarge"
    assert not any("neuron" in one.offer.features for one in found)


def test_a_memory_size_names_every_gpu_of_it() -> None:
    kinds = {offer.family for offer in everything(Need(gpu_type="80GB+", gpus=8))}
    assert kinds == {"p4de", "p5"}


def test_only_95_percent_of_memory_can_be_asked_for() -> None:
    whole_mib = 16 * 1024
    fits = {o.instance_type for o in everything(Need(mem_mib=whole_mib * 95 // 100))}
    assert "m7i.xlarge" in fits
    assert "m7i.xlarge" not in {o.instance_type for o in everything(Need(mem_mib=whole_mib))}
    full = everything(Need(mem_mib=whole_mib), BuyPolicy(memory_share_percent=100))
    assert "m7i.xlarge" in {o.instance_type for o in full}


def test_more_gpus_than_asked_are_noted() -> None:
    best = rank(Need(gpu_type="A100", gpus=1), SMALL, Cooldown(), target=BuyPolicy(), now=NOW)[0]
    assert "has 8 A100, 1 asked for" in best.notes


def test_a_zone_named_in_the_constraint_narrows_an_on_demand_offer() -> None:
    best = rank(Need(constraint="use1-az4"), SMALL, Cooldown(), target=BuyPolicy(), now=NOW)[0]
    assert best.offer.zones == ("use1-az4",)
    assert "use1-az6" not in best.offer.features


def test_ordered_alternatives_come_before_price() -> None:
    liked = (Alternative(gpu=("H100", 8)), Alternative(gpu=("A10G", 1)))
    found = everything(Need(alternatives=liked, ordered=True))
    families = [offer.family for offer in found]
    assert families == sorted(families, key=lambda family: family != "p5")
    assert everything(Need(alternatives=liked))[0].family == "g5"


def test_a_short_run_is_charged_its_boot_and_at_least_a_minute() -> None:
    need, policy = Need(run_seconds=5, cpus=4), BuyPolicy(boot_seconds=10)
    best = rank(need, SMALL, Cooldown(), target=policy, now=NOW)[0]
    assert best.expected_micro_usd == -(-best.offer.micro_usd_per_hour * 60 // 3600)


def test_bare_metal_is_later_where_time_is_preferred() -> None:
    policy = BuyPolicy(prefer="time", families=("m7i",))
    metal = ["metal" in offer.features for offer in everything(Need(cpus=90), policy)]
    assert metal == sorted(metal)
    assert any(metal)


def test_every_rank_has_a_reason_and_a_dated_price() -> None:
    found = rank(Need(cpus=4), SMALL, Cooldown(), target=BuyPolicy(spot=True), now=NOW)
    assert found[0].reason == "least expected cost"
    assert all(
        "USD more than the first" in one.reason
        for one in found
        if one.expected_micro_usd > found[0].expected_micro_usd
    )
    assert all(one.offer.as_of and one.notes for one in found)


def test_estimated_spot_prices_are_marked() -> None:
    guesses = [offer for offer in everything(Need(constraint="spot&c6a")) if offer.estimate]
    assert guesses
    assert {offer.as_of for offer in guesses} == {"2025-06-28"}


def test_ranking_is_the_same_each_time() -> None:
    runs = [
        tuple(islice(ranking(Need(), SMALL, Cooldown(), target=BuyPolicy(spot=True), now=NOW), 99))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_a_constraint_in_error_is_refused_by_name() -> None:
    with pytest.raises(BadOption, match="Invalid feature specification"):
        rank(Need(constraint="g5&"), SMALL, Cooldown(), target=BuyPolicy(), now=NOW)


def test_plain_offers_are_ranked_and_given_back_as_they_came() -> None:
    cheap = Offer("fake", "r1", ("r1-a",), "small", Market.ON_DEMAND, 100, cpus=2, mem_mib=4096)
    dear = Offer("fake", "r1", ("r1-a",), "big", Market.ON_DEMAND, 300, cpus=8, mem_mib=4096)
    found = rank(Need(), [dear, cheap], Cooldown(), target=BuyPolicy(), now=NOW)
    assert [one.offer for one in found] == [cheap, dear]
    assert (
        rank(Need(cpus=4), [dear, cheap], Cooldown(), target=BuyPolicy(), now=NOW)[0].offer is dear
    )


def test_no_offers_give_no_ranks() -> None:
    assert rank(Need(), [], Cooldown(), target=BuyPolicy(), now=NOW) == ()


def of_block(free: int, *, until: int | None = None) -> Offer:
    offer = next(o for o in OFFERS if o.instance_type == "p5.48xlarge")
    return replace(offer, reservation="cr-1", free=free, until=until, micro_usd_per_hour=0)


@pytest.mark.parametrize(
    ("offer", "serves"),
    [
        (of_block(2), True),
        (of_block(1), False),
        (of_block(2, until=NOW + 3660), True),
        (of_block(2, until=NOW + 3659), False),
    ],
)
def test_what_is_reserved_is_a_rung_while_it_has_room_and_lasts(offer: Offer, serves: bool) -> None:
    need = Need(gpu_type="H100", gpus=8, nodes=2)
    found = list(paid_for(need, [offer], Cooldown(), target=PLAIN, now=NOW))
    assert [one.reason for one in found] == ["paid for already: cr-1"] * serves


@pytest.mark.parametrize(
    ("closed", "constraint", "policy", "serves"),
    [
        ((), None, (), True),
        (("targeted",), None, (), False),
        (("targeted",), None, ("cr-1",), True),
        (("targeted",), None, ("cr-2",), False),
        (("capacity-block",), None, ("ALL",), True),
        (("capacity-block",), "capacity-block", (), True),
        (("targeted",), "capacity-block", (), False),
        (("targeted",), "reserved", (), True),
        (("targeted",), "p5&cr-1", (), True),
    ],
)
def test_a_closed_reservation_is_used_where_the_partition_or_the_job_names_it(
    closed: tuple[str, ...], constraint: str | None, policy: tuple[str, ...], serves: bool
) -> None:
    offer = of_block(2)
    offer = replace(offer, features=(*offer.features, "reserved", "cr-1", *closed))
    need = Need(gpu_type="H100", gpus=8, nodes=2, constraint=constraint)
    target = replace(PLAIN, reservations=policy)
    assert len(list(paid_for(need, [offer], Cooldown(), target=target, now=NOW))) == serves


@pytest.mark.parametrize(
    ("refusal", "serves"), [(Refusal.CAPACITY, True), (Refusal.QUOTA, False), (Refusal.AUTH, False)]
)
def test_a_lack_of_capacity_outside_says_nothing_about_what_is_reserved(
    refusal: Refusal, serves: bool
) -> None:
    offer, cool = of_block(2), Cooldown()
    cool.refused(offer, ProviderError(refusal, Width.TYPE_IN_REGION, "no"), now=NOW)
    need = Need(gpu_type="H100", gpus=8, nodes=2)
    assert len(list(paid_for(need, [offer], cool, target=PLAIN, now=NOW))) == serves


@pytest.mark.parametrize(
    ("nodes", "percent", "first", "reason"),
    [
        (1, 10, "plain", "least expected cost"),
        (Build(fabric=True), 10, "fabric", "least expected cost, where EFA may cost 10% more"),
        (2, 0, "plain", "least expected cost"),
        (2, 5, "plain", "least expected cost"),
        (2, 10, "fabric", "least expected cost, where EFA may cost 10% more"),
    ],
)
def test_several_nodes_and_who_asks_get_efa_where_it_costs_little_more(
    nodes: int | Build, percent: int, first: str, reason: str
) -> None:
    plain = Offer("ec2", "r1", ("r1-a",), "plain", Market.ON_DEMAND, 1_000_000, 96, mem_mib=4096)
    fabric = replace(plain, instance_type="fabric", micro_usd_per_hour=1_080_000, features=("efa",))
    dear = replace(plain, instance_type="dear", micro_usd_per_hour=1_090_000)
    found = rank(
        Need(cpus=64, build=nodes) if isinstance(nodes, Build) else Need(cpus=64, nodes=nodes),
        [dear, fabric, plain],
        Cooldown(),
        target=replace(PLAIN, efa_percent=percent),
        now=NOW,
    )
    assert (found[0].offer.instance_type, found[0].reason) == (first, reason)
    assert {one.offer.instance_type for one in found} == {"plain", "fabric", "dear"}
    by_type = {one.offer.instance_type: one.expected_micro_usd for one in found}
    assert by_type["plain"] < by_type["fabric"] < by_type["dear"]


def test_spot_that_is_taken_back_often_costs_more_than_its_price(whole: Catalog) -> None:
    """A day of work is lost now and then: of two lines at one price the steadier goes first."""
    short, long = (
        next(
            one.expected_micro_usd / seconds
            for one in ranking(
                Need(cpus=4, run_seconds=seconds), whole, Cooldown(), target=SPOT, now=NOW
            )
            if one.offer.band == ">20%"
        )
        for seconds in (3600, 1_000_000)
    )
    assert long > short


def test_data_is_brought_only_where_that_is_cheaper_than_working_beside_it() -> None:
    need = Need(cpus=4, data_gib=500, data_region="eu-west-1")
    assert everything(need)[0].region == "eu-west-1"
    assert everything(Need(cpus=4))[0].region != "eu-west-1"


def test_volumes_and_addresses_make_small_machines_dearer() -> None:
    policy = BuyPolicy(root_gib=30, public_address=True)
    plain, real = (
        next(ranking(Need(), SMALL, Cooldown(), target=target, now=NOW)).expected_micro_usd
        for target in (PLAIN, policy)
    )
    assert real - plain == pytest.approx((5000 + 30 * 80_000 / 730) * 3660 / 3600, abs=2)
