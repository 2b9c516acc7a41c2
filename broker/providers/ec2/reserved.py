"""Capacity reservations and blocks of the account: paid for whether they are used or not."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from broker.model.offer import BLOCK, RESERVED, TARGETED, Market, Offer
from broker.optimize.catalog import MARKET_WORDS, Catalog, Shape
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError

READ_SECONDS = 60.0
"""A region that has any is read again after so long."""
LOOK_SECONDS = 900.0
"""One that has none."""
BLOCK_ENDS_EARLY = 1800
"""Machines of a capacity block are ended so many seconds before it is over."""
WANTED = {"state": "active", "tenancy": "default", "instance-platform": "Linux/UNIX"}


@dataclass(slots=True)
class Reservations:
    """May be asked from any thread; `clock` never jumps."""

    api: Api
    catalog: Callable[[], Catalog]
    clock: Callable[[], float]
    _known: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    """Machines that were taken since the reservation was read."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def offers(self) -> Sequence[Offer]:
        """As they stand, from memory."""
        with self._lock:
            every = [offer for here in self._known.values() for offer in here]
            gone = dict(self._gone)
        return [_less(offer, gone.get(offer.reservation, 0)) for offer in every]

    def free(self, id: str) -> int:
        """How many machines are left of it, as far as is known."""
        return next((one.free for one in self.offers() if one.reservation == id), 0)

    def taken(self, id: str, count: int) -> None:
        """So many were launched into it."""
        with self._lock:
            self._gone[id] = self._gone.get(id, 0) + count

    def read(self, regions: Iterable[str]) -> None:
        """Reads those that are due; one that says no or nothing keeps what was known."""
        now = self.clock()
        for region in regions:
            if now < self._due.get(region, now):
                continue
            try:
                found = tuple(self._of(region))
            except (AwsError, NoAnswerError):
                self._due[region] = now + LOOK_SECONDS
                continue
            self._due[region] = now + (READ_SECONDS if found else LOOK_SECONDS)
            with self._lock:
                self._known[region] = found
                for offer in found:
                    self._gone.pop(offer.reservation, None)

    def _of(self, region: str) -> Iterator[Offer]:
        filters = [{"Name": name, "Values": [value]} for name, value in WANTED.items()]
        listed = pages(
            self.api,
            region,
            "describe_capacity_reservations",
            key="CapacityReservations",
            Filters=filters,
        )
        catalog = self.catalog()
        for told in listed:
            shape = catalog.shape(str(told["InstanceType"]))
            if shape is not None and told.get("AvailabilityZoneId"):
                yield offer_of(told, shape, region)


def offer_of(told: Mapping[str, Any], shape: Shape, region: str) -> Offer:
    """A reservation as EC2 tells it, as an offer that costs nothing more."""
    block = told.get("ReservationType") == BLOCK
    zone, id = str(told["AvailabilityZoneId"]), str(told["CapacityReservationId"])
    closed = [BLOCK] if block else [TARGETED] * (told.get("InstanceMatchCriteria") == TARGETED)
    place = region, zone, *MARKET_WORDS[Market.ON_DEMAND]
    return Offer(
        provider="ec2",
        region=region,
        zones=(zone,),
        instance_type=shape.name,
        market=Market.ON_DEMAND,
        micro_usd_per_hour=0,
        cpus=shape.cpus,
        mem_mib=shape.mem_mib,
        gres=shape.gres,
        arch=shape.arch,
        family=shape.family,
        features=(*shape.words, RESERVED, *closed, id, *place),
        tmp_mib=shape.tmp_mib,
        reservation=id,
        free=int(told.get("AvailableInstanceCount") or 0),
        until=_end(told.get("EndDate"), early=BLOCK_ENDS_EARLY if block else 0),
    )


def _end(at: datetime | None, *, early: int) -> int | None:
    return None if at is None else int(at.timestamp()) - early


def _less(offer: Offer, gone: int) -> Offer:
    return replace(offer, free=max(0, offer.free - gone)) if gone else offer
