"""Many connections over one stream of bytes: frames, and how much may be under way of each."""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

HEAD = struct.Struct(">IcI")
"""Number of the connection, kind, length of the payload."""
OPEN, DATA, END, GONE, TAKEN, PING = b"o", b"d", b"e", b"g", b"t", b"p"
"""A new connection; bytes of it; no more will come from here; it is over; so many bytes were passed
on, as text; a sign of life, which the node answers alike."""
PIECE = 1 << 16
"""Longest payload."""
WINDOW = 4 * PIECE
"""Bytes of one connection that may be under way: who reads slowly holds up nobody else."""
SILENCE = 60.0
"""Seconds without a sign of life after which the stream is given up."""


class BrokenError(Exception):
    """What comes is no stream of frames."""


def pack(number: int, kind: bytes, payload: bytes = b"") -> bytes:
    return HEAD.pack(number, kind, len(payload)) + payload


class Frames:
    """Takes bytes as they come, gives frames as they are whole."""

    def __init__(self) -> None:
        self.waiting = bytearray()

    def feed(self, data: bytes) -> "Iterator[tuple[int, bytes, bytes]]":
        """Raises BrokenError."""
        self.waiting += data
        while len(self.waiting) >= HEAD.size:
            number, kind, size = HEAD.unpack_from(self.waiting)
            if size > PIECE:
                raise BrokenError("a frame of {} bytes".format(size))
            end = HEAD.size + size
            if len(self.waiting) < end:
                return
            payload = bytes(self.waiting[HEAD.size : end])
            del self.waiting[:end]
            yield number, kind, payload
