"""AWS's price list, as it is asked and as it tells prices."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from broker.providers.ec2.clients import Api
from broker.providers.ec2.errors import AwsError, NoAnswerError

PRICE_LIST_REGION = "us-east-1"
"""It is served from few regions."""
PRICES_SILENT = (AwsError, NoAnswerError, KeyError, ValueError)
Product = Mapping[str, Any]


def products(api: Api, service: str, wanted: Mapping[str, str]) -> Iterator[Product]:
    """All that have these attributes. Raises AwsError, NoAnswerError, KeyError, ValueError."""
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": text} for key, text in wanted.items()]
    token: dict[str, str] = {}
    while True:
        ask = {"ServiceCode": service, "Filters": filters, **token}
        reply = api.call("pricing", PRICE_LIST_REGION, "get_products", **ask)
        yield from map(json.loads, reply["PriceList"])
        if not reply.get("NextToken"):
            return
        token = {"NextToken": reply["NextToken"]}


def usd(product: Product) -> Iterator[tuple[str, str]]:
    """Dollars and their unit, the first of several tiers first."""
    for term in product["terms"].get("OnDemand", {}).values():
        tiers = term["priceDimensions"].values()
        for tier in sorted(tiers, key=lambda one: Decimal(one.get("beginRange") or "0")):
            yield tier["pricePerUnit"].get("USD", "0"), str(tier.get("unit", ""))


def micro_usd(text: str) -> int:
    return round(Decimal(text) * 1_000_000)
