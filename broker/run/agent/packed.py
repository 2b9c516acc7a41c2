"""Files on their way: made smaller where that helps, taken apart as they come."""

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

FAST = 1
"""zlib's level."""
PACKED, PLAIN = b"z", b"-"
"""How a stream begins: the network is slow, but what is packed already is not packed again."""
SAMPLE = 1 << 16
PIECE = 1 << 20
LONGEST_LINE = 1 << 20
MOST_TAKEN = 32 << 20
"""Bytes, several times what an honest piece has: who sends it says how much it is."""


class Packer:
    """Makes a stream smaller, unless its beginning shows that this takes time only."""

    def __init__(self, sample: bytes) -> None:
        sample = sample[:SAMPLE]
        small = len(zlib.compress(sample, FAST)) * 10 < 9 * len(sample)
        self.mark = PACKED if small or not sample else PLAIN
        self.packer = zlib.compressobj(FAST)

    def pack(self, data: bytes) -> bytes:
        return self.packer.compress(data) if self.mark == PACKED else data

    def end(self) -> bytes:
        return self.packer.flush() if self.mark == PACKED else b""


class Stream:
    """What is packed, as it comes."""

    def __init__(self, source: "BinaryIO") -> None:
        packed = source.read(1) == PACKED
        self.source = Unpacked(source) if packed else source  # type: Unpacked | BinaryIO

    def line(self) -> bytes:
        """Empty at the end. Of one that is too long no more than its beginning."""
        return self.source.readline(LONGEST_LINE)

    def take(self, size: int) -> bytes:
        """Less only where the stream ends before. Raises ValueError for what no piece has."""
        if not 0 <= size <= MOST_TAKEN:
            raise ValueError("a piece of {} bytes".format(size))
        return self.source.read(size)


class Unpacked:
    """A packed stream, read as a file is."""

    def __init__(self, source: "BinaryIO") -> None:
        self.source = source
        self.unpacker = zlib.decompressobj()
        self.data = bytearray()

    def readline(self, most: int) -> bytes:
        """Empty at the end; no more than so many bytes."""
        at = self.data.find(b"\n", 0, most)
        while at < 0 and len(self.data) < most and self._more():
            at = self.data.find(b"\n", 0, most)
        return self.read(most if at < 0 and len(self.data) >= most else at + 1)

    def read(self, size: int) -> bytes:
        """Less only where the stream ends before."""
        while len(self.data) < size and self._more():
            pass
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def _more(self) -> bool:
        """A little at a time: holes of a file are nothing until they are unpacked."""
        packed = self.unpacker.unconsumed_tail or self.source.read(PIECE)
        self.data += self.unpacker.decompress(packed, PIECE) if packed else self.unpacker.flush()
        return bool(packed)
