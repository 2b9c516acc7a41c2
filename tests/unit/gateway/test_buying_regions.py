"""Where partitions may buy: the regions whose figures are refreshed."""

import pytest

from broker.optimize.catalog import Region
from gateway.account import buying_regions
from gateway.config.settings import Config
from gateway.sdk.verbs.refreshing import known_regions

KNOWN = (Region("us-east-1"), Region("eu-west-1"), Region("af-south-1", opt_in=True))
USUAL = ("eu-west-1", "us-east-1")


def partition(name: str, **elastic: object) -> dict[str, object]:
    return {"name": name, "elastic": {"name_prefix": f"{name}-", **elastic}}


@pytest.mark.parametrize(
    ("parts", "regions", "wanted"),
    [
        ([{}], (), USUAL),
        ([{}], ("sa-east-1",), ("sa-east-1",)),
        ([{"regions": ["eu-west-1"]}], ("sa-east-1",), ("eu-west-1",)),
        ([{"regions": ["eu-west-1"]}, {}], (), USUAL),
        ([{"regions": ["eu-west-1"]}, {}], ("sa-east-1",), ("eu-west-1", "sa-east-1")),
        (
            [{"regions": ["ap-east-1", "eu-west-1"]}, {"regions": ["us-west-2"]}],
            (),
            ("ap-east-1", "eu-west-1", "us-west-2"),
        ),
        (
            [{"provider": "ec2", "regions": ["eu-west-1"]}, {"regions": ["us-west-2"]}],
            (),
            ("eu-west-1", "us-west-2"),
        ),
        ([{"opt_in_regions": True}], (), ("af-south-1", "eu-west-1", "us-east-1")),
        ([{"opt_in_regions": True, "regions": ["us-east-1"]}], (), ("us-east-1",)),
    ],
)
def test_figures_are_refreshed_of_all_regions_of_all_partitions(
    parts: list[dict[str, object]], regions: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    config = Config.model_validate(
        {
            "partitions": [partition(f"p{n}", **part) for n, part in enumerate(parts)],
            "aws": {"regions": regions},
        }
    )
    assert buying_regions(config, KNOWN) == wanted


def test_a_site_that_buys_nothing_plans_with_the_usual_ones() -> None:
    config = Config.model_validate(
        {
            "nodes": [{"names": "n[1-2]", "cpus": 2}],
            "partitions": [{"name": "p", "nodes": "n[1-2]"}],
        }
    )
    assert buying_regions(config, KNOWN) == USUAL


@pytest.mark.parametrize(
    ("opt_in", "left"),
    [(False, ["us-east-1", "af-south-1", "me-south-1"]), (True, ["us-east-1", "me-south-1"])],
)
def test_regions_that_the_account_has_not_opted_into_are_not_asked(
    opt_in: bool, left: list[str]
) -> None:
    document = {"regions": [["us-east-1", 0, []], ["af-south-1", 1, []], ["me-south-1", 1, []]]}
    part = partition("p", opt_in_regions=opt_in)
    config = Config.model_validate({"partitions": [part]})
    found = known_regions(config, document, lambda: frozenset({"us-east-1", "me-south-1"}))
    assert [region.name for region in found] == left
