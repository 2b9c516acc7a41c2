"""Pieces of files as they travel: none needs more memory than it may."""

import io
import zlib

import pytest

from broker.run.agent.packed import PACKED, PIECE, Stream
from broker.stage.pieces import header, unpacked
from broker.stage.plan import Entry, Move, Piece


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


def test_agents_of_before_find_what_they_read_as_it_was() -> None:
    """They stay as long as steps run there; of a mode alone they make nothing."""
    new, old = Entry("l", 0, 0, 0, "b"), Entry("l", 0, 0, 0, "a")
    told = header(Piece(Move("x", new, old), 0, 0), "7")
    assert (told["kind"], told["expect"], told["target"]) == ("l", ["l", 0, 0], "b")
    assert told["expect_target"] == "a"
    shut = Entry("f", 9, 5, 0o600, None)
    told = header(Piece(Move("x", shut, shut._replace(mode=0o644), same=True), 0, 0), "7")
    assert (told["kind"], told["length"], told["expect"]) == ("f", 0, ["f", 9, 5])
