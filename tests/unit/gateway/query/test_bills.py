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
    [("a,b\n1,2\n", "neither FOCUS"), (FOCUS.replace("0.25", "much"), "line 2"), (FOCUS.replace("0.25", "NaN"), "line 2: NaN"), (FOCUS.replace("0.25", "-Infinity"), "line 2"), (FOCUS.replace("2026-01-01T01:00:00Z", "soon"), "line 4")],
)  # fmt: skip
def test_what_is_no_bill_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BillError, match=said):
        read_bill(text.splitlines(), MACHINES)
