"""What the box's price list tells of volumes, addresses and traffic, in the words of AWS's."""

from collections.abc import Iterator, Mapping
from typing import Any

Wanted = Mapping[str, str]
Row = tuple[Mapping[str, str], str, str]
"""Attributes, dollars, unit."""
GIB, IOPS = "GB-Mo", "IOPS-Mo"
ROWS: tuple[Row, ...] = (
    ({"productFamily": "Storage", "volumeApiName": "gp3"}, "0.0800000000", GIB),
    ({"productFamily": "System Operation", "volumeApiName": "gp3"}, "0.0050000000", IOPS),
    (
        {"productFamily": "Provisioned Throughput", "volumeApiName": "gp3"},
        "40.9600000000",
        "GiBps-mo",
    ),
    ({"productFamily": "Storage", "volumeApiName": "io2"}, "0.1250000000", GIB),
    (
        {
            "productFamily": "System Operation",
            "volumeApiName": "io2",
            "usagetype": "EBS:VolumeP-IOPS.io2",
        },
        "0.0650000000",
        IOPS,
    ),
    (
        {
            "productFamily": "System Operation",
            "volumeApiName": "io2",
            "usagetype": "EBS:VolumeP-IOPS.io2.tier2",
        },
        "0.0460000000",
        IOPS,
    ),
    ({"productFamily": "Storage", "volumeApiName": "standard"}, "0.0500000000", GIB),
    (
        {"group": "VPCPublicIPv4Address", "usagetype": "PublicIPv4:IdleAddress"},
        "0.0070000000",
        "Hrs",
    ),
    (
        {"group": "VPCPublicIPv4Address", "usagetype": "PublicIPv4:InUseAddress"},
        "0.0050000000",
        "Hrs",
    ),
    ({"productFamily": "NAT Gateway", "usagetype": "NatGateway-Hours"}, "0.0450000000", "Hrs"),
    ({"productFamily": "NAT Gateway", "usagetype": "NatGateway-Bytes"}, "0.0450000000", "GB"),
    ({"transferType": "IntraRegion"}, "0.0100000000", "GB"),
    ({"transferType": "AWS Outbound"}, "0.0900000000", "GB"),
    ({"transferType": "InterRegion Outbound", "toRegionCode": "us-east-2"}, "0.0100000000", "GB"),
    ({"transferType": "InterRegion Outbound", "toRegionCode": "eu-west-1"}, "0.0200000000", "GB"),
)
"""The same in every region."""
PLACES = ("regionCode", "fromRegionCode")


def asked(service: str, wanted: Wanted) -> bool:
    """Whether it is about these, and not about machines."""
    return service != "AmazonEC2" or not wanted.keys().isdisjoint(
        {"volumeApiName", "productFamily"}
    )


def told(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Products with the attributes that were asked for."""
    place = {key: value for key, value in wanted.items() if key in PLACES}
    rest = {key: value for key, value in wanted.items() if key not in PLACES}
    for number, (attributes, dollars, unit) in enumerate(ROWS):
        if rest.items() <= attributes.items():
            dimension = {"unit": unit, "beginRange": "0", "pricePerUnit": {"USD": dollars}}
            term = {"priceDimensions": {f"T{number}.D": dimension}}
            yield {
                "product": {"attributes": {**attributes, **place}},
                "terms": {"OnDemand": {f"T{number}": term}},
            }
