"""`POST /x/<program>`: the commands' door, bare ASGI without a framework's cost per call."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from time import perf_counter
from typing import Any, Protocol

from broker.model.errors import Refused, SpzError
from gateway.api.auth import Scope, caller
from gateway.api.crowd import Held, Take
from gateway.api.desk import Desk
from gateway.api.errors import status_of
from gateway.api.wire import CEILING, Answer, BadEnvelope, Call, frames, parse_call

PATH = "/x/"
Program = Callable[[Desk, Call], Awaitable[Answer]]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Log(Protocol):
    """Where events go."""

    def exception(self, event: str, **fields: object) -> object: ...


class TooLarge(Refused):
    """More than a request may have; told before all of it is read."""


class Gone(Exception):
    """The caller went away."""


class TextDoor:
    """Takes commands' requests, runs the program of that name, sends its answer as frames."""

    def __init__(
        self, desk: Desk, programs: Mapping[str, Program], *, log: Log, key: bytes | None = None
    ) -> None:
        self.desk = desk
        self.programs = programs
        self.log = log
        self.key = key
        self.held = Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = perf_counter()
        try:
            call = await self._call(scope, receive)
            await self._reply(await self._run(call), call, receive=receive, send=send)
            self.desk.times.note_user(call.peer.uid, perf_counter() - begun)
        except Gone:
            return
        except SpzError as error:
            await _refuse(send, error)

    async def _call(self, scope: Scope, receive: Receive) -> Call:
        """The request, judged. Raises SpzError."""
        peer = caller(scope, key=self.key, now=self.desk.now())
        with self.held.by(peer.uid) as take:
            call = parse_call(await _body(scope, receive, take), peer)
        if scope["method"] != "POST" or scope["path"] != PATH + call.program:
            raise BadEnvelope(f"a request of {call.program!r} came to {scope['path']!r}")
        if call.program not in self.programs:
            raise BadEnvelope(
                f"this service has no program {call.program!r}",
                hint="it has " + ", ".join(sorted(self.programs)),
            )
        return call

    async def _run(self, call: Call, rest: Awaitable[Answer] | None = None) -> Answer:
        """The program's answer; what it did not foresee is an answer too."""
        try:
            return await (rest or self.programs[call.program](self.desk, call))
        except SpzError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Answer(err=f"{call.program}: error: {error.message}{hint}\n", code=1)
        except Exception:  # border
            self.log.exception("program.failed", program=call.program, request=call.request)
            return Answer(
                err=f"{call.program}: error: internal error of the service, "
                f"its log has it under request {call.request}\n",
                code=1,
            )

    async def _reply(self, answer: Answer, call: Call, *, receive: Receive, send: Send) -> None:
        if answer.rest is None:
            body = frames(answer)
            await send(_start(200, (b"content-length", b"%d" % len(body))))
            await send({"type": "http.response.body", "body": body})
            return
        await send(_start(200))
        rest: Awaitable[Answer] | None = answer.rest
        while rest is not None:
            part = {"type": "http.response.body", "body": frames(answer), "more_body": True}
            # What follows is made while this is being read: both take their time where it is much.
            following = asyncio.create_task(_unless_gone(self._run(call, rest), receive))
            try:
                await send(part)
                answer = await following
            finally:
                following.cancel()
            rest = answer.rest
        await send({"type": "http.response.body", "body": frames(answer)})


async def _unless_gone(work: Coroutine[Any, Any, Answer], receive: Receive) -> Answer:
    """The answer. Raises Gone, and lets the work go, when the caller leaves first."""
    answer = asyncio.create_task(work)
    leaving = asyncio.create_task(_leaving(receive))
    try:
        await asyncio.wait((answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise Gone
        return answer.result()
    finally:
        answer.cancel()
        leaving.cancel()


async def _leaving(receive: Receive) -> None:
    """Returns when the caller is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(scope: Scope, receive: Receive, take: Take) -> bytes:
    """All of the request. Raises TooLarge, Gone, and what `take` does."""
    parts, size, more = [], _announced(scope), True
    if size > CEILING:
        raise TooLarge(f"request of {size} bytes, at most {CEILING} are taken")
    size = 0
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        take(len(parts[-1]))
        if size > CEILING:
            raise TooLarge(f"request of more than {CEILING} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)


def _announced(scope: Scope) -> int:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


async def _refuse(send: Send, error: SpzError) -> None:
    """Plain text, which the command prints behind its name."""
    status = 413 if isinstance(error, TooLarge) else status_of(error)
    hint = f" ({error.hint})" if error.hint else ""
    body = f"{error.message}{hint}".encode("utf-8", "backslashreplace")
    await send(_start(status, (b"content-length", b"%d" % len(body))))
    await send({"type": "http.response.body", "body": body})


def _start(status: int, *headers: tuple[bytes, bytes]) -> dict[str, object]:
    kind = b"application/octet-stream" if status == 200 else b"text/plain; charset=utf-8"
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", kind), *headers],
    }
