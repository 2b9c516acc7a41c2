"""Where a job goes on that lost machines."""

from dataclasses import replace

import pytest

from broker.model.offer import Market, Need, Offer, Ranked
from broker.optimize.elsewhere import by_region


def ranked(region: str, number: int, cooling: int | None = None) -> Ranked:
    offer = Offer(
        provider="local",
        region=region,
        zones=(),
        instance_type=f"m5.{number}",
        market=Market.SPOT,
        micro_usd_per_hour=number,
        cpus=1,
        mem_mib=1,
    )
    return Ranked(offer, number, "", cooling_until=cooling)


FOUND = (
    *(ranked("a", 1), ranked("b", 2), ranked("a", 3, cooling=9)),
    *(ranked("c", 4), ranked("a", 5), ranked("b", 6)),
)


@pytest.mark.parametrize(
    ("need", "order"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"last_regions": ("a",)}, [2, 4, 6, 1, 3, 5]),
        ({"last_regions": ("a", "b")}, [4, 1, 3, 5, 2, 6]),
        ({"last_regions": ("b", "a")}, [4, 2, 6, 1, 3, 5]),
        ({"first_region": "b"}, [2, 6, 1, 3, 4, 5]),
        ({"first_region": "a"}, [1, 5, 2, 3, 4, 6]),
        ({"first_region": "z"}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_regions_go_where_the_need_has_them(need: dict[str, object], order: list[int]) -> None:
    asked = replace(Need(), **need)  # type: ignore[arg-type]
    assert [one.offer.micro_usd_per_hour for one in by_region(asked, FOUND)] == order
