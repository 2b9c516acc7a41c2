"""The bill as FOCUS, and counters in Prometheus' form."""

import csv
import json
from dataclasses import replace

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Why
from gateway.query.exposition import metric
from gateway.query.focus import COLUMNS, rows

AT = 1_767_225_600  # 2026-01-01


def entry(kind: Kind = Kind.CHARGE, cost: int = 1_250_000, **more: object) -> Entry:
    return Entry(
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
        **more,  # type: ignore[arg-type]
    )


def test_every_entry_that_moves_money_is_a_line_of_focus() -> None:
    entries = [
        entry(),
        entry(Kind.USAGE, 0),
        entry(Kind.CREDIT, -1_000_000),
        entry(Kind.CORRECTION, 5),
    ]
    lines = list(csv.DictReader(rows(entries, "here", ids={})))
    assert [line["BilledCost"] for line in lines] == ["1.250000", "-1.000000", "0.000005"]
    assert [line["ChargeCategory"] for line in lines] == ["Usage", "Credit", "Adjustment"]
    first = lines[0]
    assert first.keys() == set(COLUMNS)
    assert first["ChargePeriodStart"] == "2026-01-01T00:00:00Z"
    assert first["BillingPeriodEnd"] == "2026-02-01T00:00:00Z"
    assert (first["ConsumedQuantity"], first["PricingCategory"]) == ("60", "Dynamic")
    assert (first["SubAccountId"], first["ResourceId"]) == ("lab", "ec2-1.3")
    assert json.loads(first["Tags"])["user"] == 'o"neil, x'


def test_machines_bear_the_ids_of_the_providers_bill_and_their_parts_a_kind_of_their_own() -> None:
    whole, volume = entry(), replace(entry(), machine="ec2-1.3/volume")
    lines = list(csv.DictReader(rows([whole, volume], "here", ids={"ec2-1.3": "i-0abc"})))
    shown = [
        (line["ResourceId"], line["ResourceName"], line["ResourceType"], line["PricingCategory"])
        for line in lines
    ]
    assert shown == [
        ("i-0abc", "ec2-1.3", "m5.large", "Dynamic"),
        ("ec2-1.3/volume", "ec2-1.3/volume", "volume", "Standard"),
    ]
    assert (lines[0]["x_SlurmJobId"], lines[0]["PricingQuantity"]) == ("7", "0.016667")


def test_a_metric_has_its_help_its_type_and_escaped_labels() -> None:
    text = metric("m", "gauge", about="What.", values=[({"a": 'x"\n\\'}, 1.5), ({}, 2)])
    assert text == '# HELP m What.\n# TYPE m gauge\nm{a="x\\"\\n\\\\"} 1.5\nm 2\n'
