"""Bills as FOCUS and as CUR 2.0."""

# ruff: noqa: E501 - rows stay on one line

import pytest

from gateway.query.bills import BillError, read_bill

MACHINES = {"i-1": "ec2-1.1", "i-2": "ec2-2.1"}
FOCUS = """ResourceId,ChargePeriodStart,BilledCost,Other
arn:aws:ec2:us-east-1:1:instance/i-1,2026-01-01T00:00:00Z,0.25,x
i-1,2026-01-01T00:30:00Z,0.000001,x
i-2,2026-01-01T01:00:00Z,1,x
vol-1,2026-01-01T01:00:00Z,9,x
"""
CUR = """line_item_usage_start_date,line_item_resource_id,line_item_unblended_cost
2026-01-01T00:00:00.000Z,i-2,0.5
"""
AT = 1_767_225_600


def test_a_bill_is_summed_up_by_machine_and_hour() -> None:
    assert read_bill(FOCUS.splitlines(), MACHINES) == {
        ("ec2-1.1", AT): 250_001,
        ("ec2-2.1", AT + 3600): 1_000_000,
    }
    assert read_bill(CUR.splitlines(), MACHINES) == {("ec2-2.1", AT): 500_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [("a,b\n1,2\n", "neither FOCUS"), (FOCUS.replace("0.25", "much"), "line 2"), (FOCUS.replace("0.25", ""), "line 2: '' is no amount"), (FOCUS.replace("0.25", "NaN"), "line 2: NaN"), (FOCUS.replace("0.25", "-Infinity"), "line 2"), (FOCUS.replace("0.25", "1e999999999"), "line 2: 1e9+ is no amount"), (FOCUS.replace("0.25", "-1e12"), "line 2: -1e12 is no amount"), (FOCUS.replace("0.25", "9" * 200_000), "line 2: field larger"), ("a" * 200_000, "line 1: field larger"), (FOCUS.replace("2026-01-01T01:00:00Z", "soon"), "line 4")],
)  # fmt: skip
def test_what_is_no_bill_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BillError, match=said):
        read_bill(text.splitlines(), MACHINES)


HEAD = "identity_line_item_id,line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,line_item_line_item_type,line_item_currency_code,line_item_unblended_cost\n"
HOUR = "2026-01-01T00:00:00Z,2026-01-01T01:00:00Z"
BILLS = (
    # lines of CUR, micro-dollars of the first hour
    ("a,i-1,{h},Usage,USD,0.5\n", 500_000),
    ("a,i-1,{h},Usage,USD,0.5\na,i-1,{h},Usage,USD,0.5\n", 500_000),
    ("a,i-1,{h},Usage,USD,0.5\nb,i-1,{h},Usage,USD,0.25\n", 750_000),
    (",i-1,{h},Usage,USD,0.5\n,i-1,{h},Usage,USD,0.5\n", 1_000_000),
    ("a,i-1,{h},Usage,USD,0.5\nb,i-1,{h},Tax,USD,0.1\nc,,{h},Tax,USD,9\n", 500_000),
    ("a,i-1,{h},Usage,USD,0.5\nb,i-1,{h},Refund,USD,-0.2\n", 300_000),
    ("a,i-1,{h},Usage,USD,0.5\nb,i-1,2026-01-01T00:00:00Z,2026-02-01T00:00:00Z,Credit,USD,-0.5\n", 0),
    ("a,i-1,{h},SavingsPlanCoveredUsage,USD,0.5\nb,i-1,{h},SavingsPlanNegation,USD,-0.5\n", 0),
    ("a,i-1,2026-01-01T00:10:00Z,2026-01-01T00:20:00Z,Usage,USD,0.1\nb,i-1,2026-01-01T00:20:00Z,2026-01-01T01:00:00Z,Usage,,0.4\n", 500_000),
    ("a,i-1,{h},Usage,USD,0.5\nb,i-9,{h},Usage,EUR,0.5\n", 500_000),
)  # fmt: skip


@pytest.mark.parametrize(("text", "micro_usd"), BILLS)
def test_late_rows_credits_refunds_and_taxes(text: str, micro_usd: int) -> None:
    found = read_bill((HEAD + text.format(h=HOUR)).splitlines(), MACHINES)
    assert found == {("ec2-1.1", AT): micro_usd}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"a,i-1,{HOUR},Usage,EUR,0.5", "line 2: it is in EUR, and the ledger in USD"),
        ("a,i-1,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,Usage,USD,0.5", "export the bill by hour"),
    ],
)  # fmt: skip
def test_what_would_be_read_wrongly_is_refused(line: str, said: str) -> None:
    with pytest.raises(BillError, match=said):
        read_bill((HEAD + line).splitlines(), MACHINES)
