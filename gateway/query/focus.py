"""The bill in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification), as CSV."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from accounting.age import in_utc
from accounting.ids import MicroUsd
from accounting.ledger import SPENT, Entry, Kind, Why
from accounting.rates import dollars
from accounting.rollup import HOUR
from broker.model.offer import Market

COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType",
    "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass",
    "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost",
    "InvoiceId", "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory",
    "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName",
    "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName",
    "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceId", "SubAccountId", "SubAccountName",
    "SubAccountType", "Tags", "x_SlurmAccount", "x_SlurmJobId", "x_SlurmPartition", "x_SlurmQOS",
    "x_SlurmUser",
)  # fmt: skip
CATEGORY = {Kind.CHARGE: "Usage", Kind.CREDIT: "Credit", Kind.CORRECTION: "Adjustment"}
DYNAMIC, STANDARD = "Dynamic", "Standard"
MONTHS = 12
WITHOUT_TIME = "Units"
"""Of what is charged once, for which no time is counted."""


@dataclass(frozen=True, slots=True)
class Service:
    """Whose a charge is at the provider: category, subcategory, AWS's name; what is metered."""

    category: str
    sub: str
    name: str
    meter: str
    """One for all charges of a SKU, whatever they are for."""


MACHINES = Service("Compute", "Virtual Machines", "Amazon Elastic Compute Cloud", "Compute Usage")
SERVICES = {
    "volume": Service(
        "Storage", "Block Storage", "Amazon Elastic Block Store", "Block Volume Usage"
    ),
    "address": Service(
        "Networking", "Other (Networking)", "Amazon Virtual Private Cloud", "Address Usage"
    ),
    Why.DATA: Service("Networking", "Network Connectivity", "AWS Data Transfer", "Data Transfer"),
}
"""By the part of a machine, or by what is paid for."""


def rows(entries: Iterable[Entry], cluster: str, *, ids: Mapping[str, str]) -> Iterator[str]:
    """Lines of CSV with the header first: one for each entry that moves money, and month.

    `ids` are the provider's ids of machines by our names, as its own bill has them.
    """
    yield _line(COLUMNS)
    for entry in entries:
        if entry.cost and entry.kind in CATEGORY:
            for piece in _by_month(entry):
                found = {**_money(piece), **_times(piece), **_what(piece, ids), **_whose(piece)}
                found |= _who(piece, cluster)
                yield _line([found[name] for name in COLUMNS])


def _line(values: Iterable[str]) -> str:
    return ",".join(map(_quoted, values)) + "\n"


def _quoted(text: str) -> str:
    """As RFC 4180 has it."""
    if not any(letter in text for letter in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _by_month(entry: Entry) -> Iterator[Entry]:
    """A charge lies in one billing period: what goes on over midnight is cut there by time."""
    since, end, done = entry.since, _until(entry), 0
    while (begins := min(_month(since)[1], end)) < end:
        upto = entry.cost * (begins - entry.since) // (end - entry.since)
        yield replace(entry, since=since, at=begins, cost=MicroUsd(upto - done))
        since, done = begins, upto
    yield replace(entry, since=since, cost=MicroUsd(entry.cost - done))


def _timed(entry: Entry) -> bool:
    return entry.kind is Kind.CHARGE and entry.why in SPENT and entry.at > entry.since


def _until(entry: Entry) -> int:
    """End of the time that is charged for; what has none counts as its first second."""
    if entry.why is Why.RECONCILED:
        return entry.since + HOUR
    return entry.at if _timed(entry) else entry.since + 1


def _money(entry: Entry) -> dict[str, str]:
    cost, used = dollars(entry.cost), entry.kind is Kind.CHARGE
    seconds = entry.at - entry.since if _timed(entry) else 0
    quantity = Decimal(seconds) / HOUR if seconds else Decimal(1)
    price = _plain(Decimal(cost) / quantity) if used else ""
    return {
        **dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), cost),
        **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), price),
        "BillingCurrency": "USD",
        "ConsumedQuantity": str(seconds or 1) if used else "",
        "ConsumedUnit": ("Seconds" if seconds else WITHOUT_TIME) if used else "",
        "PricingQuantity": _plain(quantity) if used else "",
        "PricingUnit": ("Hours" if seconds else WITHOUT_TIME) if used else "",
        "PricingCategory": _pricing(entry) if used else "",
    }


def _plain(number: Decimal) -> str:
    """Without an exponent."""
    return f"{number:f}"


def _pricing(entry: Entry) -> str:
    """Of a spot machine its volume and its address have a fixed price too."""
    whole = entry.machine and not _part(entry)
    return DYNAMIC if whole and entry.market == Market.SPOT else STANDARD


def _part(entry: Entry) -> str:
    return (entry.machine or "").partition("/")[2]


def _times(entry: Entry) -> dict[str, str]:
    begin, end = _month(entry.since)
    late = entry.kind is not Kind.CHARGE and entry.at >= end
    return {
        "BillingPeriodStart": in_utc(begin),
        "BillingPeriodEnd": in_utc(end),
        "ChargePeriodStart": in_utc(entry.since),
        "ChargePeriodEnd": in_utc(_until(entry)),
        "ChargeCategory": CATEGORY[entry.kind],
        "ChargeClass": "Correction" if late else "",
        "ChargeFrequency": "Usage-Based",
        "InvoiceId": "",
    }


def _what(entry: Entry, ids: Mapping[str, str]) -> dict[str, str]:
    part, name = _part(entry), entry.machine or ""
    service = SERVICES.get(part) or SERVICES.get(entry.why) or MACHINES
    sku = part or (entry.instance_type or "node" if name else entry.why.value)
    resource = ids.get(name, name)
    return {
        "ChargeDescription": f"{entry.why.value} of {name or entry.region or 'the cluster'}",
        "RegionId": entry.region,
        "RegionName": entry.region,
        "ResourceId": resource,
        "ResourceName": name if name != resource else "",
        "ResourceType": (part or entry.instance_type or "node") if name else "",
        "ServiceCategory": service.category,
        "ServiceSubcategory": service.sub,
        "ServiceName": service.name if entry.region else service.category,
        "SkuId": sku,
        "SkuMeter": service.meter,
        "SkuPriceId": ":".join(filter(None, (sku, entry.region, "" if part else entry.market))),
    }


def _who(entry: Entry, cluster: str) -> dict[str, str]:
    seller = "AWS" if entry.region else cluster
    return {
        "BillingAccountId": cluster,
        "BillingAccountName": cluster,
        "BillingAccountType": "Cluster",
        **dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), seller),
        "SubAccountId": entry.account,
        "SubAccountName": entry.account,
        "SubAccountType": "Account",
    }


def _whose(entry: Entry) -> dict[str, str]:
    tags = {
        "job": str(entry.job or ""), "attempt": str(entry.attempt or ""), "user": entry.user,
        "qos": entry.qos, "partition": entry.partition, "wckey": entry.wckey,
        "why": entry.why.value,
    }  # fmt: skip
    return {
        "Tags": json.dumps({key: value for key, value in tags.items() if value}),
        "x_SlurmAccount": entry.account,
        "x_SlurmJobId": str(entry.job or ""),
        "x_SlurmPartition": entry.partition,
        "x_SlurmQOS": entry.qos,
        "x_SlurmUser": entry.user,
    }


def _month(instant: int) -> tuple[int, int]:
    """Begin and end of the month that holds the instant."""
    begin = datetime.fromtimestamp(instant, UTC).replace(day=1, hour=0, minute=0, second=0)
    after = begin.replace(year=begin.year + begin.month // MONTHS, month=begin.month % MONTHS + 1)
    return int(begin.timestamp()), int(after.timestamp())
