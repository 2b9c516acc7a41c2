"""What was used before counts less by and by, and money is no use."""

from dataclasses import replace

import pytest

from accounting.ids import AccountName, UserName
from accounting.ledger import Entry, Kind, Why
from accounting.order import Ranking
from broker.decide import fading
from broker.model.site import Site
from broker.model.tally import Party
from broker.world import World


def entry(seconds: int, at: int, kind: Kind = Kind.USAGE) -> Entry:
    return Entry(
        key=f"{at}{kind}",
        at=at,
        since=at - 10,
        kind=kind,
        why=Why.USAGE,
        job=None,
        attempt=0,
        account=AccountName("physics"),
        user=UserName("a"),
        billing_seconds=seconds,
    )


@pytest.mark.parametrize(("half_life", "left"), [(10_000, 600), (0, 1100)])
def test_use_fades_by_half_in_a_half_life_and_money_is_no_use(half_life: int, left: int) -> None:
    world = World(replace(Site(), ranking=Ranking(half_life=half_life)))
    began = 1_700_000_000
    later = began + 10_000
    fading.note(world, [entry(1000, began), entry(5, began, Kind.CHARGE), entry(100, later)])
    (charge,) = world.charges.values()
    assert next(iter(world.charges)) == Party("a", "physics", "", "")
    assert charge.faded["billing"] == pytest.approx(left, rel=0.01)
