"""What was used before counts less by and by, money is no use, and a reset begins anew."""

from dataclasses import replace
from datetime import datetime

import pytest

from accounting.assoc import Account, book
from accounting.change import Change, changed
from accounting.ids import AccountName, UserName
from accounting.ledger import Entry, Kind, Why
from accounting.order import Ranking
from accounting.reset import Period, last_turn, of_account, of_qos, of_user
from broker.decide import fading
from broker.model.events import BookChanged
from broker.model.site import Site
from broker.model.tally import Party
from broker.world import World
from tests.sim.memory_store import MemoryStore

DAY = 86_400
NOON = 1_700_006_400 - 1_700_006_400 % DAY + DAY // 2


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
    posted = [entry(1000, began), entry(5, began, Kind.CHARGE), entry(100, later)]
    world.charges = fading.noted(world, posted)
    (charge,) = world.charges.values()
    assert next(iter(world.charges)) == Party("a", "physics", "", "")
    assert charge.faded["billing"] == pytest.approx(left, rel=0.01)


RESETS = (
    # whose use is reset, what is left for the association, for the QOS
    (of_account("physics"), 0, 1000),
    (of_account("lab"), 0, 1000),
    (of_user("physics", "a"), 0, 1000),
    (of_user("physics", "b"), 1000, 1000),
    (of_account("chem"), 1000, 1000),
    (of_qos("normal"), 1000, 0),
)


@pytest.mark.parametrize(("key", "association", "grade"), RESETS)
def test_a_reset_has_use_count_anew_also_after_a_restart(
    key: str, association: int, grade: int
) -> None:
    lab, physics = AccountName("lab"), AccountName("physics")
    known = book([Account(name=lab), Account(name=physics, parent=lab)])
    used = replace(entry(1000, NOON - 8000), qos="normal")
    change = Change(resets=((key, NOON),))
    world = World(Site(book=known, ranking=Ranking(half_life=0)))
    world.charges = fading.noted(world, [used])
    world.begin()
    world.apply(BookChanged(at=NOON, actor=0, by="root", action="", change=change))
    reset = fading.noted(world, []) or world.charges
    store = MemoryStore()
    store.entries = {used.key: used}
    site = replace(world.site, book=changed(known, change))
    for found in (reset, fading.charges(site, store, NOON + 60, started_at=NOON + 60)):
        (charge,) = found.values()
        assert charge.faded.get("billing", 0) == pytest.approx(association)
        assert charge.graded.get("billing", 0) == pytest.approx(grade)


@pytest.mark.parametrize(
    ("period", "turn"),
    [
        (Period.NONE, "1970-01-01"),
        (Period.NOW, "2026-01-02"),
        (Period.DAILY, "2026-08-19"),
        (Period.WEEKLY, "2026-08-16"),
        (Period.MONTHLY, "2026-08-01"),
        (Period.QUARTERLY, "2026-07-01"),
        (Period.YEARLY, "2026-01-01"),
    ],
)
def test_everybodys_use_counts_anew_at_the_turn_of_the_period(period: Period, turn: str) -> None:
    def at(text: str) -> int:
        return int(datetime.fromisoformat(f"{text}+00:00").timestamp())

    now = at("2026-08-19T13:14:15")
    assert last_turn(period, now, started_at=at("2026-01-02T00:00")) == at(f"{turn}T00:00")


TURNS = (
    # seconds later, what is posted then, what counts after it
    (0, 0, 0),
    (400, 1000, 1000),
    (800, 0, 1000),
    (DAY, 0, 0),
    (DAY + 9, 500, 500),
    (DAY + 18, 0, 500),
)


def test_a_turn_while_the_service_runs_forgets_once_what_was_used() -> None:
    world = World(Site(ranking=Ranking(reset=Period.DAILY, half_life=0)))
    for later, seconds, left in TURNS:
        world.begin()
        for fact in fading.turned(world, NOON + later, started_at=NOON):
            world.apply(fact)
        posted = [entry(seconds, NOON + later)] if seconds else []
        world.charges = {**world.charges, **fading.noted(world, posted)}
        found = sum(charge.faded.get("billing", 0) for charge in world.charges.values())
        assert found == left
