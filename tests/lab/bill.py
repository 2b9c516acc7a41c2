"""The box's own bill: what each machine cost, counted without any code of the service. Pure."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from tests.lab.stock import Taken
from tests.lab.wares import SPOT

MINIMUM_SECONDS = 60

FREE_SPOT_SECONDS = 3600
HOUR = 3600


class Billed(Taken, Protocol):
    @property
    def id(self) -> str: ...
    @property
    def tags(self) -> Mapping[str, str]: ...
    @property
    def micro_usd_per_hour(self) -> int: ...
    @property
    def running_at(self) -> int | None: ...
    @property
    def stopped_at(self) -> int | None: ...
    @property
    def taken_back(self) -> bool: ...


def cost(machine: Billed, now: int) -> int:
    """Micro-dollars until `now`; EC2's terms for Linux: by the second, a minute at least."""
    if machine.running_at is None:
        return 0
    seconds = max(0, (machine.stopped_at or now) - machine.running_at)
    if machine.taken_back and machine.market == SPOT and seconds < FREE_SPOT_SECONDS:
        return 0
    if machine.stopped_at is not None:
        seconds = max(seconds, MINIMUM_SECONDS)
    return machine.micro_usd_per_hour * seconds // HOUR


def bill(machines: Iterable[Billed], now: int) -> dict[str, object]:
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
            "micro_usd": cost(machine, now),
        }
        for machine in machines
    ]
    return {"now": now, "micro_usd": sum(int(str(x["micro_usd"])) for x in lines), "lines": lines}
