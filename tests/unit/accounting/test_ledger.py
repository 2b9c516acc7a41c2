"""Money adds up: what is posted for a machine is what its provider bills."""

from collections import defaultdict
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.ids import OVERHEAD, AccountName, JobId, UserName
from accounting.ledger import (
    NOBODY,
    Entry,
    Holder,
    Kind,
    Meter,
    Payer,
    Why,
    close,
    settle,
    usage,
)
from accounting.rates import ON_DEMAND, OWNED, SPOT, Price, Terms, bill
from accounting.tres import Tres, gres_counts

WHOLE = Tres(cpu=8, mem_mib=32000, gres=gres_counts({"gpu:a10g": 2}))
START = 1_700_000_000


def payer(job: int, attempt: int = 1) -> Payer:
    return Payer(AccountName("physics"), UserName("alice"), JobId(job), attempt)


def holder(job: int, cpus: int = 1, gpus: int = 0) -> Holder:
    gres = gres_counts({"gpu:a10g": gpus})
    return Holder(payer(job), Tres(cpu=cpus, mem_mib=1000, node=1, gres=gres))


def meter(terms: Terms = ON_DEMAND, *, booted: int | None = 0, price: int = 3_600_000) -> Meter:
    """A machine that costs 1000 micro-dollars a second; `booted` counts from its start."""
    return Meter(
        node="ec2-17",
        launch=3,
        whole=WHOLE,
        terms=terms,
        prices=(Price(START, price),),
        running_at=START,
        booted_at=None if booted is None else START + booted,
        cause=payer(1),
    )


def summary(entries: tuple[Entry, ...]) -> list[tuple[str, str, str, int]]:
    return [(entry.account, entry.key, entry.kind.value, entry.cost) for entry in entries]


def test_a_run_is_charged_to_its_only_holder():
    after, entries = settle(meter(), [holder(4711)], START + 100)
    assert summary(entries) == [
        ("physics", f"4711/1/run/ec2-17.3/{START}", "charge", 100_000),
    ]
    assert (entries[0].since, entries[0].at, entries[0].machine) == (START, START + 100, "ec2-17.3")
    assert (after.posted_until, after.posted) == (START + 100, 100_000)


def test_boot_is_charged_to_the_attempt_that_caused_the_launch():
    after, entries = settle(meter(booted=40), [holder(2), holder(3)], START + 100)
    assert [(entry.job, entry.why, entry.cost) for entry in entries] == [
        (1, Why.BOOT, 40_000),
        (2, Why.RUN, 30_000),
        (3, Why.RUN, 30_000),
    ]
    assert after.posted == 100_000


def test_a_machine_that_never_boots_is_charged_to_its_cause_with_the_minimum():
    _, entries = close(meter(booted=None), [holder(1)], START + 25)
    assert [(entry.job, entry.why, entry.cost) for entry in entries] == [
        (1, Why.BOOT, 25_000),
        (1, Why.MINIMUM, 35_000),
    ]


def test_idle_time_goes_to_overhead():
    _, entries = settle(meter(), [], START + 10)
    assert summary(entries) == [
        ("overhead", f"overhead/idle/ec2-17.3/{START}", "charge", 10_000),
    ]
    assert entries[0].job is None


def test_holders_share_by_dominant_resource():
    _, entries = settle(meter(), [holder(2, cpus=2), holder(3, cpus=1, gpus=1)], START + 30)
    assert {entry.job: entry.cost for entry in entries} == {2: 10_000, 3: 20_000}


def test_the_order_of_holders_does_not_matter():
    holders = [holder(job, cpus=job) for job in (1, 2, 3)]
    assert settle(meter(), holders, START + 1) == settle(meter(), holders[::-1], START + 1)


def test_two_parts_of_one_attempt_are_one_entry():
    _, entries = settle(meter(), [holder(2), holder(2), holder(3, cpus=2)], START + 10)
    assert {entry.job: entry.cost for entry in entries} == {2: 5_000, 3: 5_000}
    assert len({entry.key for entry in entries}) == len(entries)


@pytest.mark.parametrize("later", [0, -5])
def test_nothing_is_posted_while_no_time_passes(later):
    after, _ = settle(meter(), [holder(2)], START + 10)
    assert settle(after, [holder(2)], START + 10 + later) == (after, ())


def test_an_early_spot_interruption_gives_everybody_their_money_back():
    machine, first = settle(meter(SPOT, booted=10), [holder(2)], START + 100)
    after, last = close(machine, [holder(3)], START + 500, interrupted_by_provider=True)
    paid: dict[Payer | int | None, int] = defaultdict(int)
    for entry in first + last:
        paid[entry.job] += entry.cost
    assert set(paid) == {1, 2, 3}
    assert set(paid.values()) == {0}
    assert {entry.kind for entry in last if entry.why is Why.INTERRUPTED} == {Kind.CREDIT}
    assert after.posted == 0


def test_a_spot_machine_that_we_end_is_charged_in_full():
    _, entries = close(meter(SPOT), [holder(2)], START + 500)
    assert sum(entry.cost for entry in entries) == 500_000


def test_an_interruption_after_the_first_hour_is_charged_and_nobody_is_remembered():
    machine, _ = settle(meter(SPOT), [holder(2)], START + 3600)
    assert machine.refundable == ()
    after, entries = close(machine, [holder(2)], START + 3700, interrupted_by_provider=True)
    assert [(entry.why, entry.cost) for entry in entries] == [(Why.RUN, 100_000)]
    assert after.posted == 3_700_000


def test_an_end_that_is_learned_late_gives_back_what_was_charged_beyond_it():
    machine, _ = settle(meter(), [holder(2), holder(3)], START + 400)
    after, entries = close(machine, [holder(2), holder(3)], START + 300)
    assert [(entry.job, entry.why, entry.kind, entry.cost) for entry in entries] == [
        (2, Why.OVERRUN, Kind.CREDIT, -50_000),
        (3, Why.OVERRUN, Kind.CREDIT, -50_000),
    ]
    assert after.posted == 300_000


def test_a_free_end_that_is_learned_after_the_free_time_still_makes_the_sum_zero():
    machine, first = settle(meter(SPOT), [holder(2)], START + 3650)
    after, last = close(machine, [holder(2)], START + 3500, interrupted_by_provider=True)
    assert sum(entry.cost for entry in first + last) == 0
    assert after.posted == 0


def repriced(machine, price):
    """In order of time; a later word about the same instant wins."""
    kept = {old.since: old for old in machine.prices} | {price.since: price}
    return replace(machine, prices=tuple(sorted(kept.values())))


@pytest.mark.parametrize(
    ("price", "corrected"),
    [
        (7_200_000, [("physics", 50_000)]),
        (0, [("physics", -50_000)]),
        (36_000_000, [("physics", 100_000), (OVERHEAD, 350_000)]),
    ],
)
def test_a_price_that_is_learned_late_is_paid_by_those_who_paid_last(price, corrected):
    machine, _ = settle(meter(), [holder(2)], START + 100)
    machine = repriced(machine, Price(START + 50, price))
    after, entries = settle(machine, [holder(2)], START + 110)
    late = [entry for entry in entries if entry.why is Why.LATE_PRICE]
    assert [(entry.account, entry.cost) for entry in late] == corrected
    assert {entry.kind for entry in late} == {Kind.CORRECTION}
    assert after.posted == sum(entry.cost for entry in entries) + 100_000
    assert after.posted == machine.cost_until(START + 110)


def test_a_closed_meter_posts_nothing_more():
    after, _ = close(meter(SPOT), [holder(2)], START + 10, interrupted_by_provider=True)
    assert close(after, [holder(2)], START + 20) == (after, ())
    assert settle(after, [holder(2)], START + 99) == (after, ())


def test_a_free_machine_leaves_no_entries():
    _, entries = close(meter(OWNED, price=0), [holder(2)], START + 10_000)
    assert entries == ()


def test_use_is_counted_in_tres_seconds():
    tres = Tres(cpu=2, mem_mib=1000, node=1, gres=gres_counts({"gpu:a10g": 1}))
    (entry,) = usage(payer(4711, 2), tres, billing=6, started=START, ended=START + 10)
    assert entry.key == f"4711/2/usage/{START}"
    assert entry.kind is Kind.USAGE
    assert (entry.job, entry.attempt, entry.account, entry.user) == (4711, 2, "physics", "alice")
    assert (entry.tres_seconds, entry.billing_seconds) == (tres.times(10), 60)
    assert entry.cost == 0


def test_no_time_is_no_use():
    assert usage(payer(1), Tres(cpu=1), billing=1, started=START, ended=START) == ()


@dataclass(frozen=True)
class Timeline:
    """A machine's life: who held it for how long, its prices, where else it is settled."""

    meter: Meter
    spans: tuple[tuple[int, tuple[Holder, ...]], ...]
    interrupted: bool
    extra: frozenset[int]

    @property
    def ended_at(self) -> int:
        return START + sum(seconds for seconds, _ in self.spans)

    def bill(self) -> int:
        return bill(
            self.meter.prices,
            self.meter.terms,
            start=START,
            end=self.ended_at,
            interrupted=self.interrupted,
        )

    def play(self, extra: frozenset[int] = frozenset()) -> tuple[Meter, list[Entry]]:
        """Settles at each change of holders and at `extra` instants, and closes at the end."""
        machine, entries, now = self.meter, [], START
        holders: tuple[Holder, ...] = ()
        for seconds, holders in self.spans:
            stops = sorted(at for at in extra if now < at < now + seconds)
            for at in [*stops, now + seconds]:
                machine, more = settle(machine, holders, at)
                entries += more
            now += seconds
        machine, more = close(machine, holders, now, interrupted_by_provider=self.interrupted)
        return machine, entries + list(more)


HOLDERS = st.lists(st.integers(1, 9), max_size=4, unique=True).map(
    lambda jobs: tuple(holder(job, cpus=job, gpus=job % 3) for job in jobs)
)
SPANS = st.lists(st.tuples(st.integers(0, 3000), HOLDERS), min_size=1, max_size=8).map(tuple)
PRICES = st.dictionaries(st.integers(-100, 9000), st.integers(0, 98_320_000), min_size=1).map(
    lambda prices: tuple(Price(START + since, price) for since, price in sorted(prices.items()))
)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    machine = meter(draw(st.sampled_from([ON_DEMAND, SPOT, OWNED])))
    booted = draw(st.none() | st.integers(0, 9000))
    machine = replace(
        machine,
        prices=draw(PRICES),
        booted_at=None if booted is None else START + booted,
        cause=draw(st.sampled_from([payer(1), payer(7), NOBODY])),
    )
    extra = draw(st.frozensets(st.integers(START, START + 24_000), max_size=12))
    return Timeline(machine, draw(SPANS), draw(st.booleans()), extra)


@given(timelines())
def test_entries_add_up_to_the_bill_whoever_holds_the_machine(timeline):
    after, entries = timeline.play()
    assert sum(entry.cost for entry in entries) == timeline.bill() == after.posted


@given(timelines())
def test_further_settling_changes_nothing_in_the_total(timeline):
    _, entries = timeline.play(timeline.extra)
    assert sum(entry.cost for entry in entries) == timeline.bill()


@given(timelines())
def test_further_settling_moves_no_attempt_by_more_than_rounding(timeline):
    few, many = (by_payer(timeline.play(extra)[1]) for extra in (frozenset(), timeline.extra))
    settles = len(timeline.spans) + len(timeline.extra)
    labels = few.keys() | many.keys()
    assert all(abs(few[label] - many[label]) <= 2 * settles for label in labels)


@given(timelines())
def test_posting_twice_is_posting_once(timeline):
    _, entries = timeline.play(timeline.extra)
    again = timeline.play(timeline.extra)[1]
    book = {entry.key: entry for entry in entries}
    assert len(book) == len(entries)
    assert {entry.key: entry for entry in entries + again} == book


@given(timelines(), st.integers(START, START + 9000), st.integers(0, 98_320_000))
def test_a_price_learned_late_still_adds_up(timeline, since, price):
    machine, _ = settle(timeline.meter, [holder(1)], START + 500)
    machine = repriced(machine, Price(since, price))
    after, _ = close(machine, [holder(1)], START + 4000)
    assert after.posted == bill(machine.prices, machine.terms, start=START, end=START + 4000)


@given(timelines(), st.integers(0, 24_000))
def test_an_end_learned_late_still_adds_up(timeline, seconds):
    machine, entries = timeline.meter, []
    for at in sorted(timeline.extra):
        machine, more = settle(machine, [holder(3), holder(4)], at)
        entries += more
    ended_at = START + seconds
    _, more = close(machine, [holder(3)], ended_at, interrupted_by_provider=timeline.interrupted)
    billed = bill(
        machine.prices,
        machine.terms,
        start=START,
        end=ended_at,
        interrupted=timeline.interrupted,
    )
    assert sum(entry.cost for entry in (*entries, *more)) == billed
    keys = [entry.key for entry in (*entries, *more)]
    assert len(set(keys)) == len(keys)


def by_payer(entries: list[Entry]) -> dict[str, int]:
    paid: dict[str, int] = defaultdict(int)
    for entry in entries:
        paid[entry.key.partition("/ec2")[0].rpartition("/")[0]] += entry.cost
    return paid
