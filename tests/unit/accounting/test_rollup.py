"""Sums of entries: whose use, for how long jobs waited, how long nodes took no work."""

from dataclasses import replace

import pytest

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Entry, Payer, down, usage
from accounting.rollup import DAY, HOUR, SPANS, Cell, used
from accounting.tres import Tres

T0 = 1_700_000_000 - 1_700_000_000 % DAY
PAYER = Payer(
    AccountName("chem"),
    UserName("alice"),
    JobId(7),
    1,
    qos="normal",
    partition="ec2",
    wckey="proj",
    reservation="week",
)


def job(since: int, until: int, *, waited: int = 0) -> tuple[Entry, ...]:
    made = usage(PAYER, Tres(cpu=4, node=1), billing=4, started=T0 + since, ended=T0 + until)
    return tuple(replace(entry, waited=waited) for entry in made)


def cells(entries: tuple[Entry, ...], tres: str, *, span: int = HOUR) -> dict[int, int]:
    """By hours, or days, after T0."""
    found = used(entries)
    return {
        (cell.start - T0) // span: amount
        for cell, amount in found.items()
        if cell.tres == tres and cell.span == span
    }


def test_use_has_its_wckey_and_reservation() -> None:
    found = used(job(0, 60))
    assert found[Cell(HOUR, T0, "chem", "alice", "normal", "ec2", "proj", "week", 4, "cpu")] == 240


@pytest.mark.parametrize(
    ("since", "waited", "hours"),
    [
        (HOUR, 0, {}),
        (HOUR, HOUR, {0: 4 * HOUR}),
        (HOUR + 100, 200, {0: 400, 1: 400}),
        (600, HOUR, {-1: 4 * (HOUR - 600), 0: 4 * 600}),
    ],
)
def test_cpus_are_planned_for_while_a_job_waits(
    since: int, waited: int, hours: dict[int, int]
) -> None:
    entries = job(since, since + 50, waited=waited)
    assert cells(entries, "planned/cpu") == hours
    assert sum(cells(entries, "planned/cpu", span=DAY).values()) == 4 * waited
    whose = {cell[2:5] for cell in used(entries) if cell.tres == "planned/cpu"}
    assert whose <= {("", "", "")}


def test_time_down_is_nobodys_and_no_job() -> None:
    entries = down("n1.0", Tres(cpu=8, mem_mib=100), since=T0 + 1800, until=T0 + 2 * HOUR)
    assert cells(entries, "down/cpu") == {0: 8 * 1800, 1: 8 * HOUR}
    assert cells(entries, "down/mem") == {0: 100 * 1800, 1: 100 * HOUR}
    assert {cell.tres for cell in used(entries)} == {"down/cpu", "down/mem"}
    assert down("n1.0", Tres(cpu=8), since=T0, until=T0) == ()


def test_days_are_the_sums_of_their_hours() -> None:
    found = used(
        (*job(0, 3 * DAY + 17, waited=5000), *down("n.0", Tres(cpu=3), since=T0, until=T0 + 99999))
    )
    for name in {cell.tres for cell in found}:
        by_span = [
            sum(n for cell, n in found.items() if (cell.tres, cell.span) == (name, span))
            for span in SPANS
        ]
        assert by_span[0] == by_span[1], name
