"""When nothing fits the user learns which condition did it, and what would have fitted."""

import pytest

from broker.model.offer import Alternative, BuyPolicy, Market, Need
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.optimize.explain import explain
from broker.optimize.rank import rank

PLAIN = BuyPolicy()
P5E = Alternative(instance_types=("p5e.48xlarge",))
CASES = [
    (Need(gpu_type="H100", gpus=16), PLAIN, "gpus", ["p5.48xlarge", "p5.4xlarge"]),
    (Need(gpus=17), PLAIN, "gpus", ["p2.16xlarge"]),
    (Need(cpus=1000), PLAIN, "cpus", None),
    (Need(cpus=3, cpus_exactly=3), PLAIN, "cpus", None),
    (Need(mem_mib=40 << 20), PLAIN, "memory", ["u7in-32tb.224xlarge", "u7in-24tb.224xlarge"]),
    (Need(gpu_type="T4g", gpus=1), PLAIN, "architecture", ["g5g.xlarge"]),
    (Need(constraint="g99"), PLAIN, "constraint", None),
    (Need(constraint="t4g&x86_64"), PLAIN, "constraint", None),
    (Need(alternatives=(P5E,)), PLAIN, "market", ["p5e.48xlarge"]),
    (Need(gpu_type="H100", gpus=8), BuyPolicy(regions=("eu-west-3",)), "region", ["p5.48xlarge"]),
    (Need(), BuyPolicy(max_micro_usd_per_hour=10), "price", ["c6a.large"]),
    (
        Need(),
        BuyPolicy(families=("t3",), instance_types=("nil",), regions=("mars",)),
        "region",
        None,
    ),
    (Need(alternatives=(Alternative(zones=("us-east-1a",)),)), PLAIN, "place", ["c6a.large"]),
]


@pytest.mark.parametrize("need, policy, emptied_by, nearest", CASES)
def test_the_condition_that_emptied_the_list_is_named(
    need: Need, policy: BuyPolicy, emptied_by: str, nearest: list[str] | None, whole: Catalog
) -> None:
    assert rank(need, whole, Cooldown(), target=policy, now=0) == ()
    why = explain(need, whole, policy)
    assert why is not None
    assert why.emptied_by == emptied_by
    if nearest is not None:
        assert [near.offer.instance_type for near in why.nearest][: len(nearest)] == nearest


def test_the_message_tells_the_thing_the_value_and_the_way_out(whole: Catalog) -> None:
    why = explain(Need(gpu_type="H100", gpus=16), whole, PLAIN)
    assert why is not None
    assert why.message == (
        "no instance type offers 16 H100 in one node; nearest: "
        "p5.48xlarge (192 cpus, 2097152 MiB, 8 h100) in us-east-1, on-demand, 55.04 USD an hour, "
        "fails gpus; "
        "p5.4xlarge (16 cpus, 262144 MiB, 1 h100) in us-east-1, on-demand, 6.88 USD an hour, "
        "fails gpus"
    )


def test_a_gpu_that_nobody_knows_brings_names_like_it(whole: Catalog) -> None:
    why = explain(Need(gpu_type="A10X", gpus=1), whole, PLAIN)
    assert why is not None
    assert why.message == "no instance type offers 1 A10X in one node; try one of: A10G, A100, V100"
    strange = explain(Need(gpu_type="qqqqqqqqqqqqqq", gpus=1), whole, PLAIN)
    assert strange is not None
    assert "H100" in strange.suggestions


def test_a_type_at_an_unknown_price_is_told_and_not_bought(whole: Catalog) -> None:
    why = explain(Need(alternatives=(P5E,)), whole, PLAIN)
    assert why is not None
    assert why.unpriced == ("p5e.48xlarge",)
    assert why.nearest[0].offer.market is Market.SPOT


def test_types_left_never_grow_from_condition_to_condition(whole: Catalog) -> None:
    why = explain(Need(gpu_type="T4g", gpus=1), whole, PLAIN)
    assert why is not None
    counts = [count for _, count in why.left]
    assert counts == sorted(counts, reverse=True)
    assert dict(why.left)["gpus"] == 6


def test_there_is_nothing_to_explain_where_an_alternative_fits(whole: Catalog) -> None:
    either = (Alternative(gpu=("H100", 16)), Alternative(gpu=("A10G", 1)))
    assert explain(Need(alternatives=either), whole, PLAIN) is None


def test_no_offers_at_all_are_explained_too() -> None:
    why = explain(Need(), [], PLAIN)
    assert why is not None
    assert why.message == "no instance type offers anything at a known price"
