"""The bill as FOCUS 1.2: each row against the specification's rules, and what we put into them."""

# ruff: noqa: E501 - rows stay on one line

import csv
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Why
from gateway.query.focus import COLUMNS, rows

AT = 1_767_225_600  # 2026-01-01
DAY = 86_400
Row = dict[str, str]


def entry(kind: Kind = Kind.CHARGE, cost: int = 1_250_000, **more: object) -> Entry:
    return replace(
        Entry(
            key="k",
            at=AT + 60,
            since=AT,
            kind=kind,
            why=Why.RUN,
            job=JobId(7),
            attempt=1,
            account=AccountName("lab"),
            user=UserName('o"neil, x'),
            machine="ec2-1.3",
            partition="ec2",
            instance_type="m5.large",
            region="eu-west-1",
            market="spot",
            cost=MicroUsd(cost),
        ),
        **more,  # type: ignore[arg-type]
    )


def lines(*entries: Entry, ids: dict[str, str] | None = None) -> list[Row]:
    return list(csv.DictReader(rows(entries, "here", ids=ids or {})))


# ---------------------------------------------------------------- the specification's rules

NOT_NULL = (
    "BilledCost", "BillingAccountId", "BillingAccountType", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeFrequency", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost",
    "ProviderName", "PublisherName", "ServiceCategory", "ServiceName", "ServiceSubcategory",
)  # fmt: skip
MANDATORY = {
    *NOT_NULL, "BillingAccountName", "ChargeClass", "ChargeDescription", "PricingQuantity",
    "PricingUnit",
}  # fmt: skip
OF_USAGE = (
    "ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "ListUnitPrice", "PricingCategory",
    "PricingQuantity", "PricingUnit", "SkuId", "SkuPriceId",
)  # fmt: skip
"""Not null where ChargeCategory is Usage and it is no correction."""
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {
        "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases",
        "Developer Tools", "Identity", "Integration", "Internet of Things",
        "Management and Governance", "Media", "Migration", "Mobile", "Multicloud", "Networking",
        "Other", "Security", "Storage", "Web",
    },
    "BillingCurrency": {"USD"},
}  # fmt: skip
SUBCATEGORIES = {
    "Compute": {"Virtual Machines"},
    "Storage": {"Block Storage"},
    "Networking": {"Network Connectivity", "Other (Networking)"},
}
"""Those of the specification that are used here."""
DECIMAL = re.compile(r"-?\d+(\.\d+)?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NUMBERS = {name for name in COLUMNS if name.endswith(("Cost", "Price", "Quantity"))}
MOMENTS = {name for name in COLUMNS if name.endswith(("PeriodStart", "PeriodEnd"))}
TOGETHER = (
    ("ConsumedQuantity", "ConsumedUnit"),
    ("PricingQuantity", "PricingUnit"),
    ("RegionId", "RegionName"),
    ("ResourceId", "ResourceType"),
    ("SubAccountId", "SubAccountName"),
    ("SubAccountId", "SubAccountType"),
)
"""Both are null, or neither."""


def used(row: Row) -> bool:
    return row["ChargeCategory"] == "Usage" and row["ChargeClass"] != "Correction"


def costs(row: Row, price: str, cost: str) -> bool:
    """A price times the quantity is the cost, to a hundredth of a micro-dollar."""
    if not row[price] or not row["PricingQuantity"]:
        return True
    return abs(
        Decimal(row[price]) * Decimal(row["PricingQuantity"]) - Decimal(row[cost])
    ) < Decimal("1e-8")


RULES: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("no null", lambda row: all(row[name] for name in NOT_NULL)),
    ("allowed", lambda row: all(row[name] in known for name, known in ALLOWED.items())),
    ("usage", lambda row: not used(row) or all(row[name] for name in OF_USAGE)),
    (
        "use is told of usage alone",
        lambda row: row["ChargeCategory"] == "Usage" or not row["ConsumedQuantity"],
    ),
    ("use is positive", lambda row: not used(row) or Decimal(row["ConsumedQuantity"]) > 0),
    (
        "numbers",
        lambda row: all(DECIMAL.fullmatch(row[name]) for name in NUMBERS if row[name]),
    ),
    ("moments", lambda row: all(MOMENT.fullmatch(row[name]) for name in MOMENTS)),
    ("together", lambda row: all(bool(row[a]) == bool(row[b]) for a, b in TOGETHER)),
    (
        "the charge period has a length and lies in the billing period",
        lambda row: (
            row["BillingPeriodStart"]
            <= row["ChargePeriodStart"]
            < row["ChargePeriodEnd"]
            <= row["BillingPeriodEnd"]
        ),
    ),
    (
        "billing periods are months",
        lambda row: row["BillingPeriodStart"][7:] == row["BillingPeriodEnd"][7:] == "-01T00:00:00Z",
    ),
    ("list price", lambda row: costs(row, "ListUnitPrice", "ListCost")),
    ("contracted price", lambda row: costs(row, "ContractedUnitPrice", "ContractedCost")),
    ("prices are not negative", lambda row: not row["ListUnitPrice"].startswith("-")),
    (
        "subcategory",
        lambda row: row["ServiceSubcategory"] in SUBCATEGORIES[row["ServiceCategory"]],
    ),
    (
        "names are no second ids",
        lambda row: row["ResourceName"] != row["ResourceId"] or not row["ResourceId"],
    ),
    ("tags", lambda row: all(isinstance(v, str) for v in json.loads(row["Tags"]).values())),
    (
        "own columns have a prefix",
        lambda row: all(name[0].isupper() or name.startswith("x_") for name in row),
    ),
)


def broken(found: Iterable[Row]) -> list[tuple[str, Row]]:
    return [(name, row) for row in found for name, holds in RULES if not holds(row)]


PARTS = (None, "ec2-1.3", "ec2-1.3/volume", "ec2-1.3/address", "n1.0")
PLACES = (
    ("eu-west-1", "spot", "m5.large"),
    ("us-east-1", "on-demand", "p5.48xlarge"),
    ("", "", ""),
)
WHYS = {
    Kind.CHARGE: (Why.BOOT, Why.RUN, Why.IDLE, Why.MINIMUM, Why.DATA),
    Kind.CREDIT: (Why.INTERRUPTED, Why.OVERRUN),
    Kind.CORRECTION: (Why.LATE_PRICE, Why.RECONCILED),
}


@st.composite
def drawn(draw: st.DrawFn) -> Entry:
    kind = draw(st.sampled_from(list(WHYS)))
    why = draw(st.sampled_from(WHYS[kind]))
    since = draw(st.integers(AT - 40 * DAY, AT + 400 * DAY))
    since -= since % 3600 if why is Why.RECONCILED else 0
    length = draw(st.integers(0, 70 * DAY))
    cost = draw(st.integers(1, 10**12))
    sign = (
        -1
        if kind is Kind.CREDIT
        else draw(st.sampled_from([1, -1]))
        if kind is Kind.CORRECTION
        else 1
    )
    region, market, kind_of = draw(st.sampled_from(PLACES))
    return entry(
        kind, sign * cost, why=why, since=since, at=since + length,
        machine=None if why is Why.DATA else draw(st.sampled_from(PARTS[1:])),
        region=region, market=market, instance_type=kind_of,
        job=draw(st.sampled_from([None, JobId(7)])),
    )  # fmt: skip


@given(st.lists(drawn(), max_size=5))
def test_every_row_keeps_to_the_rules_and_their_sum_is_the_ledgers(entries: list[Entry]) -> None:
    found = lines(*entries, ids={"ec2-1.3": "i-0abc"})
    assert broken(found) == []
    told = sum(Decimal(row["BilledCost"]) for row in found)
    assert told * 1_000_000 == sum(one.cost for one in entries)
    for name, of in (("SkuMeter", "SkuId"), ("SkuId", "SkuPriceId")):
        assert len({(row[of], row[name]) for row in found}) == len({row[of] for row in found})


def test_the_columns_are_those_that_must_be_there_and_none_twice() -> None:
    assert set(COLUMNS) >= MANDATORY
    assert len(set(COLUMNS)) == len(COLUMNS)


# ---------------------------------------------------------------- what we put into them


def test_every_entry_that_moves_money_is_a_line() -> None:
    entries = (
        entry(),
        entry(Kind.USAGE, 0),
        entry(Kind.CREDIT, -1_000_000),
        entry(Kind.CORRECTION, 5),
    )
    found = lines(*entries)
    assert [line["BilledCost"] for line in found] == ["1.250000", "-1.000000", "0.000005"]
    assert [line["ChargeCategory"] for line in found] == ["Usage", "Credit", "Adjustment"]
    first = found[0]
    assert first["ChargePeriodStart"] == "2026-01-01T00:00:00Z"
    assert first["ChargePeriodEnd"] == "2026-01-01T00:01:00Z"
    assert first["BillingPeriodEnd"] == "2026-02-01T00:00:00Z"
    assert (first["ConsumedQuantity"], first["PricingCategory"]) == ("60", "Dynamic")
    assert Decimal(first["ListUnitPrice"]) == pytest.approx(Decimal(75))
    assert (first["SubAccountId"], first["ResourceId"]) == ("lab", "ec2-1.3")
    assert json.loads(first["Tags"])["user"] == 'o"neil, x'
    assert first["SkuPriceId"] == "m5.large:eu-west-1:spot"


@pytest.mark.parametrize(
    ("machine", "why", "shown"),
    [
        ("ec2-1.3", Why.RUN, "i-0abc|ec2-1.3|m5.large|Compute|Dynamic|m5.large:eu-west-1:spot"),
        ("ec2-1.3/volume", Why.RUN, "ec2-1.3/volume||volume|Storage|Standard|volume:eu-west-1"),
        ("ec2-1.3/address", Why.RUN, "ec2-1.3/address||address|Networking|Standard|address:eu-west-1"),
        (None, Why.DATA, "|||Networking|Standard|data:eu-west-1"),
    ],
)  # fmt: skip
def test_what_is_charged_for_has_its_id_service_and_price(
    machine: str | None, why: Why, shown: str
) -> None:
    more = {} if machine else {"instance_type": "", "market": ""}
    (row,) = lines(entry(machine=machine, why=why, **more), ids={"ec2-1.3": "i-0abc"})
    names = (
        "ResourceId",
        "ResourceName",
        "ResourceType",
        "ServiceCategory",
        "PricingCategory",
        "SkuPriceId",
    )
    assert "|".join(row[name] for name in names) == shown


def test_what_goes_on_over_midnight_of_a_month_is_cut_there() -> None:
    new_year = entry(cost=3_000_001, since=AT - 3600, at=AT + 7200)
    found = lines(new_year)
    assert [(row["BillingPeriodStart"][:7], row["BilledCost"]) for row in found] == [
        ("2025-12", "1.000000"),
        ("2026-01", "2.000001"),
    ]
    assert [row["PricingQuantity"] for row in found] == ["1", "2"]


@pytest.mark.parametrize(("posted", "klass"), [(AT + DAY, ""), (AT + 31 * DAY, "Correction")])
def test_a_correction_of_a_month_that_is_over_says_so(posted: int, klass: str) -> None:
    made = entry(Kind.CORRECTION, -5, why=Why.RECONCILED, since=AT + 7200, at=posted)
    (row,) = lines(made)
    assert (row["ChargeClass"], row["ChargePeriodEnd"]) == (klass, "2026-01-01T03:00:00Z")
    assert row["BillingPeriodStart"] == "2026-01-01T00:00:00Z"


def test_a_charge_without_time_is_one_unit() -> None:
    (row,) = lines(entry(why=Why.MINIMUM, since=AT + 30, at=AT + 30, cost=40))
    assert (row["PricingQuantity"], row["PricingUnit"], row["ListUnitPrice"]) == (
        "1",
        "Units",
        "0.000040",
    )
