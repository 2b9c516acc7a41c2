"""What AWS itself says that machines have cost: Cost Explorer, by resource and hour.

It has the last fourteen days, a day late, where hourly data by resource is switched on; each
page of an answer costs a cent. On demand and spot alike are billed as EC2 compute.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from accounting.age import in_utc
from broker.providers.ec2.clients import Api

REGION = "us-east-1"
"""Where Cost Explorer answers for all regions."""
COMPUTE = "Amazon Elastic Compute Cloud - Compute"
METRIC = "UnblendedCost"
Billed = tuple[str, int, Decimal]
"""A resource's id (or a usage type), the begin of an hour, dollars."""


def billed(api: Api, since: int, until: int) -> Iterator[Billed]:
    """What each machine cost in each hour of [since, until). Raises AwsError, NoAnswerError."""
    of_compute = {"Dimensions": {"Key": "SERVICE", "Values": [COMPUTE]}}
    how = {"Filter": of_compute, **_by("RESOURCE_ID")}
    return _asked(api, "get_cost_and_usage_with_resources", span=(since, until), how=how)


def billed_usage(api: Api, since: int, until: int) -> Iterator[Billed]:
    """What each usage type of every service cost in each hour. Raises AwsError, NoAnswerError."""
    return _asked(api, "get_cost_and_usage", span=(since, until), how=_by("USAGE_TYPE"))


def _by(dimension: str) -> dict[str, Any]:
    return {"GroupBy": [{"Type": "DIMENSION", "Key": dimension}]}


def _asked(
    api: Api, method: str, *, span: tuple[int, int], how: dict[str, Any]
) -> Iterator[Billed]:
    period = dict(zip(("Start", "End"), map(in_utc, span), strict=True))
    token: str | None = None
    while True:
        more = {} if token is None else {"NextPageToken": token}
        reply = api.call(
            "ce",
            REGION,
            method,
            TimePeriod=period,
            Granularity="HOURLY",
            Metrics=[METRIC],
            **how,
            **more,
        )
        for hour in reply.get("ResultsByTime", ()):
            yield from _lines(hour)
        token = reply.get("NextPageToken") or None
        if token is None:
            return


def _lines(hour: dict[str, Any]) -> Iterator[Billed]:
    start = datetime.fromisoformat(hour["TimePeriod"]["Start"].replace("Z", "+00:00"))
    for group in hour.get("Groups", ()):
        amount = Decimal(group["Metrics"][METRIC]["Amount"])
        yield group["Keys"][0], int(start.timestamp()), amount
