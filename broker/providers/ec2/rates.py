"""What is billed beside machines in a region, as the price list tells it now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.model import rates
from broker.providers.ec2.clients import Api
from broker.providers.ec2.pricelist import PRICES_SILENT, Product, micro_usd, products, usd

EC2, VPC, TRANSFER = "AmazonEC2", "AmazonVPC", "AWSDataTransfer"
HERE, SENDER = "regionCode", "fromRegionCode"
PER_GIB: Mapping[str, int] = {"GiBps-mo": 1024}
"""Units of which ours are parts."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Which products tell a rate."""

    service: str
    wanted: Mapping[str, str]
    ends: tuple[str, ...] = ()
    """Endings of the kind of use, where products of several kinds are found."""
    region: str = HERE
    to: str = ""
    """The attribute that tells where something is sent to."""


def _volume(kind: str, **more: str) -> Mapping[str, str]:
    return {"volumeApiName": kind, **more}


STORAGE, OPERATIONS = "Storage", "System Operation"
NAT = {"productFamily": "NAT Gateway"}
ASKS: Mapping[str, Ask] = {
    rates.GP3_GIB: Ask(EC2, _volume("gp3", productFamily=STORAGE)),
    rates.GP3_IOPS: Ask(EC2, _volume("gp3", productFamily=OPERATIONS)),
    rates.GP3_MBPS: Ask(EC2, _volume("gp3", productFamily="Provisioned Throughput")),
    rates.IO2_GIB: Ask(EC2, _volume("io2", productFamily=STORAGE)),
    rates.IO2_IOPS: Ask(EC2, _volume("io2", productFamily=OPERATIONS), ("VolumeP-IOPS.io2",)),
    rates.MAGNETIC_GIB: Ask(EC2, _volume("standard", productFamily=STORAGE)),
    rates.ADDRESS: Ask(VPC, {"group": "VPCPublicIPv4Address"}, ("PublicIPv4:InUseAddress",)),
    rates.NAT_HOUR: Ask(EC2, NAT, ("NatGateway-Hours",)),
    rates.NAT_GIB: Ask(EC2, NAT, ("NatGateway-Bytes",)),
    rates.BETWEEN_REGIONS: Ask(
        TRANSFER, {"transferType": "InterRegion Outbound"}, region=SENDER, to="toRegionCode"
    ),
    rates.BETWEEN_ZONES: Ask(TRANSFER, {"transferType": "IntraRegion"}, region=SENDER),
    rates.INTERNET: Ask(TRANSFER, {"transferType": "AWS Outbound"}, region=SENDER),
}


def read_rates(api: Api, region: str) -> dict[tuple[str, str], int]:
    """Micro-dollars by item and where to; without what the price list does not tell."""
    found: dict[tuple[str, str], int] = {}
    for item, ask in ASKS.items():
        try:
            found |= dict(_told(api, region, item, ask=ask))
        except PRICES_SILENT:
            continue
    return found


def _told(api: Api, region: str, item: str, *, ask: Ask) -> Iterator[tuple[tuple[str, str], int]]:
    """Of several tiers the first that costs something: those behind it are for very much."""
    for product in products(api, ask.service, {**ask.wanted, ask.region: region}):
        told = product["product"]["attributes"]
        if ask.ends and not str(told.get("usagetype", "")).endswith(ask.ends):
            continue
        to = str(told.get(ask.to, "")) if ask.to else ""
        price = _price(product)
        if price and (to or not ask.to):
            yield (item, to), price


def _price(product: Product) -> int:
    prices = (micro_usd(text) // PER_GIB.get(unit, 1) for text, unit in usd(product))
    return next(filter(None, prices), 0)
