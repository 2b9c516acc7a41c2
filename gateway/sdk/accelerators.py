"""Accelerators for programs, as `sky.list_accelerators` (0.14) tells them."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accounting.rates import MICRO
from broker.model.errors import Refused
from gateway.query.dollars import oldest
from gateway.sdk.client import Json
from gateway.sdk.sky import service

UNKNOWN = math.nan


class InstanceTypeInfo(NamedTuple):
    """A type that has the accelerator; sizes in GiB, prices in dollars an hour, NaN unknown."""

    cloud: str
    instance_type: str
    accelerator_name: str
    accelerator_count: float
    cpu_count: float
    device_memory: float | None
    memory: float
    price: float
    spot_price: float
    region: str


def list_accelerators(
    gpus_only: bool = True,
    name_filter: str | None = None,
    region_filter: str | None = None,
    quantity_filter: int | None = None,
    clouds: str | Sequence[str] | None = None,
    case_sensitive: bool = True,
    all_regions: bool = False,
    require_price: bool = True,
) -> dict[str, list[InstanceTypeInfo]]:
    """Types by their accelerator, where each is cheapest or with `all_regions` everywhere.

    `name_filter` is a regular expression. Raises Refused for another cloud than AWS, Told.
    """
    asked = [clouds] if isinstance(clouds, str) else clouds
    if asked is not None and "aws" not in {one.lower() for one in asked}:
        raise Refused(f"clouds: {', '.join(asked)}: only aws is served")
    rows = service().get("/v1/gpus", regions=region_filter, each=all_regions)["gpus"]
    pattern = re.compile(name_filter or "", 0 if case_sensitive else re.IGNORECASE)
    wanted = [
        row for row in rows if pattern.search(row["gpu"]) and quantity_filter in {None, _count(row)}
    ]
    found = by_name(wanted, each=all_regions)
    if require_price:
        found = {
            name: [one for one in infos if not math.isnan(one.price)]
            for name, infos in found.items()
        }
    return {name: infos for name, infos in found.items() if infos}


def by_name(rows: Sequence[Json], *, each: bool) -> dict[str, list[InstanceTypeInfo]]:
    """Rows of the service by accelerator, once for each region or where each is cheapest."""
    found: dict[str, list[InstanceTypeInfo]] = {}
    for row, prices in _priced(rows, each=each):
        found.setdefault(row["gpu"], []).append(_info(row, prices))
    return found


def told(rows: Sequence[Json], *, each: bool) -> dict[str, list[Json]]:
    """The same as JSON has it: what is unknown is nothing; beside it of what day prices are."""
    found: dict[str, list[Json]] = {}
    for row, prices in _priced(rows, each=each):
        found.setdefault(row["gpu"], []).append({**_plain(_info(row, prices)), **_days(prices)})
    return found


def _plain(one: InstanceTypeInfo) -> Json:
    values = one._asdict()
    return {key: None if value is UNKNOWN else value for key, value in values.items()}


def _days(prices: Sequence[Json]) -> Json:
    """The oldest of them speaks for all; an estimate is of the average saving of spot."""
    return {
        "as_of": min((one["as_of"] for one in prices if one["as_of"]), default=None),
        "old_price": oldest(one["old_price"] for one in prices),
        "estimate": any(one["estimate"] for one in prices),
    }


def _priced(rows: Sequence[Json], *, each: bool) -> Iterator[tuple[Json, Sequence[Json]]]:
    return ((row, prices) for row in rows for prices in _regions(row["prices"], each=each))


def _regions(prices: Sequence[Json], *, each: bool) -> list[list[Json]]:
    """The prices of each region apart, or the cheapest of all as one."""
    if not each:
        return [sorted(prices, key=lambda one: str(one["market"]))]
    regions = dict.fromkeys(one["region"] for one in prices)
    return [[one for one in prices if one["region"] == region] for region in regions]


def _count(row: Json) -> float:
    """A part of one, where a machine has no whole."""
    return float(row["count"] if row["fraction"] == 1 else row["fraction"])


def _info(row: Json, prices: Sequence[Json]) -> InstanceTypeInfo:
    told = {one["market"]: one["micro_usd_per_hour"] / MICRO for one in prices}
    return InstanceTypeInfo(
        cloud="AWS",
        instance_type=row["instance_type"],
        accelerator_name=row["gpu"],
        accelerator_count=_count(row),
        cpu_count=row["cpus"],
        device_memory=row["gpu_gb"],
        memory=row["mem_mib"] / 1024,
        price=told.get("on-demand", UNKNOWN),
        spot_price=told.get("spot", UNKNOWN),
        region=prices[0]["region"],
    )
