"""The short way of a command's request, and what is handed over instead."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from gateway.api.crowd import Crowd
from gateway.api.heads import BARE
from gateway.api.knock import LONGEST, Knock, knocking

BODY = b"1\0body"
SHORT = b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
ANSWER = b"HTTP/1.0 200 OK\r\nx: y\r\n\r\nxdone"


OPENED: list[socket.socket] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Wire:
    """A transport that keeps what is written; its socket is a real one, of this process."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        OPENED.extend((self.ours, theirs))
        self.written = b""
        self.closed = False
        self.protocol: Any = None

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self.ours if name == "socket" else default

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class App:
    """Answers `done`; keeps what it was asked, and whether the client left."""

    def __init__(self, answer: Callable[..., Any] | None = None) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.scope: dict[str, Any] = {}
        self.answer = answer

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.scope = scope
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.asked.append((scope["path"], body))
        if self.answer is not None:
            await self.answer(receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b"xdone"})


class Door:
    """A connection to the protocol under test."""

    def __init__(self, app: App, crowd: Crowd | None = None) -> None:
        self.wire = Wire()
        self.state = ServerState()
        config = Config(app, **BARE)
        config.load()
        make = knocking(crowd or Crowd(9))
        self.knock = make(config=config, server_state=self.state, app_state={})
        self.knock.connection_made(self.wire)  # type: ignore[arg-type]

    def says(self, *pieces: bytes) -> None:
        for piece in pieces:
            (self.wire.protocol or self.knock).data_received(piece)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def run(work: Any) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("cut", [*range(1, len(SHORT)), len(SHORT)])
def test_a_commands_request_is_answered_wherever_it_is_cut(cut: int) -> None:
    async def work() -> None:
        app = App()
        door = Door(app)
        door.says(SHORT[:cut], SHORT[cut:])
        await settled()
        assert app.asked == [("/x/sbatch", BODY)]
        assert app.scope["peer"].pid > 0
        assert (door.wire.written, door.wire.closed) == (ANSWER, True)
        assert not door.state.tasks
        assert door.wire.protocol is None

    run(work())


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /x/sbatch HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n" + BODY,
        b"POST /x/sbatch HTTP/1.0\r\ncontent-length: 6\r\n\r\n" + BODY,
        b"POST /x/%s HTTP/1.0\r\nContent-Length: 6\r\n\r\n" % (b"a" * 90) + BODY,
        b"POST /i/srun HTTP/1.0\r\nContent-Length: 6\r\n\r\n" + BODY,
        b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (LONGEST + 1)
        + bytes(LONGEST + 1),
    ],
)
def test_anything_else_is_uvicorns_from_its_first_byte(request_: bytes) -> None:
    async def work() -> None:
        app = App()
        door = Door(app)
        half = len(request_) // 2
        door.says(request_[:3], request_[3:half], request_[half:])
        await settled()
        assert [path for path, _ in app.asked] == [request_.split()[1].decode()]
        assert door.wire.written.startswith(b"HTTP/1.1 200 OK")
        assert isinstance(door.wire.protocol, asyncio.Protocol)

    run(work())


def test_a_user_with_too_many_connections_is_closed_out_and_let_in_when_one_is_over() -> None:
    async def work() -> None:
        crowd = Crowd(1)
        first = Door(App(), crowd)
        second = Door(App(), crowd)
        assert (first.wire.closed, second.wire.closed) == (False, True)
        first.knock.connection_lost(None)
        assert not Door(App(), crowd).wire.closed

    run(work())


def test_what_is_handed_over_counts_once() -> None:
    async def work() -> None:
        crowd = Crowd(1)
        door = Door(App(), crowd)
        door.says(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        await settled()
        assert crowd.count and set(crowd.count.values()) == {1}
        door.wire.protocol.connection_lost(None)
        assert not crowd.count

    run(work())


def test_the_application_hears_that_the_client_left() -> None:
    heard: list[str] = []

    async def wait(receive: Any, send: Any) -> None:
        heard.append((await receive())["type"])

    async def work() -> None:
        door = Door(App(wait))
        door.says(SHORT)
        await settled()
        assert heard == []
        door.knock.connection_lost(None)
        await settled()
        assert heard == ["http.disconnect"]

    run(work())


def test_an_answer_in_parts_leaves_as_it_is_made() -> None:
    gate = asyncio.Event()

    async def parts(receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await gate.wait()
        await send({"type": "http.response.body", "body": b"two"})

    async def work() -> None:
        door = Door(App(parts))
        door.says(SHORT)
        await settled()
        start = b"HTTP/1.0 503 Service Unavailable\r\n\r\none"
        assert (door.wire.written, door.wire.closed) == (start, False)
        door.knock.shutdown()  # type: ignore[attr-defined]
        assert not door.wire.closed
        gate.set()
        await settled()
        assert (door.wire.written, door.wire.closed) == (start + b"two", True)

    run(work())


def test_parts_wait_for_a_client_that_reads_slowly_but_not_for_one_that_left() -> None:
    async def parts(receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(4):
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def work() -> None:
        door = Door(App(parts))
        knock: Any = door.knock
        door.says(SHORT)
        knock.pause_writing()
        await settled()
        assert door.wire.written.count(b"part") == 1
        knock.resume_writing()
        knock.pause_writing()
        await settled()
        assert door.wire.written.count(b"part") < 4
        knock.connection_lost(None)
        await settled()
        assert door.wire.written.count(b"part") == 4
        assert door.wire.closed

    run(work())


def test_a_connection_that_asked_nothing_ends_with_the_service() -> None:
    async def work() -> None:
        door = Door(App())
        door.says(SHORT[:9])
        assert isinstance(door.knock, Knock)
        door.knock.shutdown()
        assert door.wire.closed

    run(work())


def test_an_application_that_fails_ends_the_connection_and_is_told() -> None:
    told: list[dict[str, Any]] = []

    async def fail(receive: Any, send: Any) -> None:
        raise ValueError("not foreseen")

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))
        door = Door(App(fail))
        door.says(SHORT)
        await settled()
        assert door.wire.closed

    run(work())
    assert [str(one["exception"]) for one in told] == ["not foreseen"]
