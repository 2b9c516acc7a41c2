"""Old prices are said to be old wherever they show."""

from dataclasses import replace
from typing import Any

import pytest

from broker.model.node import Node, NodeState
from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Partition, Site
from gateway.query.dollars import beside, oldest
from gateway.query.fields import COLUMNS
from gateway.query.prices import old_price
from gateway.query.rows import read_fields
from tests.contract.records import node
from tests.unit.broker.made import machine
from tests.unit.gateway.query.records import NOON, context, running

ELASTIC = Elastic("ec2-", max_nodes=9, buy=BuyPolicy(old_days=100))
PATIENT = Site(partitions=(Partition("ec2", elastic=ELASTIC),))
YOUNG, OLD, OLDER = "2026-11-20", "2026-10-01", "2025-04-04"
TOLD = "price of 2026-10-01, 60 days old: `spz catalog refresh`"
RATES = "rates of volumes and addresses of 2025, 698 days old: `spz catalog refresh`"
OLDEST = "price of 2025-04-04, 605 days old: `spz catalog refresh`"


def bought(day: str, **changes: Any) -> Node:
    return replace(node("ec2-1", machine=machine(price_of=day)), **changes)


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ((), None),
        (("",), None),
        ((YOUNG,), None),
        ((YOUNG, OLD), TOLD),
        ((OLD, OLDER, ""), OLDEST),
    ],
)
def test_the_oldest_price_of_a_jobs_machines_speaks_for_all(
    days: tuple[str, ...], told: str | None
) -> None:
    assert old_price(map(bought, days), Site(), NOON) == told


def test_what_is_old_is_the_partitions_to_say() -> None:
    assert old_price([bought(OLD)], PATIENT, NOON) is None
    assert old_price([bought(OLDER)], PATIENT, NOON) == OLDEST


def test_a_stopped_machine_is_not_billed_by_its_old_price() -> None:
    assert old_price([bought(OLD, state=NodeState.STOPPED)], Site(), NOON) is None
    assert old_price([bought(OLD, machine=None)], Site(), NOON) is None


@pytest.mark.parametrize(
    ("buy", "day", "state", "told"),
    [
        (BuyPolicy(root_gib=30), YOUNG, NodeState.UP, RATES),
        (BuyPolicy(public_address=True), YOUNG, NodeState.UP, RATES),
        (BuyPolicy(root_gib=30), OLD, NodeState.UP, TOLD),
        (BuyPolicy(root_gib=30), OLD, NodeState.STOPPED, RATES),
        (BuyPolicy(public_address=True), OLD, NodeState.STOPPED, None),
        (BuyPolicy(root_gib=30, old_days=1000), OLD, NodeState.UP, None),
    ],
)
def test_old_rates_of_what_is_beside_a_machine_are_told_where_its_price_is_not_old(
    buy: BuyPolicy, day: str, state: NodeState, *, told: str | None
) -> None:
    site = Site(partitions=(Partition("ec2", elastic=Elastic("ec2-", max_nodes=9, buy=buy)),))
    assert old_price([bought(day, state=state)], site, NOON) == told


def test_texts_name_the_oldest_in_brackets() -> None:
    assert oldest([None, "", TOLD, OLDEST]) == OLDEST
    assert (beside(TOLD), beside(None)) == (f" ({TOLD})", "")


def test_squeue_tells_the_age_of_what_a_job_costs_an_hour() -> None:
    column = next(column for column in COLUMNS if column.long == "CostRateAge").squeue()
    held = bought(OLDER)
    assert column(running(), context(nodes={held.name: held})) == OLDEST
    assert column(running(), context()) == "N/A"


def test_sacct_tells_the_age_of_what_a_job_costs_an_hour() -> None:
    (field,) = read_fields("CostRateAge%70")
    held = bought(OLDER)
    assert field.job(running(), context(nodes={held.name: held})) == OLDEST
    assert field.job(running(), context()) == ""
