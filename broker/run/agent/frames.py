"""The io file of a step: what its tasks wrote, in frames, only ever added to.

A frame is one byte for the stream, the task's rank and a length (both 4 bytes, the most
significant first), then the bytes. What was acknowledged is given back to the disk.
"""

import ctypes
import os
import struct
import time

from . import trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = struct.Struct(">cII")
OUT, ERR, END, UNOPENED = b"o", b"e", b"x", b"n"
CODES = struct.Struct(">ii")
"""Payload of an END frame: exit code and signal of a task; of an UNOPENED one: stream, errno."""
AHEAD = 64 << 20
"""Bytes not acknowledged beyond which nothing more is read from tasks, once any were."""
PUNCH = 0x02 | 0x01
"""FALLOC_FL_PUNCH_HOLE, FALLOC_FL_KEEP_SIZE."""


def give_back(fd: int, end: int) -> None:
    """Frees the room on disk of all before `end`; offsets stay. Does nothing where it cannot."""
    try:
        call = ctypes.CDLL(None).fallocate64
    except (OSError, AttributeError):
        return
    call(fd, PUNCH, ctypes.c_int64(0), ctypes.c_int64(end))


class Frames:
    """The file; `told` is called when it has grown."""

    def __init__(self, path: str, told: "Callable[[], None]") -> None:
        self.told = told
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self.size = 0
        self.acknowledged = None  # type: int | None
        self.waiting = b""
        """Frames that a full disk did not take yet."""

    def write(self, stream: bytes, rank: int, data: bytes) -> None:
        self.waiting += FRAME.pack(stream, rank, len(data)) + data
        self.push()

    def push(self) -> bool:
        """Frames to the file, in order; False while the disk is full."""
        try:
            while self.waiting:
                done = os.write(self.fd, self.waiting)
                self.waiting = self.waiting[done:]
                self.size += done
        except OSError:
            trouble.tell()
        self.told()
        return not self.waiting

    def acknowledge(self, at: int) -> None:
        """All before this offset was read by who follows: its room is free again."""
        at = min(at, self.size)
        if at > (self.acknowledged or 0):
            give_back(self.fd, at)
        self.acknowledged = max(at, self.acknowledged or 0)

    def choked(self) -> bool:
        """Whether a full disk, or a reader far behind, has to hold the tasks up as a pipe would."""
        behind = self.acknowledged is not None and self.size - self.acknowledged > AHEAD
        return bool(self.waiting) or behind

    def finish(self) -> None:
        """A full disk only delays the end."""
        while not self.push():
            time.sleep(1)
