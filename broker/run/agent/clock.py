"""The moments of a step's life, its warning and its end, also when limits are changed."""

import time

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Protocol

    from .loop import Loop
    from .spool import Place

    class Watched(Protocol):
        """What is asked of a step's supervisor."""

        step: dict[str, Any]
        loop: Loop
        started: Optional[float]
        cause: str
        outcome: Optional[tuple[int, int]]

        def is_batch(self) -> bool: ...
        def out_of_time(self) -> None: ...
        def signal(self, number: int, scope: str) -> None: ...


class Clock:
    """Of one step: `time_limit` counts from its start, `job_ends` is an instant."""

    def __init__(self, one: "Watched") -> None:
        self.one = one
        self.step = one.step
        self.warned = False
        self.paused_at = None  # type: Optional[float]
        self.heard = {}  # type: dict[bool, int]
        self.steady = time.time() - time.monotonic()

    def now(self) -> float:
        """As this node's clock went when the step came: where it jumps later nothing changes."""
        return self.steady + time.monotonic()

    def set(self) -> None:
        """Sets the moments of a step that has begun, in place of those set before."""
        one = self.one
        if one.started is None:
            return  # they are set when it begins
        one.loop.forget("limit", "warn")
        if one.cause or one.outcome is not None or self.paused_at is not None:
            return
        limit = self.step.get("time_limit")
        if limit is not None:
            late = self.step.get("over_time", 0)
            one.loop.after("limit", self.until(one.started + limit + late), one.out_of_time)
        moment = self.warning()
        if moment is not None and not self.warned:
            one.loop.after("warn", self.until(moment), self.warn)

    def until(self, moment: float) -> float:
        return max(0.0, moment - self.now())

    def warning(self) -> "Optional[float]":
        """The instant of the warning, if there is one."""
        limit, ends = self.step.get("time_limit"), self.step.get("job_ends")
        asked = self.step.get("warn")
        if limit is not None and (ends is None or (asked and asked.get("own"))):
            own = (self.one.started or self.now()) + limit
            ends = own if ends is None else min(own, ends)
        return ends - asked["before"] if asked and ends is not None else None

    def warn(self) -> None:
        asked, self.warned = self.step["warn"], True
        self.one.signal(asked["signal"], "batch" if asked.get("batch") else "steps")

    def obey(self, order: "dict[str, Any]") -> None:
        """Another limit; an order that was overtaken on its way changes nothing."""
        whole = order["whole"]
        if order["serial"] <= self.heard.get(whole, -1):
            return
        self.heard[whole] = order["serial"]
        if not whole:
            self.step["time_limit"] = order["time_limit"]
        else:
            self.pause(order["paused"])
            left = order["job_left"]
            if self.one.is_batch():
                self.step["time_limit"] = order["time_limit"]
            else:
                self.step["job_ends"] = None if left is None else self.now() + left
        self.warned = self.warned and (self.warning() or 0) <= self.now()
        self.set()

    def pause(self, paused: bool) -> None:
        """Time that the job is suspended does not count for limits of its steps either."""
        if paused:
            self.paused_at = self.paused_at or self.now()
        elif self.paused_at is not None:
            limit = self.step.get("time_limit")
            if limit is not None:  # the batch step's is told anew, with this time in it
                self.step["time_limit"] = limit + self.now() - self.paused_at
            self.paused_at = None


CLOSE = 5
"""Seconds by which this node's clock and the service's may differ and count as the same."""


class Told:
    """Instants for the journal: from what the service said last, by a clock that never jumps."""

    def __init__(self) -> None:
        self.since = None  # type: Optional[float]

    def hear(self, request: "dict[str, Any]") -> None:
        """A request may bear the service's time, which took a while to come here."""
        now = request.get("now")
        if now is not None:
            own = time.time()
            self.since = (own if abs(own - now) <= CLOSE else now) - time.monotonic()

    def now(self) -> float:
        return time.time() if self.since is None else self.since + time.monotonic()


def tell(live: "dict[str, Place]", request: "dict[str, Any]") -> "dict[str, Any]":
    """Passes a limit on: of one step, by `key`, or of an attempt and all of its steps."""
    whole = "attempt" in request
    order = {
        "do": "limit",
        "whole": whole,
        "serial": int(request["serial"]),
        "time_limit": _seconds(request["time_limit"]),
        "job_left": _left(_seconds(request.get("job_ends")), request.get("now")),
        "paused": bool(request.get("paused")),
    }
    return {"ok": True, "steps": pass_on(live, request["attempt" if whole else "key"], order)}


def notify(live: "dict[str, Place]", request: "dict[str, Any]") -> "dict[str, Any]":
    """A text for the standard error of an attempt's batch step."""
    order = {"do": "notify", "serial": int(request["serial"]), "text": str(request["text"])}
    return {"ok": True, "steps": pass_on(live, request["attempt"] + "/batch", order)}


def pass_on(live: "dict[str, Place]", wanted: str, order: "dict[str, Any]") -> "list[str]":
    """Gives an order to the steps of a key or attempt, and says to which."""
    places = [place for place in live.values() if wanted in {place.key, place.attempt}]
    for place in places:
        place.tell(wire.encode(order))
    return [place.key for place in places]


def ours(moment: "Optional[float]", now: "Optional[float]") -> "Optional[float]":
    """An instant of the service's as this node's clock will show it; `now` is the service's."""
    return moment if moment is None or now is None else moment + time.time() - now


def _left(moment: "Optional[float]", now: "Optional[float]") -> "Optional[float]":
    """Seconds until an instant of the service's."""
    return None if moment is None else moment - (time.time() if now is None else now)


def _seconds(value: "Any") -> "Optional[float]":
    return None if value is None else float(value)
