"""How many steps may run at once on this host, whatever the number of agents."""

import os
import random
import time

from . import spool, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .order import Order

LOOK_AGAIN = 2.0
"""Seconds until a step that waits looks by itself, should a wake-up get lost."""


class Slots:
    """One of `count` locked files in `folder`; those that wait are woken oldest first."""

    def __init__(self, folder: str, count: int, door: str) -> None:
        os.makedirs(folder, 0o700, exist_ok=True)
        self.folder = folder
        self.count = count
        self.door = door
        """The FIFO on which this step hears that a slot is free."""
        self.held = None  # type: Optional[int]
        self.place = os.path.join(
            folder, "waiting", "{:020d}-{}".format(int(time.time() * 1e9), os.getpid())
        )

    def take(self) -> bool:
        """Whether this step has a slot now; if not, it stands in the queue."""
        if self.held is None:
            self.held = self._any_free()
        if self.held is None:
            self._queue()
            self.held = self._any_free()  # one may have come free just before
        if self.held is not None:
            self._leave_queue()
        return self.held is not None

    def again(self) -> float:
        """Seconds until it should look by itself."""
        return LOOK_AGAIN * (0.75 + random.random() / 2)

    def release(self) -> None:
        """Gives the slot back, or leaves the queue, and wakes the next."""
        self._leave_queue()
        if self.held is not None:
            os.close(self.held)
            self.held = None
            self._wake_oldest()

    def _any_free(self) -> "Optional[int]":
        for number in range(self.count):
            path = os.path.join(self.folder, str(number))
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if spool.lock(fd):
                return fd
            os.close(fd)
        return None

    def _queue(self) -> None:
        os.makedirs(os.path.dirname(self.place), 0o700, exist_ok=True)
        if not os.path.lexists(self.place):
            os.symlink(self.door, self.place)

    def _leave_queue(self) -> None:
        try:
            os.unlink(self.place)
        except FileNotFoundError:
            return

    def _wake_oldest(self) -> None:
        waiting = os.path.join(self.folder, "waiting")
        names = sorted(os.listdir(waiting)) if os.path.isdir(waiting) else []
        for name in names:
            if _wake(os.path.join(waiting, name)):
                return


def _wake(place: str) -> bool:
    try:
        door = os.readlink(place)
        os.unlink(place)
        fd = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False  # it is gone; the next one then
    try:
        os.write(fd, wire.encode({"do": "turn"}))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def of(order: "Order") -> "Optional[Slots]":
    """None for a step whose job has its room already."""
    if order.slot_count <= 0 or order.step.get("hold") or order.step.get("in_batch"):
        return None
    return Slots(order.slot_folder, order.slot_count, order.file("orders"))
