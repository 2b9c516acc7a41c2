"""One region's types, offerings and prices, as AWS tells them now.

The price list is served from few regions and has no entry for some; spot prices come by zone name
and are kept by zone id, which means the same place in every account.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from broker.optimize.figures import RegionFigures, TypeRow
from broker.providers.ec2.clients import Api, Reply
from broker.providers.ec2.pricelist import PRICES_SILENT, micro_usd, products, usd
from broker.providers.ec2.rates import read_rates

LINUX = "Linux/UNIX"
PAGE = 1000
PRICE_FILTERS = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
CPU_MAKERS = {"Intel": "intel", "AMD": "amd", "AWS": "graviton"}
ACCELERATORS = (
    ("GpuInfo", "Gpus", ""),
    ("NeuronInfo", "NeuronDevices", "neuron"),
    ("InferenceAcceleratorInfo", "Accelerators", "inference"),
    ("FpgaInfo", "Fpgas", "fpga"),
    ("MediaAcceleratorInfo", "Accelerators", "media"),
)
GPU_MAKERS = {"NVIDIA": "nvidia", "AMD": "amd-gpu", "Habana": "gaudi"}
UNLIKE = re.compile(r"[^A-Za-z0-9-]")


def read_region(api: Api, region: str, known: frozenset[str], *, now: str) -> RegionFigures:
    """Everything of the region; types that are `known` are not asked for again.

    `now` is ISO 8601: spot prices that hold then. Raises AwsError or NoAnswerError where EC2 does
    not answer; a price list that does not leaves its prices out.
    """
    zones = _zones(api, region)
    offered = _offered(api, region)
    return RegionFigures(
        region=region,
        opt_in=any(opt_in for _, opt_in in zones.values()),
        zones=tuple(sorted(zone for zone, _ in zones.values())),
        offered=offered,
        types=_types(api, region, sorted(offered.keys() - known)),
        on_demand=_on_demand(api, region),
        spot=dict(_spot(api, region, {name: zone for name, (zone, _) in zones.items()}, now=now)),
        rates=read_rates(api, region),
    )


def _pages(api: Api, region: str, operation: str, **params: Any) -> Iterator[Reply]:
    token: dict[str, str] = {}
    while True:
        reply = api.call("ec2", region, operation, **params, **token)
        yield reply
        if not reply.get("NextToken"):
            return
        token = {"NextToken": reply["NextToken"]}


def _zones(api: Api, region: str) -> dict[str, tuple[str, bool]]:
    """Zone name to its id, and whether its region has to be opted into."""
    reply = api.call("ec2", region, "describe_availability_zones")
    regions = api.call("ec2", region, "describe_regions", RegionNames=[region])["Regions"]
    opt_in = any(one.get("OptInStatus") != "opt-in-not-required" for one in regions)
    return {
        zone["ZoneName"]: (zone["ZoneId"], opt_in)
        for zone in reply["AvailabilityZones"]
        if zone.get("ZoneType", "availability-zone") == "availability-zone"
    }


def _offered(api: Api, region: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    pages = _pages(
        api,
        region,
        "describe_instance_type_offerings",
        LocationType="availability-zone-id",
        MaxResults=PAGE,
    )
    for page in pages:
        for one in page["InstanceTypeOfferings"]:
            found.setdefault(one["InstanceType"], []).append(one["Location"])
    return {name: tuple(sorted(zones)) for name, zones in found.items()}


def _types(api: Api, region: str, names: list[str]) -> dict[str, TypeRow]:
    """Types that no catalogue had before, a hundred at a time."""
    found = {}
    for begin in range(0, len(names), 100):
        some = names[begin : begin + 100]
        reply = api.call("ec2", region, "describe_instance_types", InstanceTypes=some)
        for one in reply["InstanceTypes"]:
            found[one["InstanceType"]] = type_row(one)
    return found


def type_row(told: Mapping[str, Any]) -> TypeRow:
    """EC2's description of a type as the catalogue's columns."""
    kind, device = _accelerator(told)
    storage = told.get("InstanceStorageInfo", {})
    return {
        "name": told["InstanceType"],
        "cpus": told["VCpuInfo"]["DefaultVCpus"],
        "mem_mib": told["MemoryInfo"]["SizeInMiB"],
        "arch": _arch(told["ProcessorInfo"]["SupportedArchitectures"]),
        "gpu": UNLIKE.sub("", device.get("Name", "")),
        "gpus": float(device.get("Count", 0)),
        "gpu_mem_mib": device.get("MemoryInfo", {}).get("SizeInMiB", 0),
        "tmp_mib": storage.get("TotalSizeInGB", 0) * 1_000_000_000 >> 20,
        "words": " ".join(_words(told, kind, storage)),
    }


def _accelerator(told: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    for section, devices, kind in ACCELERATORS:
        for device in told.get(section, {}).get(devices, ()):
            maker = device.get("Manufacturer", "")
            gpu = next((word for name, word in GPU_MAKERS.items() if name in maker), "other-gpu")
            return kind or gpu, device
    return "", {}


def _arch(supported: Iterable[str]) -> str:
    return "arm64" if "arm64" in supported else "x86_64"


def _words(told: Mapping[str, Any], kind: str, storage: Mapping[str, Any]) -> Iterator[str]:
    maker = told["ProcessorInfo"].get("Manufacturer", "")
    yield CPU_MAKERS.get(maker, maker.lower() or "other-cpu")
    if kind:
        yield kind
    flags = {
        "burstable": told.get("BurstablePerformanceSupported"),
        "metal": told.get("BareMetal"),
        "efa": told.get("NetworkInfo", {}).get("EfaSupported"),
        "nvme": storage.get("NvmeSupport", "unsupported") != "unsupported",
    }
    yield from (word for word, is_so in flags.items() if is_so)


def _on_demand(api: Api, region: str) -> dict[str, int] | None:
    """Micro-dollars an hour by type; None where the price list does not answer."""
    try:
        found = dict(_listed(products(api, "AmazonEC2", PRICE_FILTERS | {"regionCode": region})))
    except PRICES_SILENT:
        return None
    return found or None


def _listed(products: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    for product in products:
        name = product["product"]["attributes"].get("instanceType", "")
        for price in filter(None, (micro_usd(one) for one, _ in usd(product))):
            if name:
                yield name, price


def _spot(
    api: Api, region: str, zone_ids: Mapping[str, str], *, now: str
) -> Iterator[tuple[tuple[str, str], int]]:
    """The latest price by type and zone id."""
    pages = _pages(
        api,
        region,
        "describe_spot_price_history",
        StartTime=now,
        ProductDescriptions=[LINUX],
        MaxResults=PAGE,
    )
    newest: dict[tuple[str, str], Any] = {}
    for one in (one for page in pages for one in page["SpotPriceHistory"]):
        zone = zone_ids.get(one["AvailabilityZone"])
        if zone is None:
            continue
        key = one["InstanceType"], zone
        if key not in newest or one["Timestamp"] > newest[key]["Timestamp"]:
            newest[key] = one
    for key, one in newest.items():
        yield key, micro_usd(one["SpotPrice"])
