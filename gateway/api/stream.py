"""`POST /i/<program>`: the door of srun, salloc and sattach; frames run both ways as they come."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.model import octets
from broker.model.errors import SpzError
from gateway.api.auth import Scope, caller
from gateway.api.crowd import Held, Take
from gateway.api.desk import Desk
from gateway.api.errors import status_of
from gateway.api.text import Gone, Log, Receive, Send
from gateway.api.wire import (
    ASK,
    CEILING,
    ERR,
    EXEC,
    EXIT,
    OUT,
    BadEnvelope,
    Call,
    Given,
    frame,
    parse_call,
    raw,
)
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line

PATH = "/i/"
ENVELOPE, HELLO, INPUT, END, SIGNAL = b"E", b"h", b"i", b"z", b"s"
WINDOW, FILE, ENDED, MOVED = b"w", b"f", b"q", b"d"
"""Kinds of frames that a command sends; ENDED tells of salloc's own command, MOVED of its folder:
the errno with which it could not go there, 0 if it could."""
PLACE, WANT, TAKEN, RAW, RUN, KILL, MOVE = b"p", b"i", b"k", b"t", b"r", b"g", b"d"
"""Kinds that it gets beside those of every command."""
MOST_IN_A_FRAME = 8 << 20
AHEAD = 64
"""Frames that may wait to be looked at."""
PIECE = 1 << 16
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Window:
    """Rows and columns of a terminal."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Hello:
    """How a command comes: for the first time, or again after the connection was lost."""

    place: str = ""
    """What the service last said of how far it got; empty the first time."""
    taken: int = 0
    """Bytes of standard input that it knows to have arrived."""
    window: Window | None = None
    """None where standard output is no terminal."""


@dataclass(frozen=True, slots=True)
class Word:
    """One frame that came up."""

    kind: bytes
    payload: bytes = b""


class Line(Protocol):
    """The way to one command: what programs may say to it and hear from it."""

    hello: Hello

    async def out(self, data: bytes | str) -> None: ...
    async def err(self, data: bytes | str) -> None: ...
    async def say(self, kind: bytes, payload: bytes | str = b"") -> None:
        """A frame of any other kind."""
        ...

    async def hear(self) -> Word:
        """The next frame. Raises Gone when the command went away."""
        ...

    def unhear(self, words: Sequence[Word]) -> None:
        """These will be heard again, before all others."""
        ...

    async def file(self, path: str) -> Given:
        """A file as the user's own process sees it. Raises Gone."""
        ...


Program = Callable[[Desk, Call, Line], Awaitable[int]]
"""Returns the exit status. Raises GrammarError, SpzError, Gone, Exec."""


@dataclass(frozen=True, slots=True)
class Interactive:
    """Marks a program of this door in the table of all programs."""

    run: Program


class Exec(Exception):
    """The command is to become another: path and arguments."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__(words)
        self.words = words


def _any(size: int) -> None:
    """Takes as much as there is."""


class Ended(Gone):
    """Nothing more will come from the command, which may still be there to be told so."""


@dataclass(slots=True)
class Wire:
    """A `Line` over one HTTP exchange."""

    receive: Receive
    send: Send
    hello: Hello = Hello()
    take: Take = _any
    """Told of every part that comes; may refuse it."""
    _words: "asyncio.Queue[Word | None]" = field(default_factory=lambda: asyncio.Queue(AHEAD))
    _kept: list[Word] = field(default_factory=list)
    _body: bytearray = field(default_factory=bytearray)

    async def out(self, data: bytes | str) -> None:
        await self._pieces(OUT, raw(data))

    async def err(self, data: bytes | str) -> None:
        await self._pieces(ERR, raw(data))

    async def say(self, kind: bytes, payload: bytes | str = b"") -> None:
        await self._part(frame(kind, raw(payload)))

    async def _pieces(self, kind: bytes, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            await self._part(frame(kind, data[start : start + PIECE]))

    async def _part(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def hear(self) -> Word:
        if self._kept:
            return self._kept.pop(0)
        return await self._next()

    def unhear(self, words: Sequence[Word]) -> None:
        self._kept[:0] = words

    async def _next(self) -> Word:
        word = await self._words.get()
        if word is None:
            self._words.put_nowait(None)
            raise Gone
        return word

    async def file(self, path: str) -> Given:
        await self.say(ASK, path)
        while True:
            word = await self._next()
            if word.kind != FILE:
                self._kept.append(word)
                continue
            name, error, content = word.payload.split(b"\0", 2)
            if octets.text(name) == path:
                return Given(content, int(error) if error.isdigit() else 0)

    async def first(self, kind: bytes, most: int) -> bytes:
        """The payload of the frame with which a request begins. Raises BadEnvelope, Gone."""
        word = await self._frame(most)
        if word.kind != kind:
            raise BadEnvelope(f"request begins with a frame {word.kind!r}, not {kind!r}")
        return word.payload

    async def listen(self) -> None:
        """Takes frames until the command is gone."""
        try:
            while True:
                await self._words.put(await self._frame(MOST_IN_A_FRAME))
        except (Gone, BadEnvelope):
            await self._words.put(None)

    async def _frame(self, most: int) -> Word:
        body = self._body
        await self._fill(5)
        size = int.from_bytes(body[1:5], "big")
        if size > most:
            raise BadEnvelope(f"frame of {size} bytes, at most {most} are taken")
        await self._fill(5 + size)
        word = Word(bytes(body[:1]), bytes(body[5 : 5 + size]))
        del body[: 5 + size]
        return word

    async def _fill(self, size: int) -> None:
        while len(self._body) < size:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            if not message.get("more_body", False):
                raise Ended
            part = message.get("body", b"")
            self.take(len(part))
            self._body += part


@dataclass(frozen=True, slots=True)
class StreamDoor:
    """Takes interactive commands' requests and runs the program of that name to its end."""

    desk: Desk
    programs: Mapping[str, Program]
    log: Log
    key: bytes | None = None
    held: Held = field(default_factory=Held)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wire = Wire(receive, send)
        try:
            call = await self._call(scope, wire)
        except Ended:
            await _refuse(send, BadEnvelope("request ends within its greeting"))
            return
        except Gone:
            return
        except SpzError as error:
            await _refuse(send, error)
            return
        await send(_start(200, b"application/octet-stream"))
        listening = asyncio.create_task(wire.listen())
        try:
            await _end(wire, await self._run(call, wire))
        except Gone:
            return
        finally:
            listening.cancel()

    async def _call(self, scope: Scope, wire: Wire) -> Call:
        """The request, judged. Raises SpzError, Gone."""
        peer = caller(scope, key=self.key, now=self.desk.now())
        with self.held.by(peer.uid) as wire.take:
            call = parse_call(await wire.first(ENVELOPE, CEILING), peer)
        wire.take = _any
        wire.hello = read_hello(await wire.first(HELLO, PIECE))
        if scope["method"] != "POST" or scope["path"] != PATH + call.program:
            raise BadEnvelope(f"a request of {call.program!r} came to {scope['path']!r}")
        if call.program not in self.programs:
            raise BadEnvelope(f"this service has no interactive program {call.program!r}")
        return call

    async def _run(self, call: Call, wire: Wire) -> "int | Exec":
        """The exit status; what the program did not foresee is told too."""
        try:
            return await self.programs[call.program](self.desk, call, wire)
        except Exec as other:
            return other
        except GrammarError as error:
            await wire.err(error.stderr)
            return error.code
        except SpzError as error:
            hint = f" ({error.hint})" if error.hint else ""
            await wire.err(error_line(call.program, f"{error.message}{hint}"))
        except Gone:
            raise
        except Exception:  # border
            self.log.exception("program.failed", program=call.program, request=call.request)
            await wire.err(
                error_line(
                    call.program,
                    "internal error of the service, its log has it under request " + call.request,
                )
            )
        return FAILURE


async def _end(wire: Wire, how: "int | Exec") -> None:
    last = frame(EXIT, b"%d" % how) if isinstance(how, int) else frame(EXEC, _words(how))
    await wire.send({"type": "http.response.body", "body": last})


def _words(other: Exec) -> bytes:
    return b"".join(raw(word) + b"\0" for word in other.words)


def read_hello(payload: bytes) -> Hello:
    """Raises BadEnvelope."""
    try:
        place, taken, size = payload.split(b"\0")
        return Hello(octets.text(place), int(taken), read_window(size))
    except ValueError:
        raise BadEnvelope(f"greeting {payload[:60]!r} cannot be read") from None


def read_window(payload: bytes) -> Window | None:
    """`rows columns`; None for an empty text. Raises ValueError."""
    if not payload:
        return None
    rows, columns = (int(word) for word in payload.split())
    return Window(rows, columns)


async def first_of(*work: Coroutine[Any, Any, Any]) -> Any:
    """What the first to end returns or raises; the others are let go."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        failed = [task for task in done if task.exception() is not None]
        return (failed or list(done))[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _refuse(send: Send, error: SpzError) -> None:
    """Plain text, which the command prints behind its name."""
    hint = f" ({error.hint})" if error.hint else ""
    body = f"{error.message}{hint}".encode("utf-8", "backslashreplace")
    await send(_start(status_of(error), b"text/plain; charset=utf-8"))
    await send({"type": "http.response.body", "body": body})


def _start(status: int, kind: bytes) -> dict[str, object]:
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", kind), (b"connection", b"close")],
    }
