"""The bill and the ledger: what differs, what sets it right, and that doing it twice does nothing."""

# ruff: noqa: E501 - rows stay on one line

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Why
from accounting.reconcile import Difference, comparable, corrections, differences

HOUR = 3600


def entry(job: int, cost: int, since: int = 0, machine: str = "ec2-1.1") -> Entry:
    return Entry(
        key=f"{job}/{since}", at=since + 60, since=since, kind=Kind.CHARGE, why=Why.RUN, job=JobId(job), attempt=1,
        account=AccountName(f"a{job}"), user=UserName("u"), machine=machine, instance_type="m5.large",
        cost=MicroUsd(cost),
    )  # fmt: skip


LEDGER = [entry(1, 300, 10), entry(2, 100, 20), entry(3, 50, HOUR + 5)]
BILL = {("ec2-1.1", 0): 480, ("ec2-1.1", HOUR): 50, ("ec2-9.1", 0): 7}


def test_hours_of_machines_that_differ_are_named() -> None:
    assert differences(LEDGER, BILL) == [
        Difference("ec2-1.1", 0, 480, 400),
        Difference("ec2-9.1", 0, 7, 0),
    ]


def test_corrections_are_shared_by_what_each_paid_and_what_nobody_paid_is_overheads() -> None:
    made = corrections(LEDGER, BILL, now=9999)
    money = [(one.account, one.job, one.cost) for one in made if one.cost]
    assert money == [("a1", 1, 60), ("a2", 2, 20), ("overhead", None, 7)]
    assert {one.kind for one in made} == {Kind.CORRECTION}


@pytest.mark.parametrize("billed", [480, 400, 100, 0])
def test_after_it_the_ledger_is_the_bill_and_again_adds_nothing(billed: int) -> None:
    bill = BILL | {("ec2-1.1", 0): billed}
    after = [*LEDGER, *corrections(LEDGER, bill, now=9999)]
    assert differences(after, bill) == []
    assert corrections(after, bill, now=10_000) == []


@given(st.lists(st.integers(-200, 2000), min_size=1, max_size=6))
def test_bills_that_follow_each_other_are_each_posted_once_though_one_says_what_an_earlier_one_said(
    bills: list[int],
) -> None:
    """Late rows, credits, refunds: what an hour costs changes until the month is final."""
    book = {one.key: one for one in LEDGER}
    for now, billed in enumerate([480, *bills, 480]):
        bill = BILL | {("ec2-1.1", 0): billed}
        for _ in range(2):
            for one in corrections(list(book.values()), bill, now=now):
                assert one.key not in book
                book[one.key] = one
            assert differences(list(book.values()), bill) == []


def test_a_bill_that_is_posted_twice_at_once_is_posted_once() -> None:
    both = [corrections(LEDGER, BILL, now=now) for now in (1, 2)]
    assert [one.key for one in both[0]] == [one.key for one in both[1]]


def test_an_entry_of_several_hours_counts_in_each() -> None:
    long = replace(entry(1, 300, HOUR - 60), at=HOUR + 120)
    assert differences([long], {("ec2-1.1", 0): 100, ("ec2-1.1", HOUR): 200}) == []


@pytest.mark.parametrize(("hour", "billed"), [(0, 100), (HOUR, 200)])
def test_of_an_entry_that_reaches_beyond_the_bill_its_part_of_the_bills_time_counts(
    hour: int, billed: int
) -> None:
    long = replace(entry(1, 300, HOUR - 60), at=HOUR + 120)
    assert differences([long], {("ec2-1.1", hour): billed}) == []
    assert [one.cost for one in corrections([long], {("ec2-1.1", hour): billed}, now=9)] == [0]


PARTS = ("ec2-1.1", "ec2-1.1/volume", "ec2-1.1/address", "volume-data.7/volume")


@given(
    posted=st.dictionaries(
        st.tuples(st.sampled_from(PARTS), st.integers(0, 3)), st.integers(1, 900)
    ),
    billed=st.dictionaries(
        st.tuples(st.sampled_from(PARTS), st.integers(0, 3)), st.integers(0, 900)
    ),
)
def test_machines_volumes_and_addresses_are_each_set_right_hour_by_hour(
    posted: dict[tuple[str, int], int], billed: dict[tuple[str, int], int]
) -> None:
    book = [
        replace(entry(n, cost, hour * HOUR, machine=name), key=f"k{n}")
        for n, ((name, hour), cost) in enumerate(posted.items(), 1)
    ]
    bill = {(name, hour * HOUR): cost for (name, hour), cost in billed.items()}
    told = [(one.machine, one.hour // HOUR, one.missing) for one in differences(book, bill)]
    first, last = (min(h for _, h in billed), max(h for _, h in billed)) if billed else (0, -1)
    within = {key: cost for key, cost in posted.items() if first <= key[1] <= last}
    missing = {key: billed.get(key, 0) - within.get(key, 0) for key in {*billed, *within}}
    assert told == sorted((*key, amount) for key, amount in missing.items() if amount)
    made = corrections(book, bill, now=9999)
    assert all(one.machine in {name for name, _ in billed} for one in made)
    left = differences([*book, *made], bill)
    assert all((one.machine, one.hour) not in bill for one in left)
    assert corrections([*book, *made], bill, now=10_000) == []


@pytest.mark.parametrize(
    ("bill", "names"),
    [
        ({("ec2-1.1", 0): 1}, {"ec2-1.1"}),
        ({}, {"ec2-1.1"}),
        ({("ec2-1.1/volume", 0): 1}, {"ec2-1.1", "ec2-1.1/volume", "volume-data.7/volume"}),
        ({("ec2-9.1/address", 0): 1}, {"ec2-1.1", "ec2-1.1/address"}),
    ],
)
def test_a_bill_without_a_kind_of_thing_says_nothing_of_it(
    bill: dict[tuple[str, int], int], names: set[str]
) -> None:
    assert comparable(PARTS, bill) == names
