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
        """Empty at the end."""
        return self.source.readline()

    def take(self, size: int) -> bytes:
        """Less only where the stream ends before."""
        return self.source.read(size)


class Unpacked:
    """A packed stream, read as a file is."""

    def __init__(self, source: "BinaryIO") -> None:
        self.source = source
        self.unpacker = zlib.decompressobj()
        self.data = bytearray()

    def readline(self) -> bytes:
        """Empty at the end."""
        at = self.data.find(b"\n")
        while at < 0 and self._more():
            at = self.data.find(b"\n")
        return self.read(at + 1)

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
