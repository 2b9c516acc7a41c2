"""Pieces of files as they travel: none needs more memory than it may."""

import io
import zlib

import pytest

from broker.run.agent.packed import PACKED, PIECE, Stream
from broker.stage.pieces import unpacked


@pytest.mark.parametrize(
    ("data", "most"),
    [(zlib.compress(bytes(1001)), 1000), (zlib.compress(bytes(1000))[:-1], 1000)],
)
def test_what_would_be_too_much_or_is_cut_off_is_not_unpacked(data: bytes, most: int) -> None:
    with pytest.raises(ValueError, match="bytes are cut off, or more than 1000 unpacked"):
        unpacked(data, most)


def test_what_is_whole_and_fits_is_unpacked() -> None:
    assert unpacked(zlib.compress(b"x" * 1000), 1000) == b"x" * 1000


def test_much_of_nothing_is_unpacked_as_it_is_taken() -> None:
    size = 32 * PIECE
    packed = PACKED + zlib.compress(b"line\n" + bytes(size) + b"end")
    stream = Stream(io.BytesIO(packed))
    assert stream.line() == b"line\n"
    assert len(stream.source.data) <= 2 * PIECE  # type: ignore[union-attr]
    assert stream.take(size) == bytes(size)
    assert stream.take(10) == b"end"
    assert stream.line() == b""
