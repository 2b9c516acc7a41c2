"""What a supervisor waits for: descriptors that are watched, moments that come."""

import selectors
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional


class Loop:
    """Calls back; a descriptor is watched for reading or for writing, not for both."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.due = {}  # type: dict[str, tuple[float, Callable[[], object]]]

    def watch(self, fd: int, act: "Callable[[], object]", write: bool = False) -> None:
        """Watching again what is watched changes what is done."""
        event = selectors.EVENT_WRITE if write else selectors.EVENT_READ
        if fd in self.selector.get_map():
            self.selector.modify(fd, event, act)
        else:
            self.selector.register(fd, event, act)

    def ignore(self, fd: int) -> None:
        if fd in self.selector.get_map():
            self.selector.unregister(fd)

    def after(self, name: str, seconds: float, act: "Callable[[], object]") -> None:
        """Sets a moment; an earlier one of the same name stays."""
        at = time.monotonic() + seconds
        if name not in self.due or at < self.due[name][0]:
            self.due[name] = (at, act)

    def forget(self, *names: str) -> None:
        for name in names:
            self.due.pop(name, None)

    def fire_due(self) -> None:
        now = time.monotonic()
        for name in sorted(self.due, key=lambda name: self.due[name][0]):
            at, act = self.due.get(name, (now + 1, None))
            if at <= now and act is not None:
                del self.due[name]
                act()

    def turn(self) -> None:
        """Waits for the first descriptor or moment, and serves what is ready."""
        for key, _events in self.selector.select(self._patience()):
            if key.fd in self.selector.get_map():  # what was done before may have closed it
                key.data()

    def _patience(self) -> "Optional[float]":
        if not self.due:
            return None
        return max(0.0, min(at for at, _act in self.due.values()) - time.monotonic())
