"""From what EC2 tells of an instance to a machine of ours; pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market, pool_of
from broker.model.rates import ADDRESS
from broker.optimize.costs import VOLUME
from broker.providers.ec2 import naming
from broker.providers.ec2.errors import AwsError, unstarted

STATES = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "stopping": MachineState.HALTING,
    "shutting-down": MachineState.STOPPING,
    "stopped": MachineState.STOPPED,
    "terminated": MachineState.TERMINATED,
}
LIVING = frozenset({MachineState.PENDING, MachineState.RUNNING})
KEPT = frozenset({MachineState.HALTING, MachineState.STOPPED})
"""Machines that run no more, and may again."""
INSTANT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)")
EC2 = "ec2"
NOWHERE = NodeName("?")
"""Of an instance that bears our site's id, but no node's name: nobody knows it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An instance as it was described, with its tags at hand."""

    raw: Mapping[str, Any]
    tags: Mapping[str, str]

    @property
    def id(self) -> str:
        return str(self.raw["InstanceId"])

    @property
    def place(self) -> int:
        """Its place among those of one call; of a fleet only one is ever asked for."""
        return int(self.raw.get("AmiLaunchIndex") or 0)


def machines(instances: Iterable[Mapping[str, Any]], region: str, *, public: bool) -> list[Machine]:
    """Every instance with its node: of several bought by one call, by their place in it."""
    described = (Seen(raw, naming.tags_of(raw)) for raw in instances)
    return [machine(seen, _node(seen), region, public=public) for seen in described]


def _node(seen: Seen) -> naming.Identity:
    """By its place in the call that bought it.

    Whoever copies a machine in the console copies its tags: two are one node then, of which the
    one that was written down is meant and the other is a stray.
    """
    return dict(enumerate(naming.nodes_of(seen.tags))).get(seen.place, (NOWHERE, 0))


def machine(seen: Seen, node: naming.Identity, region: str, *, public: bool) -> Machine:
    """What we hold of it; it runs since LaunchTime at the earliest, as far as one reply tells."""
    raw, tags = seen.raw, seen.tags
    state = STATES.get(raw["State"]["Name"], MachineState.PENDING)
    launched = _instant(raw["LaunchTime"])
    told = raw.get("StateReason") or {}
    reason = AwsError(str(told.get("Code", "")), str(told.get("Message", "")))
    ended = _ended(raw, launched) if state is MachineState.TERMINATED else None
    stopped = _ended(raw, launched) if state in KEPT else None
    pending, spot = state is MachineState.PENDING, raw.get("InstanceLifecycle") == "spot"
    found = Machine(
        id=seen.id,
        node=node[0],
        launch=node[1],
        token=tags.get(naming.TOKEN, ""),
        state=state,
        region=region,
        zone=zone_of(raw),
        instance_type=str(raw["InstanceType"]),
        market=Market.SPOT if spot else Market.ON_DEMAND,
        micro_usd_per_hour=int(tags.get(naming.PRICE) or 0),
        launched_at=launched,
        running_at=None if pending or ended == launched else launched,
        terminated_at=ended,
        stopped_at=stopped,
        ended_by_provider=reason.code.startswith("Server."),
        address=address_of(raw, public=public),
        inside=str(raw.get("PrivateIpAddress") or ""),
        price_of=tags.get(naming.PRICE_OF, ""),
        parts=tuple(_parts(raw)),
    )
    late = unstarted(reason, pool_of(found, EC2))
    return found if late is None else replace(found, running_at=None, unstarted=late)


def _parts(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Its root volume, and the interface by whose id a bill has its public address."""
    for disk in raw.get("BlockDeviceMappings") or ():
        volume = (disk.get("Ebs") or {}).get("VolumeId")
        if volume and disk.get("DeviceName") == raw.get("RootDeviceName"):
            yield VOLUME, str(volume)
    cards = raw.get("NetworkInterfaces") or ()
    if raw.get("PublicIpAddress") and cards:
        yield ADDRESS, str(cards[0]["NetworkInterfaceId"])


def zone_of(raw: Mapping[str, Any]) -> str:
    """The zone's id where EC2 tells it, else its name."""
    placement = raw.get("Placement") or {}
    return str(placement.get("AvailabilityZoneId") or placement.get("AvailabilityZone") or "")


def address_of(raw: Mapping[str, Any], *, public: bool) -> str:
    """How it is reached; its own id while it has no address."""
    key = "PublicIpAddress" if public else "PrivateIpAddress"
    return str(raw.get(key) or raw["InstanceId"])


def _ended(raw: Mapping[str, Any], launched: int) -> int | None:
    """When its end began, for which it is billed: EC2 tells it only as text."""
    found = INSTANT.search(str(raw.get("StateTransitionReason") or ""))
    if found is None:
        return None
    ended = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return max(launched, int(ended.timestamp()))


def _instant(value: datetime) -> int:
    return int(value.timestamp())
