"""What the account may still have of EC2: its quotas of vCPUs, less what is in use, from memory.

Both are read in the background. What is not known, or was known too long ago, says nothing: a
launch that could work is tried. So what is in use is rather counted short: neither machines of
reservations nor those of dedicated hosts, and of fewer cpus than usual only those.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker.model.errors import Refusal
from broker.model.offer import Machine, Market
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import OVER_QUOTA, Cooling, Place
from broker.providers.ec2 import naming
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError, quota_of
from broker.providers.ec2.holdings import Clocks
from broker.providers.ec2.instances import LIVING
from broker.providers.ec2.naming import Purchase

LIMITS_SECONDS = 900.0
"""Quotas of a region are read so often, and after a minute where one stands in the way."""
USE_SECONDS = 60.0
"""What others of the account use is read so often, and is believed five times as long."""
COST_SHARE = 20
"""Reading it takes at most one part in so many of the time."""
SILENT_SECONDS = 900.0
"""A region that said no or nothing is asked again after so long."""
AT_ONCE = 8
COUNTED = ["pending", "running"]
Key = tuple[str, str]
"""Region and quota code."""


def limits(api: Api, region: str) -> dict[str, int]:
    """vCPUs and other numbers by the code of their quota. Raises AwsError, NoAnswerError."""
    service, ask = "service-quotas", "list_service_quotas"
    listed = pages(api, region, ask, key="Quotas", service=service, ServiceCode="ec2")
    return {str(one["QuotaCode"]): int(one["Value"]) for one in listed}


@dataclass(slots=True)
class _Region:
    """What was read of one; instants by a clock that never jumps."""

    limits: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    limits_due: float = float("-inf")
    use_due: float = float("-inf")
    use_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Machines of one type that somebody would launch."""

    region: str
    instance_type: str
    market: Market
    nodes: int


class Quotas:
    """May be asked from any thread; only `read` asks AWS."""

    def __init__(
        self, api: Api, site: str, *, catalog: Callable[[], Catalog], clocks: Clocks
    ) -> None:
        self._api = api
        self._site = site
        self._catalog = catalog
        self._clocks = clocks
        self._regions: dict[str, _Region] = {}
        self._own: dict[str, Machine] = {}
        self._own_use: Counter[Key] = Counter()
        self._met: dict[Key, tuple[float, int]] = {}
        """What we used when a launch was over it, and until when that is believed."""
        self._told: dict[Key, Cooling] = {}
        self._cpus: tuple[Catalog | None, dict[str, int]] = None, {}
        self._lock = threading.Lock()

    # --- in the background

    def read(self, regions: Iterable[str]) -> None:
        """Reads what is due, several regions at a time; who is silent keeps what was known."""
        now = self._clocks.monotonic()
        due = [
            (name, known)
            for name in regions
            if now >= min((known := self._of(name)).limits_due, known.use_due)
        ]
        if due:
            with ThreadPoolExecutor(min(AT_ONCE, len(due)), thread_name_prefix="quotas") as pool:
                list(pool.map(lambda one: self._read(*one), due))

    def hold(self, machines: Iterable[Machine], *, all_of_them: bool = False) -> None:
        """They are ours and run; `all_of_them`: no others do."""
        with self._lock:
            known = {} if all_of_them else dict(self._own)
            self._own = known | {one.id: one for one in machines if one.state in LIVING}
            self._own_use = self._used(self._own.values())

    def drop(self, machine: Machine) -> None:
        """It is gone: what it used is free."""
        with self._lock:
            if self._own.pop(machine.id, None) is not None:
                self._own_use = self._used(self._own.values())
            code, _ = quota_of(machine.instance_type, machine.market)
            self._met.pop((machine.region, code), None)

    # --- from memory

    def against(self, place: Place, *, nodes: int, now: int) -> Cooling | None:
        """Why so many machines of a type would surely be refused, as far as the broker knows."""
        wanted = Wanted(place.region, place.instance_type, place.market, nodes)
        key, _ = self._key(wanted)
        until, met = self._met.get(key, (0.0, 0))
        own = self._own_use[key]
        if self._clocks.monotonic() < until:
            own = max(own, met)
        told = self._short(wanted, own)
        return None if told is None else self._note(key, told, now)

    def over(
        self, bought: Purchase, machines: Iterable[Machine], coming: Iterable[Purchase]
    ) -> str | None:
        """Why a launch would surely be refused, beside these machines and these launches."""
        offer = bought.offer
        if offer.reservation:
            return None
        nodes = 1 if bought.partial else len(bought.nodes)
        wanted = Wanted(offer.region, offer.instance_type, offer.market, nodes)
        key, _ = self._key(wanted)
        own = self._used(one for one in machines if one.state in LIVING)[key]
        own += sum(
            len(one.nodes) * one.offer.cpus
            for one in coming
            if (one.offer.region, quota_of(one.offer.instance_type, one.offer.market)[0]) == key
        )
        told = self._short(wanted, own)
        if told is not None:
            with self._lock:
                self._met[key] = self._clocks.monotonic() + USE_SECONDS, own
            self._note(key, told, int(self._clocks.now()))
        return told

    def entries(self, now: int) -> Iterator[Cooling]:
        """The quotas that stood in somebody's way of late."""
        return (one for one in list(self._told.values()) if one.until > now)

    def _note(self, key: Key, told: str, now: int) -> Cooling:
        before = self._told.get(key)
        since = before.since if before is not None and before.until > now else now
        until = now + int(USE_SECONDS)
        filed = (OVER_QUOTA, "ec2", *key)
        self._told[key] = Cooling(filed, Refusal.QUOTA, 1, 1, since, until, told)
        known = self._of(key[0])
        known.limits_due = min(known.limits_due, self._clocks.monotonic() + USE_SECONDS)
        return self._told[key]

    def _short(self, wanted: Wanted, own: int) -> str | None:
        """What is lacking, in words; None where it would do, or that is not known."""
        (region, code), group = self._key(wanted)
        known = self._regions.get(region)
        limit = None if known is None else known.limits.get(code)
        if known is None or limit is None:
            return None
        fresh = self._clocks.monotonic() - known.use_at < 5 * USE_SECONDS
        used = own + (known.others.get(code, 0) if fresh else 0)
        more = wanted.nodes * self._cpus_of(wanted.instance_type)
        if not more or used + more <= limit:
            return None
        return (
            f"quota {code} ({group}, {wanted.market}) in {region} allows {limit} vCPUs, "
            f"{used} in use, {more} more wanted"
        )

    def _key(self, wanted: Wanted) -> tuple[Key, str]:
        code, group = quota_of(wanted.instance_type, wanted.market)
        return (wanted.region, code), group

    def _used(self, machines: Iterable[Machine]) -> Counter[Key]:
        """What those of no reservation use: one that costs nothing is of a reservation."""
        found: Counter[Key] = Counter()
        for one in machines:
            if one.micro_usd_per_hour:
                code, _ = quota_of(one.instance_type, one.market)
                found[one.region, code] += self._cpus_of(one.instance_type)
        return found

    def _cpus_of(self, instance_type: str) -> int:
        """0 for a type that no catalogue knows."""
        catalog = self._catalog()
        if self._cpus[0] is not catalog:
            self._cpus = catalog, {shape.name: shape.cpus for shape in catalog.shapes}
        return self._cpus[1].get(instance_type, 0)

    # --- AWS

    def _of(self, region: str) -> _Region:
        return self._regions.setdefault(region, _Region())

    def _read(self, region: str, known: _Region) -> None:
        now = self._clocks.monotonic()
        if now >= known.limits_due:
            known.limits_due = now + self._tried(partial(self._read_limits, region, known))
        if now >= known.use_due and known.limits:
            wait = self._tried(partial(self._read_use, region, known))
            took = self._clocks.monotonic() - now
            known.use_due = now + max(wait, COST_SHARE * took)

    def _tried(self, read: Callable[[], float]) -> float:
        """Seconds until it is read again."""
        try:
            return read()
        except (AwsError, NoAnswerError):
            return SILENT_SECONDS

    def _read_limits(self, region: str, known: _Region) -> float:
        known.limits = limits(self._api, region)
        return LIMITS_SECONDS

    def _read_use(self, region: str, known: _Region) -> float:
        states = [{"Name": "instance-state-name", "Values": COUNTED}]
        groups = pages(self._api, region, "describe_instances", key="Reservations", Filters=states)
        found: Counter[str] = Counter()
        for raw in (one for group in groups for one in group["Instances"]):
            if naming.tags_of(raw).get(naming.SITE) != self._site and _counts(raw):
                spot = raw.get("InstanceLifecycle") == "spot"
                market = Market.SPOT if spot else Market.ON_DEMAND
                code, _ = quota_of(str(raw["InstanceType"]), market)
                found[code] += self._cpus_in(raw)
        known.others, known.use_at = found, self._clocks.monotonic()
        return USE_SECONDS

    def _cpus_in(self, raw: Mapping[str, Any]) -> int:
        usual = self._cpus_of(str(raw["InstanceType"]))
        chosen = raw.get("CpuOptions") or {}
        own = int(chosen.get("CoreCount") or 0) * int(chosen.get("ThreadsPerCore") or 0)
        return min(own, usual) or own or usual


def _counts(raw: Mapping[str, Any]) -> bool:
    """Whether it surely counts against a quota of its own."""
    dedicated = (raw.get("Placement") or {}).get("Tenancy") == "host"
    return not dedicated and not raw.get("CapacityReservationId")
