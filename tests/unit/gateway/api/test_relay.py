"""What passes between a step's io file and its command."""

import json
from collections.abc import Sequence

import pytest

from broker.model.ids import NodeName
from broker.model.job import ExitCode
from broker.ports import Done, Place
from gateway.api.relay import EVERY, LAG, NOBODY, Gathered, Piece, Relay, Shown, pieces
from tests.unit.gateway.api.office import Office, wait

KEY = "7/1/0"


def frame(stream: bytes, rank: int, data: bytes) -> bytes:
    return stream + rank.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data


class Node:
    """The channel of a node whose io file grows by what is put into `content`."""

    def __init__(self) -> None:
        self.content = b""
        self.down = False
        self.asked: list[dict[str, object]] = []
        self.answers: list[dict[str, object]] = []

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        raise OSError

    def put(self, data: bytes, path: str, mode: int) -> None:
        raise OSError

    def read(self, path: str, offset: int) -> bytes:
        assert path == "/n/steps/7.1.0.io"
        if self.down:
            raise OSError("unreachable")
        return self.content[offset:]

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        assert path == "/n/agent.sock"
        if self.down:
            raise OSError("unreachable")
        self.asked.append(json.loads(request))
        answer = self.answers.pop(0) if self.answers else {"ok": True}
        return json.dumps(answer).encode() + b"\n"


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def relay(node: Node) -> Relay:
    return Relay(Office().desk, Place(node, "/n"), KEY, NodeName("ec2-1"))


def test_frames_are_taken_whole_and_half_a_frame_is_left() -> None:
    data = frame(b"o", 0, b"one") + frame(b"x", 1, b"\0\0\0\x05\0\0\0\x09")
    found, size = pieces(data + frame(b"e", 0, b"late")[:-1])
    assert size == len(data)
    assert found[0] == Piece(b"o", 0, b"one")
    assert found[1].exit() == ExitCode(5, 9)


# fmt: off
SHOWN = {
    "as it is":     (Shown(), [(b"o", b"a\nbc"), (b"e", b"d\n"), (b"e", b"note\n")]),
    "with numbers": (
        Shown(label=2),
        [(b"o", b" 0: a\n 1: b\n 1: c\n"), (b"e", b" 1: d\n"), (b"e", b"note\n")],
    ),
    "one's output": (Shown(out=0), [(b"o", b"a\n"), (b"e", b"d\n"), (b"e", b"note\n")]),
    "one's errors": (Shown(err=0), [(b"o", b"a\nbc"), (b"e", b"note\n")]),
}
# fmt: on


@pytest.mark.parametrize("what", SHOWN)
def test_output_is_shown_as_asked(what: str) -> None:
    shown, expected = SHOWN[what]
    found = [Piece(b"o", 0, b"a\n"), Piece(b"o", 1, b"b\nc" if shown.label else b"bc")]
    found += [Piece(b"e", 1, b"d\n"), Piece(b"x", 1, bytes(8)), Piece(b"e", NOBODY, b"note\n")]
    joined = [b"".join(data for _, data in shown.runs(found))]
    assert joined == [b"".join(data for _, data in expected)]


def test_a_step_that_is_over_is_read_to_its_end(node: Node, relay: Relay) -> None:
    async def whole() -> list[Piece]:
        node.content = frame(b"o", 0, b"one")
        seen: list[Piece] = []
        async for found in relay.follow(lambda: bool(seen)):
            if found and len(seen) == 0:
                node.content += frame(b"o", 0, b"two")
            seen.extend(found)
        return seen

    assert [piece.data for piece in wait(whole())] == [b"one", b"two"]
    assert relay.offset == len(node.content)


def test_a_ring_wakes_who_follows(node: Node, relay: Relay) -> None:
    async def whole() -> list[bytes]:
        seen: list[bytes] = []
        async for found in relay.follow(lambda: bool(seen)):
            seen.extend(piece.data for piece in found)
            if not seen:
                node.content = frame(b"o", 0, b"news")
                relay.desk.wake_io(KEY)
        return seen

    assert wait(whole()) == [b"news"]


def test_a_node_that_cannot_be_reached_is_waited_for(node: Node, relay: Relay) -> None:
    async def whole() -> list[bytes]:
        node.down, node.content = True, frame(b"o", 0, b"kept")
        seen: list[bytes] = []
        async for found in relay.follow(lambda: bool(seen)):
            seen.extend(piece.data for piece in found)
            node.down = False
        return seen

    assert wait(whole()) == [b"kept"]


def test_input_says_where_it_begins(node: Node, relay: Relay) -> None:
    node.answers = [{"ok": True, "size": 7}]
    assert wait(relay.give(b"ab", 5)) == 7
    assert node.asked[0] == {"do": "input", "key": KEY, "data": "YWI=", "at": 5, "eof": False}
    node.down = True
    assert wait(relay.give(b"ab", 7)) is None


def test_input_that_nobody_reads_any_more_stays_here(node: Node, relay: Relay) -> None:
    node.answers = [{"ok": True, "size": 2, "shut": True}]
    assert wait(relay.give(b"ab", 0)) == 2
    assert wait(relay.give(b"cdef", 2)) == 6
    assert len(node.asked) == 1
    other = Relay(relay.desk, relay.place, KEY, NodeName("ec2-2"))
    assert Gathered(relay.desk, KEY, [relay]).shut()
    assert not Gathered(relay.desk, KEY, [relay, other]).shut()


def test_the_node_is_told_now_and_then_what_was_read(node: Node, relay: Relay) -> None:
    relay.offset = EVERY
    wait(relay.note_read())
    assert node.asked == []
    relay.offset = EVERY + LAG
    wait(relay.note_read())
    wait(relay.note_read())
    assert node.asked == [{"do": "ack", "key": KEY, "at": EVERY}]


def test_the_text_of_all_nodes_comes_together_and_input_goes_to_all() -> None:
    desk, nodes = Office().desk, [Node(), Node()]
    each = [
        Relay(desk, Place(node, "/n"), KEY, NodeName(f"ec2-{number}"))
        for number, node in enumerate(nodes, start=1)
    ]
    gathered = Gathered(desk, KEY, each)
    nodes[0].content, nodes[1].content = frame(b"o", 0, b"one"), frame(b"o", 1, b"other")

    async def whole() -> list[bytes]:
        seen: list[bytes] = []
        async for found in gathered.follow(lambda: bool(seen)):
            seen.extend(piece.data for piece in found)
        return seen

    assert wait(whole()) == [b"one", b"other"]
    assert gathered.offsets() == f"{len(nodes[0].content)},{len(nodes[1].content)}"
    nodes[0].answers, nodes[1].answers = [{"ok": True, "size": 9}], [{"ok": True, "size": 5}]
    assert wait(gathered.give(b"abcd", 5)) == 5, "what the slowest has is said again to all"
    nodes[1].down = True
    assert wait(gathered.give(b"abcd", 5)) is None
