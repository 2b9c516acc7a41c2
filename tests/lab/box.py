"""One cloud: what it sells, what is refused, what runs; the time is passed in."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.lab.machines import Delays, Machines
from tests.lab.stock import Stock
from tests.lab.tokens import Tokens
from tests.lab.wares import Wares
from tests.lab.weather import Weather


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it went; instants in seconds."""

    at: float
    took: float
    service: str
    action: str
    region: str
    outcome: str
    """`ok`, the error's code, or `lost`."""


@dataclass(slots=True)
class Box:
    clock: Callable[[], float]
    machines: Machines
    wares: Wares
    stock: Stock
    weather: Weather = field(default_factory=Weather)
    tokens: Tokens = field(default_factory=Tokens)
    groups: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Placement groups by region and name."""
    calls: list[Call] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    luck: random.Random = field(default_factory=random.Random)

    @property
    def delays(self) -> Delays:
        return self.machines.delays

    def now(self) -> float:
        return self.clock()
