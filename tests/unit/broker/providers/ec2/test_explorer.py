"""Cost Explorer's answers, in the shape that AWS documents, as lines of a bill."""

from decimal import Decimal
from typing import Any

from broker.providers.ec2.explorer import billed, billed_usage
from gateway.query.bills import by_machine, by_region

HOUR = 3600
T0 = 1_764_547_200  # 2025-12-01T00:00:00Z


def answer(start: str, *amounts: tuple[str, str], token: str = "") -> dict[str, Any]:
    groups = [
        {"Keys": [key], "Metrics": {"UnblendedCost": {"Amount": usd, "Unit": "USD"}}}
        for key, usd in amounts
    ]
    period = {"Start": start, "End": start.replace(":00Z", ":59Z")}
    hour = {"TimePeriod": period, "Total": {}, "Groups": groups, "Estimated": True}
    return {"ResultsByTime": [hour], "DimensionValueAttributes": [], "NextPageToken": token or None}


class Explorer:
    """Answers from a list, page by page; keeps what it was asked."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = list(pages)
        self.asked: list[dict[str, Any]] = []

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        assert (service, region) == ("ce", "us-east-1")
        self.asked.append({"operation": operation, **params})
        return self.pages.pop(0)


def test_each_resource_and_hour_of_each_page_is_a_line() -> None:
    api = Explorer(
        answer("2025-12-01T00:00:00Z", ("i-1", "0.0123456789"), ("NoResourceId", "3"), token="t"),
        answer("2025-12-01T01:00:00Z", ("i-1", "0.5")),
    )
    lines = list(billed(api, T0, T0 + 2 * HOUR))
    assert lines[0] == ("i-1", T0, Decimal("0.0123456789"))
    assert lines[2] == ("i-1", T0 + HOUR, Decimal("0.5"))
    assert [one.get("NextPageToken") for one in api.asked] == [None, "t"]
    assert {one["operation"] for one in api.asked} == {"get_cost_and_usage_with_resources"}
    assert api.asked[0]["TimePeriod"] == {
        "Start": "2025-12-01T00:00:00Z",
        "End": "2025-12-01T02:00:00Z",
    }
    assert by_machine(lines, {"i-1": "ec2-1.1"}) == {
        ("ec2-1.1", T0): 12_346,
        ("ec2-1.1", T0 + HOUR): 500_000,
    }


def test_of_usage_types_those_count_that_bring_data_to_a_region() -> None:
    used = (("USE1-EUW1-AWS-Out-Bytes", "0.02"), ("EUC1-EU-AWS-Out-Bytes", "0.01"))
    else_ = (("BoxUsage:m7i.large", "9"), ("USE1-EUW1-AWS-In-Bytes", "0"))
    api = Explorer(answer("2025-12-01T00:00:00Z", *used, *else_))
    assert by_region(billed_usage(api, T0, T0 + HOUR)) == {("eu-west-1", T0): 30_000}
    (asked,) = api.asked
    assert asked["operation"] == "get_cost_and_usage"
    assert asked["GroupBy"] == [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}]
