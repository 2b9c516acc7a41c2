"""The box's own bill: what each machine cost, counted without any code of the service. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from tests.lab.stock import Taken
from tests.lab.wares import SPOT

MINIMUM_SECONDS = 60

FREE_SPOT_SECONDS = 3600
HOUR = 3600
MONTH_HOURS, ADDRESS = 730, 5_000
"""Micro-dollars an hour for a public address."""
DISKS: Mapping[str, tuple[int, int, int, int, int]] = {
    "gp3": (80_000, 5_000, 3_000, 40_000, 125),
    "io2": (125_000, 65_000, 0, 0, 0),
    "standard": (50_000, 0, 0, 0, 0),
}
"""Micro-dollars a month for a GiB, for IOPS beyond so many, for MiB a second beyond so many."""


class Billed(Taken, Protocol):
    @property
    def id(self) -> str: ...
    @property
    def tags(self) -> Mapping[str, str]: ...
    @property
    def micro_usd_per_hour(self) -> int: ...
    @property
    def beside(self) -> Sequence[int]: ...
    @property
    def running_at(self) -> int | None: ...
    @property
    def stopped_at(self) -> int | None: ...
    @property
    def spans(self) -> Sequence[tuple[int, int]]: ...
    @property
    def ended_at(self) -> int | None: ...
    @property
    def taken_back(self) -> bool: ...
    @property
    def repriced(self) -> Sequence[tuple[float, int]]: ...


def cost(machine: Billed, now: int, *, hour: int = HOUR) -> int:
    """Micro-dollars until `now`; EC2's terms for Linux: by the second, a minute at least each time.

    Volumes are billed on while it is stopped. Each `hour` of a spot machine costs what its pool
    costs when that begins.
    """
    spans: list[tuple[int, int | None]] = [*machine.spans]
    if machine.running_at is not None:
        spans.append((machine.running_at, machine.stopped_at))
    if not spans:
        return 0
    early = (machine.stopped_at or now) - spans[-1][0] < FREE_SPOT_SECONDS
    free = machine.taken_back and machine.market == SPOT and early
    volumes = [price for price in machine.beside if price != ADDRESS]
    addresses = [price for price in machine.beside if price == ADDRESS]
    kept = sum(price * _seconds(spans[0][0], machine.ended_at, now) // HOUR for price in volumes)
    kept += sum(price * _seconds(*span, now) // HOUR for span in spans for price in addresses)
    if free:
        spans.pop()
    return kept + sum(_run(machine, span[0], _seconds(*span, now), hour) for span in spans)


def _run(machine: Billed, start: int, seconds: int, hour: int) -> int:
    """The machine alone, cut to micro-dollars once."""
    whole = 0
    for begun in range(0, seconds, hour):
        price = machine.micro_usd_per_hour
        for since, changed in machine.repriced:
            if int(since) <= start + begun:
                price = changed
        whole += price * min(hour, seconds - begun)
    return whole // HOUR


def _seconds(start: int, end: int | None, now: int) -> int:
    return max(0, now - start) if end is None else max(MINIMUM_SECONDS, end - start)


def beside(params: Mapping[str, Any]) -> tuple[int, ...]:
    """Micro-dollars an hour of what a launch asks for beside the machine: volumes, addresses."""
    disks = [disk.get("Ebs") or {} for disk in params.get("BlockDeviceMappings") or ()]
    cards = params.get("NetworkInterfaces") or ()
    public = [card for card in cards if str(card.get("AssociatePublicIpAddress")).lower() == "true"]
    sized = (disk for disk in disks if "VolumeSize" in disk)
    return (*map(_disk, sized), *(ADDRESS for _ in public))


def _disk(asked: Mapping[str, Any]) -> int:
    gib, iops, free_iops, mbps, free_mbps = DISKS[str(asked.get("VolumeType", "gp3"))]
    month = int(asked["VolumeSize"]) * gib
    month += max(0, int(asked.get("Iops", 0)) - free_iops) * iops
    month += max(0, int(asked.get("Throughput", 0)) - free_mbps) * mbps
    return month // MONTH_HOURS


def bill(machines: Iterable[Billed], now: int, *, hour: int = HOUR) -> dict[str, object]:
    """Every machine that there was, and the sum; instants in whole seconds UTC."""
    lines = [
        {
            "id": machine.id,
            "tags": dict(machine.tags),
            "instance_type": machine.instance_type,
            "region": machine.region,
            "zone": machine.zone,
            "market": machine.market,
            "micro_usd_per_hour": machine.micro_usd_per_hour,
            "running_at": machine.running_at,
            "stopped_at": machine.stopped_at,
            "taken_back": machine.taken_back,
            "micro_usd": cost(machine, now, hour=hour),
        }
        for machine in machines
    ]
    return {"now": now, "micro_usd": sum(int(str(x["micro_usd"])) for x in lines), "lines": lines}
