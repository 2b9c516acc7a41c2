"""Who connects to the listener for nodes and says nothing, too much, or takes nothing."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from gateway.api import push
from gateway.api.heads import HEAD_SECONDS, LONGEST
from gateway.api.push import FAREWELL_SECONDS, READ_SECONDS, NodeProtocol

REQUEST = b"GET /agent/x HTTP/1.1\r\nHost: h\r\n\r\n"


class Timer:
    def __init__(self, at: float, act: Callable[[], None]) -> None:
        self.at, self.act, self.over = at, act, False

    def cancel(self) -> None:
        self.over = True


class Loop:
    """Time that passes when the test says so; tasks run at once, on a loop of their own."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, list[Timer]()
        self.inner = asyncio.new_event_loop()

    def call_later(self, seconds: float, act: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + seconds, act))
        return self.timers[-1]

    def create_task(self, work: Any, **_: object) -> Any:
        return self.inner.create_task(work)

    def settle(self) -> None:
        for _ in range(5):
            self.inner.run_until_complete(asyncio.sleep(0))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for timer in [one for one in self.timers if one.at <= self.now and not one.over]:
            timer.over = True
            timer.act()


class Transport:
    """Keeps what is written; knows how it ended."""

    def __init__(self) -> None:
        self.said = b""
        self.end: str = ""

    def write(self, data: bytes) -> None:
        self.said += data

    def abort(self) -> None:
        self.end = "abort"  # whatever was before

    def close(self) -> None:
        self.end = self.end or "close"

    def is_closing(self) -> bool:
        return bool(self.end)

    def get_extra_info(self, name: str) -> None:
        return None

    def pause_reading(self) -> None:
        """Nothing comes but what the test sends."""

    resume_reading = pause_reading


class Guest:
    """A connection whose every request is answered with that status."""

    def __init__(self, status: int = 200) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await push._send(send, status, b"x")

        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_keep_alive=75)
        config.load()
        self.loop, self.line = Loop(), Transport()
        state: Any = ServerState()
        loop: Any = self.loop
        self.protocol = NodeProtocol(config=config, server_state=state, app_state={}, _loop=loop)
        transport: Any = self.line
        self.protocol.connection_made(transport)

    def says(self, data: bytes) -> None:
        self.protocol.data_received(data)
        self.loop.settle()


@pytest.fixture
def guest() -> Iterator[Guest]:
    made = Guest()
    yield made
    made.loop.inner.close()


@pytest.mark.parametrize("drips", [b"", b"POST /rep", b"\r\n\r\n\r\n\r\n\r"])
def test_who_makes_no_request_is_cut_off_however_he_drips(guest: Guest, drips: bytes) -> None:
    for place in range(9):
        guest.loop.pass_by(HEAD_SECONDS / 10)
        guest.says(drips[place : place + 1])
    assert guest.line.end == ""
    guest.loop.pass_by(HEAD_SECONDS / 10)
    assert guest.line.end == "abort"


@pytest.mark.parametrize("drip", [b"G", b"\r\n", b"GET /agent/x HTTP/1.1\r\nA: "])
def test_a_second_request_may_take_no_longer_than_the_first(guest: Guest, drip: bytes) -> None:
    guest.says(REQUEST)
    assert b"200 OK" in guest.line.said
    guest.loop.pass_by(60)
    guest.says(drip)
    guest.loop.pass_by(HEAD_SECONDS - 1)
    assert guest.line.end == ""
    guest.loop.pass_by(1)
    assert guest.line.end == "abort"


def test_nodes_that_say_something_now_and_then_are_kept(guest: Guest) -> None:
    for number in range(1, 5):
        guest.says(REQUEST)
        guest.loop.pass_by(60)
        assert guest.line.said.count(b"200 OK") == number
    assert not guest.line.end
    guest.loop.pass_by(15)
    assert guest.line.end, "after so long without a word"


@pytest.mark.parametrize(
    ("endless", "end"),
    [
        (b"GET /" + b"x" * 8192, "abort"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 8192, "abort"),
        (b"GET / HTTP/1.1\r\n", "abort"),
    ],
)
def test_a_head_without_end_is_not_kept(guest: Guest, endless: bytes, end: str) -> None:
    guest.says(endless)
    more = b"B: y\r\n" * 2000 if endless.endswith(b"\n") else b"x" * 8192
    for _ in range(2 * LONGEST // len(more)):
        if not guest.line.end:
            guest.says(more)
    assert guest.line.end == end


@pytest.mark.parametrize(("status", "end"), [(200, ""), (202, ""), (409, ""), (403, "close")])
def test_who_is_refused_is_not_heard_any_further(status: int, end: str) -> None:
    guest = Guest(status)
    guest.says(b"POST /reports HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
    assert guest.line.end == end
    guest.loop.pass_by(FAREWELL_SECONDS)
    assert guest.line.end == (end and "abort"), "though he sends on and on"
    guest.loop.inner.close()


@pytest.mark.parametrize(
    "smuggled",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        b"POST /reports HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nContent-Length: +4\r\n\r\nabcd",
        b"\x16\x03\x01\x00\xa5\x01\x00",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_none_and_fills_no_log(
    guest: Guest, smuggled: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    guest.says(smuggled)
    assert guest.line.said.startswith(b"HTTP/1.1 400 ")
    assert guest.line.end == "close"
    assert not caplog.records


def test_who_takes_nothing_of_what_he_asked_for_is_cut_off(guest: Guest) -> None:
    guest.says(REQUEST)
    guest.protocol.pause_writing()
    guest.loop.pass_by(READ_SECONDS - 1)
    guest.protocol.resume_writing()
    guest.loop.pass_by(1)
    assert guest.line.end == ""
    guest.protocol.pause_writing()
    guest.loop.pass_by(READ_SECONDS)
    assert guest.line.end == "abort"


def test_after_its_end_nothing_of_a_connection_waits(guest: Guest) -> None:
    guest.says(REQUEST)
    guest.protocol.pause_writing()
    guest.says(b"G")
    guest.protocol.connection_lost(ConnectionResetError())
    guest.loop.pass_by(HEAD_SECONDS)
    guest.loop.pass_by(READ_SECONDS)
    assert not guest.line.end
