"""The bill in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification), as CSV."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from accounting.age import in_utc
from accounting.ledger import Entry, Kind
from accounting.rates import dollars

COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd",
    "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "EffectiveCost",
    "ListCost", "PricingCategory", "ProviderName", "PublisherName", "InvoiceIssuerName",
    "RegionId", "ResourceId", "ResourceType", "ServiceCategory", "ServiceName", "SubAccountId",
    "SubAccountName", "SkuId", "Tags", "BillingAccountName", "BillingAccountType",
    "PricingQuantity", "PricingUnit", "ResourceName", "ServiceSubcategory", "SubAccountType",
    "x_SlurmAccount", "x_SlurmJobId", "x_SlurmPartition", "x_SlurmQOS", "x_SlurmUser",
)  # fmt: skip
CATEGORY = {Kind.CHARGE: "Usage", Kind.CREDIT: "Credit", Kind.CORRECTION: "Adjustment"}
PRICING = {"spot": "Dynamic", "on-demand": "Standard", "on_demand": "Standard"}


def rows(entries: Iterable[Entry], cluster: str, *, ids: Mapping[str, str]) -> Iterator[str]:
    """Lines of CSV with the header first: one for each entry that moves money.

    `ids` are the provider's ids of machines by our names, as its own bill has them.
    """
    yield _line(COLUMNS)
    for entry in entries:
        if entry.cost and entry.kind in CATEGORY:
            found = _values(entry, cluster) | _whose(entry)
            found["ResourceId"] = ids.get(found["ResourceId"], found["ResourceId"])
            yield _line([found[name] for name in COLUMNS])


def _line(values: Iterable[str]) -> str:
    return ",".join(map(_quoted, values)) + "\n"


def _quoted(text: str) -> str:
    """As RFC 4180 has it."""
    if not any(letter in text for letter in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _values(entry: Entry, cluster: str) -> dict[str, str]:
    cost, part = dollars(entry.cost), (entry.machine or "").partition("/")[2]
    begin, end = _month(entry.since)
    seconds = max(0, entry.at - entry.since) if entry.kind is Kind.CHARGE else 0
    tags = {
        "job": str(entry.job or ""), "attempt": str(entry.attempt or ""), "user": entry.user,
        "qos": entry.qos, "partition": entry.partition, "why": entry.why.value,
    }  # fmt: skip
    told = {key: value for key, value in tags.items() if value}
    return {
        "BilledCost": cost,
        "BillingAccountId": cluster,
        "BillingAccountName": cluster,
        "BillingAccountType": "Cluster",
        "BillingCurrency": "USD",
        "BillingPeriodEnd": end,
        "BillingPeriodStart": begin,
        "ChargeCategory": CATEGORY[entry.kind],
        "ChargeClass": "Correction" if entry.kind is Kind.CORRECTION else "",
        "ChargeDescription": f"{entry.why.value} of {entry.machine or cluster}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": in_utc(max(entry.at, entry.since)),
        "ChargePeriodStart": in_utc(entry.since),
        "ConsumedQuantity": str(seconds) if seconds else "",
        "ConsumedUnit": "Seconds" if seconds else "",
        "ContractedCost": cost,
        "EffectiveCost": cost,
        "ListCost": cost,
        "PricingQuantity": f"{seconds / 3600:.6f}" if seconds else "",
        "PricingUnit": "Hours" if seconds else "",
        "PricingCategory": _pricing(entry, part),
        "ProviderName": "AWS" if entry.region else cluster,
        "PublisherName": "AWS" if entry.region else cluster,
        "InvoiceIssuerName": "AWS" if entry.region else cluster,
        "RegionId": entry.region,
        "ResourceId": entry.machine or "",
        "ResourceName": entry.machine or "",
        "ResourceType": part or entry.instance_type,
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Virtual Machines",
        "ServiceName": "Amazon Elastic Compute Cloud" if entry.region else "Compute",
        "SubAccountId": entry.account,
        "SubAccountName": entry.account,
        "SkuId": "" if part else entry.instance_type,
        "Tags": json.dumps(told),
    }


def _whose(entry: Entry) -> dict[str, str]:
    return {
        "SubAccountType": "Account",
        "x_SlurmAccount": entry.account,
        "x_SlurmJobId": str(entry.job or ""),
        "x_SlurmPartition": entry.partition,
        "x_SlurmQOS": entry.qos,
        "x_SlurmUser": entry.user,
    }


def _pricing(entry: Entry, part: str) -> str:
    """Of a spot machine its volume and its address have a fixed price too."""
    if not entry.machine:
        return ""
    return PRICING["on-demand"] if part else PRICING.get(entry.market, PRICING["on-demand"])


def _month(instant: int) -> tuple[str, str]:
    """Begin and end of the month that holds the instant."""
    begin = datetime.fromtimestamp(instant, UTC).replace(day=1, hour=0, minute=0, second=0)
    after = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    return begin.strftime("%Y-%m-%dT00:00:00Z"), after.strftime("%Y-%m-%dT00:00:00Z")
