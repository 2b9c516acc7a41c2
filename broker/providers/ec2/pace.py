"""How often EC2 is asked: what it admits of each action in a region, shared by everybody who asks.

EC2 counts by token buckets whose sizes differ from account to account: these begin with what AWS
publishes, give way when a call is throttled, and come back by and by.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.providers.ec2.clients import Api, Reply
from broker.providers.ec2.errors import THROTTLES, AwsError, NoAnswerError

MOST_SECONDS = 2.0
"""Who would have to wait longer is sent away: others need the thread meanwhile."""
SLOWEST = 0.1
"""Of the published rate at least so much is used, however often calls are throttled."""
RECOVERY = 0.05
"""Of the published rate so much is won back by each call that works."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls at once, and calls a second after them; or machines that calls are about."""

    burst: float
    per_second: float


READS = Rate(100, 20)
CHANGES = Rate(50, 5)
RATES: Mapping[str, Rate] = {
    "run_instances": Rate(5, 2),
    "terminate_instances": Rate(100, 5),
    "create_launch_template": Rate(100, 5),
}
"""As AWS publishes them, of actions that differ from the others of their sort."""


@dataclass(frozen=True, slots=True)
class Counted:
    """EC2 admits so many machines of an action, beside so many calls of it."""

    rate: Rate
    count: Callable[[Mapping[str, Any]], int]
    """Of how many machines a call with these parameters is."""


MACHINES: Mapping[str, Counted] = {
    "run_instances": Counted(Rate(1000, 2), lambda params: int(params["MaxCount"])),
    "terminate_instances": Counted(Rate(1000, 20), lambda params: len(params["InstanceIds"])),
}
"""The second bucket of actions that have one, as AWS publishes them."""


def rate_of(action: str) -> Rate:
    """What is admitted of an action in one region."""
    usual = READS if action.startswith(("describe_", "get_")) else CHANGES
    return RATES.get(action, usual)


@dataclass(slots=True, eq=False)
class _Bucket:
    rate: Rate
    tokens: float
    per_second: float
    at: float

    def wait(self, count: int, now: float) -> float:
        """Seconds until so many are admitted; more than it can ever hold when it is full."""
        grown = self.tokens + (now - self.at) * self.per_second
        self.tokens, self.at = min(self.rate.burst, grown), now
        return max(0.0, (min(count, self.rate.burst) - self.tokens) / self.per_second)

    @property
    def level(self) -> float:
        """How full it is."""
        return self.tokens / self.rate.burst

    def throttled(self) -> None:
        self.tokens = min(self.tokens, 0.0)
        self.per_second = max(self.per_second / 2, SLOWEST * self.rate.per_second)

    def worked(self) -> None:
        usual = self.rate.per_second
        self.per_second = min(usual, self.per_second + RECOVERY * usual)


@dataclass(slots=True)
class Paced:
    """`Api` that asks EC2 no more often than it admits; `clock` never jumps, `pause` waits."""

    api: Api
    clock: Callable[[], float]
    pause: Callable[[float], None]
    _buckets: dict[tuple[str, str, Rate], _Bucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        """Also raises NoAnswerError for a call that would have to wait long: it was not made."""
        if service != "ec2":
            return self.api.call(service, region, operation, **params)
        taken = self._admit(region, operation, params)
        try:
            reply = self.api.call(service, region, operation, **params)
        except AwsError as error:
            if error.code in THROTTLES:  # EC2 does not tell which of the buckets was empty
                with self._lock:
                    min(taken, key=lambda bucket: bucket.level).throttled()
            raise
        with self._lock:
            for bucket in taken:
                bucket.worked()
        return reply

    def _admit(self, region: str, action: str, params: Mapping[str, Any]) -> Iterable[_Bucket]:
        """The buckets that the call takes from, once it may be made. Raises NoAnswerError."""
        now, counts = self.clock(), [(rate_of(action), 1)]
        if action in MACHINES:
            counts.append((MACHINES[action].rate, MACHINES[action].count(params)))
        with self._lock:
            taken = {self._bucket(region, action, rate, now=now): n for rate, n in counts}
            wait = max(bucket.wait(count, now) for bucket, count in taken.items())
            if wait <= MOST_SECONDS:
                for bucket, count in taken.items():
                    bucket.tokens -= count
        if wait > MOST_SECONDS:
            raise NoAnswerError(f"{action} in {region}: {wait:.1f} s until EC2 admits it")
        if wait:
            self.pause(wait)
        return taken

    def _bucket(self, region: str, action: str, rate: Rate, *, now: float) -> _Bucket:
        fresh = _Bucket(rate, rate.burst, rate.per_second, now)
        return self._buckets.setdefault((region, action, rate), fresh)
