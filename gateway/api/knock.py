"""The first protocol of each connection: commands' requests go a short way, all else to Uvicorn.

A command sends one request of a fixed form and reads to the end of the connection. Uvicorn's care
for everything that HTTP allows costs more than what most commands ask for (decision 0012).
"""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.api.auth import PeerProtocol, Who, peer_of
from gateway.api.crowd import Crowd
from gateway.api.wire import Peer

START, END = b"POST /x/", b"\r\n\r\n"
HEAD = re.compile(rb"POST (/x/[a-z]{1,32}) HTTP/1\.0\r\nContent-Length: ([0-9]{1,7})\r\n\r\n")
LONGEST_HEAD = 90
"""Bytes by which a head of that form has ended."""
LONGEST = 1 << 20
"""Bytes of a request that goes the short way: longer ones are counted as they come."""

Protocol = Callable[..., asyncio.Protocol]


def knocking(crowd: Crowd) -> Protocol:
    """What makes a connection's protocol, as Uvicorn calls it; `crowd` keeps users out.

    `who` says who is at the other end; if not given, the kernel does.
    """

    def make(
        *, config: Config, server_state: ServerState, who: Who = peer_of, **rest: Any
    ) -> Knock:
        def other() -> PeerProtocol:
            made = PeerProtocol(config=config, server_state=server_state, **rest)
            made.who = who
            return made

        made = Knock(crowd, app=config.loaded_app, state=server_state, other=other)
        made.who = who
        return made

    return make


class Knock(asyncio.Protocol):
    """Hears the request, gives it to the application, writes what that sends."""

    who: Who = staticmethod(peer_of)

    def __init__(
        self, crowd: Crowd, *, app: Any, state: ServerState, other: Callable[[], PeerProtocol]
    ) -> None:
        self._crowd = crowd
        self._app = app
        self._state = state
        self._other = other
        self._peer: Peer | None = None
        self._entered = False
        self._heard = bytearray()
        self._transport: Any = None
        self._exchange: Exchange | None = None

    def connection_made(self, transport: Any) -> None:
        """Closed at once where its user has too many."""
        self._transport = transport
        self._peer = self.who(transport.get_extra_info("socket"))
        self._entered = self._peer is None or self._crowd.enter(self._peer.uid)
        if not self._entered:
            transport.close()
            return
        self._state.connections.add(self)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Waits for a whole request of the short form; anything else is Uvicorn's."""
        if self._exchange is not None:
            return
        self._heard += data
        head = HEAD.match(self._heard)
        if head is None:
            if not self._may_become():
                self._hand_over()
            return
        size = int(head[2])
        if size > LONGEST:
            self._hand_over()
        elif len(self._heard) >= head.end() + size:
            body = bytes(self._heard[head.end() : head.end() + size])
            self._begin(head[1].decode("ascii"), body)

    def connection_lost(self, exc: Exception | None) -> None:
        """The application hears of it as of a client that left."""
        self._leave()
        if self._exchange is not None:
            self._exchange.gone.set()
            self._exchange.room.set()

    def pause_writing(self) -> None:
        """The client reads less than is written: the application waits with the next part."""
        if self._exchange is not None:
            self._exchange.room.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        if self._exchange is not None:
            self._exchange.room.set()

    def shutdown(self) -> None:
        """The service stops: what is under way may finish."""
        if self._exchange is None:
            self._transport.close()

    def _may_become(self) -> bool:
        """Whether what has come so far can still turn into the short form."""
        if len(self._heard) < len(START):
            return START.startswith(self._heard)
        whole = len(self._heard) >= LONGEST_HEAD or END in self._heard
        return self._heard.startswith(START) and not whole

    def _hand_over(self) -> None:
        """Uvicorn's protocol goes on with what was heard."""
        self._leave()
        other = self._other()
        other.crowd = self._crowd
        self._transport.set_protocol(other)
        other.connection_made(self._transport)
        if not self._transport.is_closing():
            other.data_received(bytes(self._heard))

    def _leave(self) -> None:
        self._state.connections.discard(self)
        if self._entered and self._peer is not None:
            self._crowd.leave(self._peer.uid)
        self._entered = False

    def _begin(self, path: str, body: bytes) -> None:
        self._exchange = Exchange(self._transport, body)
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(b"content-length", b"%d" % len(body))],
            "peer": self._peer,
        }
        work = self._app(scope, self._exchange.receive, self._exchange.send)
        task = asyncio.get_running_loop().create_task(work)
        self._state.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._state.tasks.discard(task)
        self._transport.close()
        if not task.cancelled() and task.exception() is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a command's request failed", "exception": task.exception()}
            )


class Exchange:
    """One request and its answer, as ASGI has them."""

    def __init__(self, transport: Any, body: bytes) -> None:
        self.gone = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self._transport = transport
        self._body: bytes | None = body
        self._head = b""

    async def receive(self) -> dict[str, object]:
        """The request, whole; then nothing until the client leaves."""
        if self._body is None:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        """Head and first part leave in one piece; the end of the connection ends the answer."""
        if message["type"] == "http.response.start":
            self._head = _head(message["status"], message["headers"])
            return
        head, self._head = self._head, b""
        self._transport.write(head + message["body"])
        if message.get("more_body", False):
            await self.room.wait()
        else:
            self._transport.close()


def _head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = [f"HTTP/1.0 {status} {HTTPStatus(status).phrase}".encode("ascii")]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"
