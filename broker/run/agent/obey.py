"""What the agent tells the supervisor of a step while that lives, and how it is done."""

import signal
import time

from . import wire, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, Protocol

    from .clock import Clock
    from .left import Left
    from .loop import Loop
    from .streams import Streams

    class Told(Protocol):
        """The supervisor."""

        loop: Loop
        clock: Clock
        streams: Optional[Streams]
        noticed: int
        left: Left

        def take_turn(self) -> None: ...
        def signal(self, number: int, scope: str) -> None: ...
        def end(self, cause: str, grace: float, number: int) -> None: ...
        def write(self, line: bytes) -> None: ...


def order(one: "Told", told: "dict[str, Any]") -> None:
    """A newer agent's that is not known must not end us."""
    act = ORDERS.get(told["do"])
    if act is not None:
        act(one, told)


def _kill(one: "Told", told: "dict[str, Any]") -> None:
    cause, grace = told["cause"], told["grace"]
    number = told.get("signal", int(signal.SIGTERM))
    if told.get("whole"):
        one.left.ends = True
    elif one.left.alone:
        return  # the step is over
    one.loop.after("kill", words.PAUSES.get(cause, 0), lambda: one.end(cause, grace, number))


def _input(one: "Told", _told: "dict[str, Any]") -> None:
    if one.streams is not None:
        one.streams.feed.turn()


def _window(one: "Told", told: "dict[str, Any]") -> None:
    if one.streams is not None:
        one.streams.resize(told["rows"], told["cols"])


def _ack(one: "Told", told: "dict[str, Any]") -> None:
    if one.streams is not None:
        one.streams.acknowledge(told["at"])


def _notify(one: "Told", told: "dict[str, Any]") -> None:
    """`scontrol notify`; one that is told again is not written again."""
    if told["serial"] > one.noticed:
        one.noticed = told["serial"]
        one.write(words.error(wire.text(told["text"]), time.time()))


ORDERS: "dict[str, Callable[[Told, dict[str, Any]], None]]" = {
    "turn": lambda one, _told: one.take_turn(),
    "kill": _kill,
    "signal": lambda one, told: one.signal(told["signal"], told["scope"]),
    "input": _input,
    "window": _window,
    "ack": _ack,
    "limit": lambda one, told: one.clock.obey(told),
    "notify": _notify,
}
