"""Frames of many connections over one stream."""

import pytest

from broker.run.agent.mux import DATA, HEAD, OPEN, PIECE, PING, BrokenError, Frames, pack

SAID = [(1, OPEN, b""), (1, DATA, b"\0" * 300), (2**32 - 1, DATA, b"x" * PIECE), (0, PING, b"")]


@pytest.mark.parametrize("cut", [1, 7, 9, 1000, 10**6])
def test_frames_are_whole_however_they_come(cut: int) -> None:
    stream = b"".join(pack(*frame) for frame in SAID)
    frames = Frames()
    parts = (stream[at : at + cut] for at in range(0, len(stream), cut))
    assert [frame for part in parts for frame in frames.feed(part)] == SAID


def test_a_frame_that_is_too_long_is_no_frame() -> None:
    with pytest.raises(BrokenError):
        list(Frames().feed(HEAD.pack(1, DATA, PIECE + 1)))
