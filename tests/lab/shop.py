"""Types, offerings and spot prices as EC2 tells them, from the box's wares; placement groups."""

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult, EmptyResult

from broker.optimize.catalog import Shape
from tests.lab.faults import Fault
from tests.lab.launching import Launching
from tests.lab.stock import Reservation

PAGE = 100
LARGEST_PAGE = 1000
LOCATIONS = ("region", "availability-zone", "availability-zone-id")
PRODUCT = "Linux/UNIX"
CPU_MAKERS = {"intel": "Intel", "amd": "AMD", "graviton": "AWS"}
DEVICES: Mapping[str, tuple[str, str, str]] = {
    "nvidia": ("GpuInfo", "Gpus", "NVIDIA"),
    "amd-gpu": ("GpuInfo", "Gpus", "AMD"),
    "gaudi": ("GpuInfo", "Gpus", "Habana"),
    "neuron": ("NeuronInfo", "NeuronDevices", ""),
    "inference": ("InferenceAcceleratorInfo", "Accelerators", "Qualcomm"),
    "fpga": ("FpgaInfo", "Fpgas", "Xilinx"),
    "media": ("MediaAcceleratorInfo", "Accelerators", "Xilinx"),
}
"""Where EC2 tells of an accelerator, by the catalog's word for its kind; and who makes it."""


def described(shape: Shape) -> dict[str, Any]:
    """As DescribeInstanceTypes tells it."""
    words = shape.features
    maker = next((name for word, name in CPU_MAKERS.items() if word in words), "Apple")
    found: dict[str, Any] = {
        "InstanceType": shape.name,
        "CurrentGeneration": True,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "SupportedVirtualizationTypes": ["hvm"],
        "BareMetal": "metal" in words,
        "BurstablePerformanceSupported": "burstable" in words,
        "ProcessorInfo": {"SupportedArchitectures": [shape.arch], "Manufacturer": maker},
        "VCpuInfo": {"DefaultVCpus": shape.cpus},
        "MemoryInfo": {"SizeInMiB": shape.mem_mib},
        "InstanceStorageSupported": shape.tmp_mib > 0,
        "NetworkInfo": {"EfaSupported": "efa" in words, "EnaSupport": "required"},
    }
    if shape.tmp_mib:
        size = round(shape.tmp_mib * 1024**2 / 1000**3)
        nvme = "required" if "nvme" in words else "unsupported"
        found["InstanceStorageInfo"] = {"TotalSizeInGB": size, "NvmeSupport": nvme}
    for word, (section, devices, made_by) in DEVICES.items():
        if word in words:
            found[section] = {devices: [_device(shape, made_by)]}
    return found


def _device(shape: Shape, maker: str) -> dict[str, Any]:
    memory = {"SizeInMiB": shape.gpu_mem_mib}
    device = {"Name": shape.gpu_name, "Count": shape.gpus, "MemoryInfo": memory}
    return {**device, "Manufacturer": maker} if maker else device


class Shop(Launching):
    def describe_instance_types(self) -> ActionResult:
        here = self.box.wares.types_in(self.region)
        asked = self._get_param("InstanceTypes", [])
        for name in asked:
            if name not in here:
                text = f"The following supplied instance types do not exist: [{name}]"
                raise Fault("InvalidInstanceType", text)
        wanted = self._filters_from_querystring().get("instance-type") or ["*"]
        names = [name for name in asked or here if _matches(name, wanted)]
        page, token = self._page(names)
        types = [described(self.box.wares.shapes[name]) for name in page]
        return ActionResult({"InstanceTypes": types, "NextToken": token})

    def describe_instance_type_offerings(self) -> ActionResult:
        kind = self._get_param("LocationType") or "region"
        if kind not in LOCATIONS:
            raise Fault("InvalidParameterValue", f"Invalid location type: {kind}")
        filters = self._filters_from_querystring()
        names, places = filters.get("instance-type") or ["*"], filters.get("location") or ["*"]
        found = [
            {"InstanceType": name, "LocationType": kind, "Location": place}
            for name in self.box.wares.types_in(self.region)
            if _matches(name, names)
            for place in self._locations(name, kind)
            if _matches(place, places)
        ]
        page, token = self._page(found, LARGEST_PAGE)
        return ActionResult({"InstanceTypeOfferings": page, "NextToken": token})

    def _locations(self, name: str, kind: str) -> Iterator[str]:
        zones = self._zone_names()
        if kind == "region":
            yield self.region
            return
        for zone in self.box.wares.zones.get((name, self.region), ()):
            if zone in zones:
                yield zone if kind == "availability-zone-id" else zones[zone]

    def _zone_names(self) -> dict[str, str]:
        return {z.zone_id: z.name for z in self.ec2_backend.describe_availability_zones()}

    def describe_capacity_reservations(self) -> ActionResult:
        wanted = self._filters_from_querystring().get("state") or ["*"]
        here = (one for one in self.box.stock.reservations.values() if one.region == self.region)
        shown = [self._reservation(one) for one in here]
        shown = [told for told in shown if _matches(told["State"], wanted)]
        return ActionResult({"CapacityReservations": shown})

    def _reservation(self, one: Reservation) -> dict[str, Any]:
        over = one.ends_at is not None and one.ends_at <= self.box.now()
        end = {"EndDate": datetime.fromtimestamp(one.ends_at, UTC)} if one.ends_at else {}
        return {
            "CapacityReservationId": one.id,
            "InstanceType": one.instance_type,
            "InstancePlatform": PRODUCT,
            "AvailabilityZoneId": one.zone,
            "Tenancy": "default",
            "TotalInstanceCount": one.count,
            "AvailableInstanceCount": self.box.stock.left_of(one, self.box.machines.living()),
            "State": "expired" if over else "active",
            "EndDateType": "limited" if end else "unlimited",
            "InstanceMatchCriteria": one.match,
            "ReservationType": "capacity-block" if one.block else "default",
            **end,
        }

    def describe_spot_price_history(self) -> ActionResult:
        filters = self._filters_from_querystring()
        names = self._get_param("InstanceTypes", []) or filters.get("instance-type") or ["*"]
        zone = self._get_param("AvailabilityZone")
        zones = [zone] if zone else filters.get("availability-zone") or ["*"]
        page, token = self._page(list(self._history(names, zones)), LARGEST_PAGE)
        return ActionResult({"SpotPriceHistory": page, "NextToken": token})

    def _history(self, names: Sequence[str], zones: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Newest first within a pool; StartTime leaves the price in force then, as EC2 does."""
        given, now = self._get_param("StartTime"), self.box.now()
        start = 0.0 if given is None else _instant(given).timestamp()
        for name in self.box.wares.types_in(self.region):
            if not _matches(name, names):
                continue
            for zone_id, zone in self._zone_names().items():
                if not _matches(zone, zones):
                    continue
                for at, price in self.box.wares.samples(name, zone_id, now):
                    yield {
                        "InstanceType": name,
                        "ProductDescription": PRODUCT,
                        "SpotPrice": f"{price / 1_000_000:.6f}",
                        "AvailabilityZone": zone,
                        "AvailabilityZoneId": zone_id,
                        "Timestamp": datetime.fromtimestamp(at, UTC),
                    }
                    if at <= start:
                        break

    def _page(self, rows: list[Any], default: int = PAGE) -> tuple[list[Any], str | None]:
        start = int(self._get_param("NextToken") or 0)
        size = int(self._get_param("MaxResults") or default)
        token = str(start + size) if start + size < len(rows) else None
        return rows[start : start + size], token

    # --- placement groups

    def create_placement_group(self) -> ActionResult:
        self.error_on_dryrun()
        name = self._get_param("GroupName")
        if (self.region, name) in self.box.groups:
            raise Fault("InvalidPlacementGroup.Duplicate", name=name)
        tags = [
            tag
            for spec in self._get_param("TagSpecifications", [])
            if spec["ResourceType"] == "placement-group"
            for tag in spec["Tags"]
        ]
        group = {
            "GroupName": name,
            "State": "available",
            "Strategy": self._get_param("Strategy") or "cluster",
            "GroupId": f"pg-{abs(hash((self.region, name))):017x}"[:20],
            "Tags": tags,
        }
        self.box.groups[self.region, name] = group
        return ActionResult({"PlacementGroup": group})

    def describe_placement_groups(self) -> ActionResult:
        names = self._get_param("GroupNames", [])
        for name in names:
            self._group(name)
        filters = self._filters_from_querystring()
        found = [
            group
            for (region, name), group in self.box.groups.items()
            if region == self.region and (not names or name in names) and _tagged(group, filters)
        ]
        return ActionResult({"PlacementGroups": found})

    def delete_placement_group(self) -> ActionResult:
        self.error_on_dryrun()
        name = self._get_param("GroupName")
        self._group(name)
        for instance in self.ec2_backend.all_instances():
            if instance.state != "terminated" and instance.placement.group_name == name:
                raise Fault("InvalidPlacementGroup.InUse", name=name)
        del self.box.groups[self.region, name]
        return EmptyResult()

    def _group(self, name: str) -> Mapping[str, Any]:
        group = self.box.groups.get((self.region, name))
        if group is None:
            raise Fault("InvalidPlacementGroup.Unknown", name=name)
        return group


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


GROUP_FILTERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "group-name": lambda group: str(group["GroupName"]),
    "state": lambda group: str(group["State"]),
    "strategy": lambda group: str(group["Strategy"]),
}


def _tagged(group: Mapping[str, Any], filters: Mapping[str, Sequence[str]]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    for name, values in filters.items():
        if name.startswith("tag:"):
            have = tags.get(name.removeprefix("tag:"), "")
        elif name in GROUP_FILTERS:
            have = GROUP_FILTERS[name](group)
        else:
            raise Fault("InvalidParameterValue", f"The filter '{name}' is invalid")
        if not _matches(have, values):
            return False
    return True


def _instant(given: Any) -> datetime:
    found = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    return found if found.tzinfo else found.replace(tzinfo=UTC)
