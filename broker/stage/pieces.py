"""Pieces of files as they travel: the stream that `carry pack` writes and `carry unpack` reads.

Pure.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from broker.stage.plan import Piece

PLAIN = b"-"
"""How a stream begins that is not compressed."""
MOST_UNPACKED = 256 << 20
"""Bytes: what a node sends is small until it is unpacked."""


def header(piece: Piece, tag: str) -> dict[str, Any]:
    """What is asked of `pack`, and stands before the bytes in the stream.

    An agent with steps stays as it is when the service is renewed: what earlier ones read keeps
    its form, and what they do not know stands in keys of its own.
    """
    entry, over = piece.move.entry, piece.move.over
    return {
        "path": piece.move.path,
        "kind": entry.kind,
        "size": entry.size,
        "mtime": entry.mtime,
        "mode": entry.mode,
        "target": entry.target,
        "offset": piece.offset,
        "length": piece.length,
        "expect": None if over is None else list(over[:3]),
        "expect_target": None if over is None else over.target,
        "same": piece.move.same,
        "tag": tag,
    }


def asked(pieces: Iterable[Piece], tag: str) -> bytes:
    """What `pack` is asked for these."""
    return json.dumps([header(piece, tag) for piece in pieces]).encode("ascii")


def written(pieces: Iterable[tuple[dict[str, Any], bytes]]) -> bytes:
    """Headers with their bytes as one stream."""
    stream = bytearray(PLAIN)
    for head, data in pieces:
        stream += json.dumps(head).encode("ascii") + b"\n" + data
    return bytes(stream)


def unpacked(data: bytes | memoryview, most: int = MOST_UNPACKED) -> bytes:
    """Raises ValueError for what is more than that, zlib.error where it makes no sense."""
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(data, most)
    if not unpacker.eof:
        raise ValueError(f"{len(data)} bytes are cut off, or more than {most} unpacked")
    return found


def read(stream: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Headers with their bytes. Raises ValueError or zlib.error where it makes no sense."""
    if not stream:
        return
    packed = stream[:1] != PLAIN
    data = unpacked(memoryview(stream)[1:]) if packed else stream
    at = 0 if packed else 1
    while at < len(data):
        end = data.index(b"\n", at)
        head = json.loads(data[at:end])
        at = end + 1 + head["length"]
        yield head, data[end + 1 : at]
