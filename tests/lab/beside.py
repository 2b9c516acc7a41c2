"""What is asked beside EC2 itself: images by SSM parameter, price lists, quotas. JSON both ways."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami

from broker.optimize.catalog import Shape
from tests.lab import tariff
from tests.lab.box import Box
from tests.lab.faults import Fault
from tests.lab.wares import ON_DEMAND, quota_names

IMAGES = (
    "/aws/service/ami-amazon-linux-latest/",
    "/aws/service/deeplearning/ami/",
    "/aws/service/canonical/ubuntu/",
)
ROOT_DEVICES = {"canonical": "/dev/sda1"}
Answer = Mapping[str, Any]


def image(region: str, name: str) -> str:
    """The id of the image that a public parameter names, registered with moto on first use."""
    id = f"ami-{hashlib.sha256(f'{region} {name}'.encode()).hexdigest()[:17]}"
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    if id not in backend.amis:
        device = next((d for word, d in ROOT_DEVICES.items() if word in name), "/dev/xvda")
        backend.amis[id] = Ami(
            backend,
            id,
            name=name.strip("/").replace("/", "-"),
            description=name,
            owner_id="137112412989",
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture="arm64" if "arm64" in name else "x86_64",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=device,
            region_name=region,
        )
    return id


def _parameter(region: str, name: str) -> dict[str, Any] | None:
    if not name.startswith(IMAGES):
        return None
    value = image(region, name)
    return {"Name": name, "Type": "String", "Value": value, "Version": 1, "DataType": "text"}


def get_parameter(_box: Box, region: str, asked: Answer) -> Answer | None:
    """None: moto knows."""
    found = _parameter(region, str(asked.get("Name")))
    return {"Parameter": found} if found else None


def get_parameters(_box: Box, region: str, asked: Answer) -> Answer | None:
    found = [_parameter(region, name) for name in asked.get("Names", ())]
    if None in found:
        return None
    return {"Parameters": found, "InvalidParameters": []}


def get_products(box: Box, region: str, asked: Answer) -> Answer | None:
    wanted = {item["Field"]: item["Value"] for item in asked.get("Filters", ())}
    if tariff.asked(asked["ServiceCode"], wanted):
        return {"FormatVersion": "aws_v1", "PriceList": list(map(json.dumps, tariff.told(wanted)))}
    return _machines(box, region, asked)


def _machines(box: Box, _region: str, asked: Answer) -> Answer:
    wanted = {item["Field"]: item["Value"] for item in asked.get("Filters", ())}
    region = wanted.get("regionCode") or wanted.get("location", "")
    names = [wanted["instanceType"]] if "instanceType" in wanted else box.wares.types_in(region)
    start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 100)
    priced = [
        (box.wares.shapes[name], price)
        for name in names
        if (price := box.wares.price(name, ON_DEMAND, region=region, zone="")) is not None
    ]
    page = [json.dumps(_product(shape, region, p)) for shape, p in priced[start : start + size]]
    more = {"NextToken": str(start + size)} if start + size < len(priced) else {}
    return {"FormatVersion": "aws_v1", "PriceList": page, **more}


def _product(shape: Shape, region: str, price: int) -> dict[str, Any]:
    sku = hashlib.sha256(f"{region} {shape.name}".encode()).hexdigest()[:16].upper()
    dimension = {
        "unit": "Hrs",
        "description": f"${price / 1e6} per On Demand Linux {shape.name} Instance Hour",
        "pricePerUnit": {"USD": f"{price // 1_000_000}.{price % 1_000_000:06d}0000"},
    }
    return {
        "serviceCode": "AmazonEC2",
        "product": {
            "sku": sku,
            "productFamily": "Compute Instance",
            "attributes": {
                "instanceType": shape.name,
                "regionCode": region,
                "vcpu": str(shape.cpus),
                "memory": f"{shape.mem_mib / 1024:g} GiB",
                "operatingSystem": "Linux",
                "tenancy": "Shared",
                "preInstalledSw": "NA",
                "capacitystatus": "Used",
                "licenseModel": "No License required",
                "marketoption": "OnDemand",
                "operation": "RunInstances",
            },
        },
        "terms": {"OnDemand": {f"{sku}.T": {"priceDimensions": {f"{sku}.T.D": dimension}}}},
    }


def get_service_quota(box: Box, region: str, asked: Answer) -> Answer | None:
    for code, name in quota_names():
        if asked.get("ServiceCode") == "ec2" and code == asked.get("QuotaCode"):
            return {"Quota": _quota(box, region, code, name)}
    raise Fault("NoSuchResourceException", "The request failed because the quota does not exist.")


def list_service_quotas(box: Box, region: str, _asked: Answer) -> Answer | None:
    return {"Quotas": [_quota(box, region, code, name) for code, name in quota_names()]}


def _quota(box: Box, region: str, code: str, name: str) -> dict[str, Any]:
    return {
        "ServiceCode": "ec2",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(box.stock.quota(code, region)),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


TARGETS: Mapping[str, Callable[[Box, str, Answer], Answer | None]] = {
    "AmazonSSM.GetParameter": get_parameter,
    "AmazonSSM.GetParameters": get_parameters,
    "AWSPriceListService.GetProducts": get_products,
    "ServiceQuotasV20190624.GetServiceQuota": get_service_quota,
    "ServiceQuotasV20190624.ListServiceQuotas": list_service_quotas,
    "ServiceQuotasV20190624.GetAWSDefaultServiceQuota": get_service_quota,
}
"""By X-Amz-Target; None for an answer means that moto is asked."""
