"""The door of interactive commands: frames both ways, ends, refusals, callers that leave."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker.model.errors import Unknown
from gateway.api import stream
from gateway.api.desk import Desk
from gateway.api.stream import Exec, Hello, Line, StreamDoor, Window
from gateway.api.text import Gone
from gateway.api.wire import Call, Given, Peer, frame
from sbatch_shim.grammar.errors import GrammarError
from tests.unit.gateway.api.office import Office, wait
from tests.unit.gateway.api.test_text import Log

Run = Callable[[Desk, Call, Line], Awaitable[int]]


def envelope(program: str = "srun") -> bytes:
    fields = [b"1", b"0" * 32, program.encode(), b"/tmp", b"22", b"", b"", b"1", b"true", b"0"]
    return b"\0".join(fields) + b"\0" + b"0\0"


class Exchange:
    """One request over the door, from the caller's side."""

    def __init__(
        self,
        run: Run,
        *parts: bytes,
        path: str = "/i/srun",
        leaves: bool = False,
        says_all: bool = False,
    ) -> None:
        self.log = Log()
        self.door = StreamDoor(Office().desk, {"srun": run}, self.log)
        self.parts = list(parts)
        self.scope = {"method": "POST", "path": path, "peer": Peer(2001, 2001), "headers": []}
        self.leaves = leaves
        self.says_all = says_all
        self.sent: list[dict[str, Any]] = []
        wait(self._whole())

    async def _whole(self) -> None:
        await self.door(self.scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if self.parts:
            return {"type": "http.request", "body": self.parts.pop(0), "more_body": True}
        if self.says_all:
            return {"type": "http.request", "body": b"", "more_body": False}
        if not self.leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


START = frame(b"E", envelope()) + frame(b"h", b"7.0@5\x003\x0030 100")


async def nothing(desk: Desk, call: Call, line: Line) -> int:
    return 3


def test_the_exit_status_ends_the_answer() -> None:
    done = Exchange(nothing, START)
    assert (done.status, done.body) == (200, frame(b"x", b"3"))


@pytest.mark.parametrize("part", [b"", b"E", START[:-1]])
def test_a_request_that_ends_too_early_is_told_so(part: bytes) -> None:
    done = Exchange(nothing, part, says_all=True)
    assert (done.status, done.body) == (400, b"request ends within its greeting")


def test_a_request_may_come_in_any_pieces() -> None:
    seen: list[tuple[tuple[str, ...], Hello]] = []

    async def run(desk: Desk, call: Call, line: Line) -> int:
        seen.append((call.argv, line.hello))
        return 0

    Exchange(run, *(START[place : place + 1] for place in range(len(START))))
    assert seen == [(("true",), Hello("7.0@5", 3, Window(30, 100)))]


def test_words_are_heard_in_order_and_files_between_them() -> None:
    async def run(desk: Desk, call: Call, line: Line) -> int:
        assert await line.file("a") == Given(b"x\0y", 0)
        first, second = await line.hear(), await line.hear()
        line.unhear([second])
        again = await line.hear()
        await line.out(first.payload + again.payload)
        return 0

    done = Exchange(
        run, START + frame(b"i", b"1") + frame(b"f", b"a\x000\x00x\0y") + frame(b"i", b"2")
    )
    assert done.body == frame(b"a", b"a") + frame(b"o", b"12") + frame(b"x", b"0")


def test_long_output_goes_in_pieces() -> None:
    async def run(desk: Desk, call: Call, line: Line) -> int:
        await line.err(b"x" * (stream.PIECE + 1))
        return 0

    done = Exchange(run, START)
    assert [len(message["body"]) for message in done.sent[1:]] == [stream.PIECE + 5, 6, 6]


async def grammar(desk: Desk, call: Call, line: Line) -> int:
    raise GrammarError("srun: fatal: No\n", 255)


async def house(desk: Desk, call: Call, line: Line) -> int:
    raise Unknown("no node", hint="look")


async def broken(desk: Desk, call: Call, line: Line) -> int:
    raise ZeroDivisionError


async def other(desk: Desk, call: Call, line: Line) -> int:
    raise Exec(("/usr/bin/srun", "-n1"))


# fmt: off
ENDS = [
    (grammar, frame(b"e", b"srun: fatal: No\n") + frame(b"x", b"255")),
    (house,   frame(b"e", b"srun: error: no node (look)\n") + frame(b"x", b"1")),
    (other,   frame(b"c", b"/usr/bin/srun\0-n1\0")),
]
# fmt: on


@pytest.mark.parametrize(("run", "body"), ENDS)
def test_a_program_may_end_otherwise(run: Run, body: bytes) -> None:
    assert Exchange(run, START).body == body


def test_what_nobody_foresaw_is_told_and_logged() -> None:
    done = Exchange(broken, START)
    assert b"internal error of the service" in done.body
    assert done.body.endswith(frame(b"x", b"1"))
    assert len(done.log.events) == 1


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ([frame(b"i", b"")], "/i/srun"),
        ([frame(b"E", envelope()) + frame(b"h", b"nonsense")], "/i/srun"),
        ([frame(b"E", envelope("salloc")) + frame(b"h", b"\x000\x00")], "/i/srun"),
        ([frame(b"E", envelope("nosuch")) + frame(b"h", b"\x000\x00")], "/i/nosuch"),
        ([b"E" + (1 << 31).to_bytes(4, "big")], "/i/srun"),
    ],
)
def test_what_is_no_request_is_refused_in_plain_text(parts: list[bytes], path: str) -> None:
    done = Exchange(nothing, *parts, path=path)
    assert done.status == 400
    assert done.body


def test_a_program_hears_that_its_caller_left() -> None:
    heard: list[str] = []

    async def run(desk: Desk, call: Call, line: Line) -> int:
        try:
            await line.hear()
        except Gone:
            heard.append("gone")
            raise
        return 0

    done = Exchange(run, START, leaves=True)
    assert heard == ["gone"]
    assert done.body == b""


def test_the_first_to_end_ends_the_others() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    async def quick() -> str:
        return "quick"

    async def whole() -> object:
        return await stream.first_of(slow(), quick())

    assert wait(whole()) == "quick"
    assert ended == ["slow"]
