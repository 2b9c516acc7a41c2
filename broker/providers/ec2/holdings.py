"""What we hold in EC2, region by region: one describe serves everybody who asks meanwhile."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from broker.model.offer import Machine, MachineState
from broker.providers.ec2 import naming
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import (
    REGION_SHUT,
    STALE,
    AwsError,
    NoAnswerError,
    ShutError,
    meaning,
)
from broker.providers.ec2.instances import KEPT
from broker.providers.ec2.instances import machines as told
from broker.providers.ec2.network import Zones
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.ec2.spotprices import SpotPrices

FRESH_SECONDS = 1.0
"""A describe younger than this is believed."""
COST_SHARE = 4
"""Describing takes at most one part in so many of the time: EC2's XML costs 0.4 ms a machine."""
SILENT_SECONDS = 10.0
"""A region that did not answer is asked again after so long."""
UNSEEN_SECONDS = 120
"""So long a machine may be missing from describes before it counts as gone."""
LISTED_SECONDS = 3600
"""So long one that was seen terminated is remembered, as EC2 lists it."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time as it passes outside: seconds UTC, seconds of a clock that never jumps, waiting."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class _Region:
    """What was last seen of one region."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    read_at: float = float("-inf")
    kept_for: float = FRESH_SECONDS
    machines: dict[str, Machine] = field(default_factory=dict)
    known: bool = False
    """Whether it was ever described since this process began."""
    seen_at: dict[str, int] = field(default_factory=dict)
    """When each was last described (the question was put then), or bought."""


@dataclass(frozen=True, slots=True)
class Written:
    """What is written down: regions in which something of ours may be, machines of live nodes."""

    regions: Callable[[], Iterable[str]]
    machines: Callable[[], Iterable[Machine]] = tuple


class Holdings:
    """May be asked from any thread."""

    def __init__(
        self,
        api: Api,
        site: naming.Site,
        *,
        written: Written,
        settings: Ec2Settings,
        clocks: Clocks,
    ) -> None:
        self._api = api
        self._site = site
        self._written = written
        self._public = settings.public
        self._zones = Zones(api)
        self._prices = SpotPrices(api, self._zones)
        self._clocks = clocks
        self._regions: dict[str, _Region] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="describe")
        self.could_not_start: Callable[[str], None] = _unheard
        """Told the region, once for each machine that is found wanting in what it is made of."""

    def machines(self) -> list[Machine]:
        """All there are, those of a region that does not answer as last seen.

        Those of a region that is shut to us are as they were written down. Raises OSError where one
        that may hold some was never heard of since the start.
        """
        names = sorted(set(self._written.regions()))
        if len(names) < 2:
            return [machine for name in names for machine in self._of(name)]
        found = self._pool.map(self._of, names)
        return [machine for machines in found for machine in machines]

    def any_in(self, region: str) -> bool:
        """Whether anything of this site is there; False where we may not look."""
        try:
            return bool(self._of(region))
        except NoAnswerError:
            return False

    def remembered(self, id: str, region: str) -> Machine | None:
        """A machine as last seen, which may be some time ago."""
        return self._region(region).machines.get(id)

    def add(self, machines: Iterable[Machine]) -> None:
        """Those that were just bought: the next describe may not show them yet."""
        for machine in machines:
            here = self._region(machine.region)
            with here.lock:
                here.machines.setdefault(machine.id, machine)
                here.seen_at[machine.id] = machine.launched_at
                here.read_at = float("-inf")

    def stale(self, region: str) -> None:
        """Something was changed there: what is known is not believed any more."""
        here = self._region(region)
        with here.lock:
            here.read_at = float("-inf")

    def stop(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _region(self, name: str) -> _Region:
        with self._lock:
            return self._regions.setdefault(name, _Region())

    def _of(self, name: str) -> Sequence[Machine]:
        here = self._region(name)
        with here.lock:
            if self._clocks.monotonic() - here.read_at >= here.kept_for:
                self._look(name, here)
            return list(here.machines.values())

    def _look(self, name: str, here: _Region) -> None:
        """A region that does not answer now is as it was: the others go on meanwhile."""
        try:
            self._read(name, here)
        except NoAnswerError as error:
            if not here.known and not isinstance(error, ShutError):
                raise
            if not here.known:
                here.machines = {
                    one.id: one for one in self._written.machines() if one.region == name
                }
                here.seen_at = dict.fromkeys(here.machines, int(self._clocks.now()))
            here.read_at, here.kept_for = self._clocks.monotonic(), SILENT_SECONDS

    def _read(self, name: str, here: _Region) -> None:
        began, now = self._clocks.monotonic(), int(self._clocks.now())
        seen = told(self._described(name), name, public=self._public)
        lately = {} if here.known else self._bought_lately(name, now)
        seen = [replace(one, zone=self._zones.id(name, one.zone)) for one in seen]
        fresh = {machine.id: _carried(machine, here, now) for machine in seen}
        fresh = self._prices.told(name, fresh, now)
        for id, machine in fresh.items():
            if _is_broken(machine) and not _is_broken(here.machines.get(id)):
                self.could_not_start(name)
        here.seen_at.update(dict.fromkeys(fresh, now))
        here.seen_at = {id: one.launched_at for id, one in lately.items()} | here.seen_at
        here.machines = lately | _missed(here, fresh, now) | fresh
        here.seen_at = {id: at for id, at in here.seen_at.items() if id in here.machines}
        here.known, here.read_at = True, self._clocks.monotonic()
        here.kept_for = max(FRESH_SECONDS, COST_SHARE * (here.read_at - began))

    def _bought_lately(self, region: str, now: int) -> dict[str, Machine]:
        """Before this process began, and perhaps not described yet."""
        return {
            one.id: one
            for one in self._written.machines()
            if one.region == region and 0 <= now - one.launched_at < UNSEEN_SECONDS
        }

    def _described(self, region: str) -> list[Any]:
        mine = [{"Name": f"tag:{naming.SITE}", "Values": [self._site.id]}]
        try:
            found = pages(self._api, region, "describe_instances", key="Reservations", Filters=mine)
            return [instance for one in found for instance in one["Instances"]]
        except AwsError as error:
            kind = ShutError if meaning(error.code) == REGION_SHUT else NoAnswerError
            raise kind(f"what runs in {region} is not known: {error}") from error


def _unheard(_region: str) -> None:
    """Nobody wants to know."""


def _is_broken(machine: Machine | None) -> bool:
    """Whether it was taken on, and its image, snapshot or key turned out to be gone."""
    late = machine.unstarted if machine else None
    return late is not None and (late.refusal, late.width) == STALE


def _carried(machine: Machine, here: _Region, now: int) -> Machine:
    """With what EC2 does not tell: since when it runs, when its end began, and if it ever ran."""
    before = here.machines.get(machine.id)
    if machine.state is MachineState.PENDING:
        return machine
    if machine.state is MachineState.RUNNING:
        return replace(machine, running_at=_running_at(machine, before, here))
    if machine.state in KEPT:
        stopped = machine.stopped_at or (before.stopped_at if before else None) or now
        return replace(machine, stopped_at=stopped)
    ended = machine.terminated_at or (before.terminated_at if before else None) or now
    if before is not None and before.state is MachineState.RUNNING:
        machine = replace(machine, unstarted=None)  # EC2 says the same of what broke later
        return replace(machine, terminated_at=ended, running_at=before.running_at)
    if before is None or machine.ended_by_provider:  # what could not be started tells so itself
        ran = _running_at(machine, before, here)
    else:  # one that was pending when last seen, and then on its way out, never ran
        ran = before.running_at
    return replace(machine, terminated_at=ended, running_at=ran)


def _running_at(machine: Machine, before: Machine | None, here: _Region) -> int | None:
    """Billing begins at running, of which EC2 tells no instant: after it was last seen pending."""
    if before is None or machine.running_at is None or before.state in KEPT:
        return machine.running_at
    if before.state is MachineState.PENDING:
        return max(machine.running_at, here.seen_at.get(machine.id, 0))
    return before.running_at


def _missed(here: _Region, fresh: dict[str, Machine], now: int) -> dict[str, Machine]:
    """Those that were known and are not described now: a describe may lag behind."""
    return {
        id: machine
        for id, machine in here.machines.items()
        if id not in fresh and now - here.seen_at.get(id, now) < _patience(machine)
    }


def _patience(machine: Machine) -> int:
    return LISTED_SECONDS if machine.state is MachineState.TERMINATED else UNSEEN_SECONDS
