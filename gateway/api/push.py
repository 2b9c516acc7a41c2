"""What nodes say over HTTPS: reports from their journals, and who fetches the agent's archive.

Its listener has these two routes alone. Who posts shows a token of one launch of one node; what it
posts is judged before anybody else sees it, and whatever is refused stays on the node.
"""

import asyncio
import json
import logging
from asyncio import Transport
from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.model.errors import SpzError
from broker.model.node import Node, NodeState
from broker.run.steps import began_anew, news, trouble_of
from gateway.api.auth import Scope, bearer
from gateway.api.desk import Desk
from gateway.api.errors import status_of
from gateway.api.heads import HEAD_SECONDS, LONGEST, HeadProtocol
from gateway.api.text import Receive, Send
from gateway.translate import token

REPORTS, AGENT = "/reports", "/agent/"
MOST_BYTES = (4 << 20) + (64 << 10)
"""Of a letter: a piece of the journal, and a line about the agent."""
READ_SECONDS = 20.0
"""How long a letter may take to come, and who gets something may take nothing of it."""
COMMIT_SECONDS = 10.0
"""How long is waited until what it says is on disk."""
FAREWELL_SECONDS = 1.0
"""How long who is refused may take to hear it; what he sends meanwhile is thrown away."""
MOST_FETCHES = 64
"""Machines that get the archive at a time: it is large, and nobody shows who he is."""
KEPT = (200, 202, 409)
"""After anything else the connection is closed: nothing that is sent still is read."""
PIECE = 64 << 10
STRANGERS = logging.getLogger("uvicorn.strangers")
STRANGERS.setLevel(logging.ERROR)
"""What strangers send that is no request fills no log."""
Reply = tuple[int, dict[str, object]]
Timer = asyncio.TimerHandle | None


class NodeProtocol(HeadProtocol):
    """Uvicorn's protocol, which waits for ever for nobody and reads no head without end.

    Who is cut off hears nothing more: a farewell could wait for him as well.
    """

    patience = HEAD_SECONDS
    deaf: Timer = None
    """Runs while there is something for him that he does not take, an answer or the end."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        self.logger = STRANGERS
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._in_head and getattr(self.cycle, "response_complete", True):
            self._expect()  # from the first byte on, be it before any head
        super().data_received(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait_for_him(FAREWELL_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_him(READ_SECONDS)

    def resume_writing(self) -> None:
        self._stop_deaf()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deaf()
        super().connection_lost(exc)

    def _wait_for_him(self, seconds: float) -> None:
        self._stop_deaf()
        self.deaf = self.loop.call_later(seconds, self.transport.abort)

    def _stop_deaf(self) -> None:
        if self.deaf is not None:
            self.deaf.cancel()
            self.deaf = None


class LetterError(Exception):
    """What is refused, with its HTTP status and what the sender hears besides."""

    def __init__(self, status: int, message: str, **more: object) -> None:
        super().__init__(message)
        self.reply: Reply = status, {"error": message, **more}


@dataclass(frozen=True, slots=True)
class Letter:
    """`data` are whole lines of the journal from byte `at` on; `said` is what the agent says."""

    at: int | None
    said: Mapping[str, object] | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PushDoor:
    """The ASGI application of the listener for nodes."""

    desk: Desk
    seal: bytes
    digest: str
    """SHA-256 of the archive."""
    archive: bytes
    commit_seconds: float = COMMIT_SECONDS
    fetches: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_FETCHES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        asked = scope["method"], scope["path"]
        if asked == ("GET", AGENT + self.digest):
            await self._give(send)
        elif asked == ("POST", REPORTS):
            await _tell(send, await self._answer(scope, receive))
        else:
            await _tell(send, (404, {"error": "there is nothing here"}))

    async def _give(self, send: Send) -> None:
        """Who comes when too many are there asks again; so does who boots."""
        if self.fetches.locked():
            await _tell(send, (503, {"error": "too many get it now; try again"}))
            return
        async with self.fetches:
            await _send(send, 200, self.archive)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        try:
            return await self.report(scope, receive)
        except LetterError as error:
            return error.reply
        except SpzError as error:
            return status_of(error), {"error": error.message}

    async def report(self, scope: Scope, receive: Receive) -> Reply:
        """Takes a letter. Raises LetterError, SpzError."""
        node = self._sender(scope)
        letter = parse(await _body(receive, position=node.journal))
        alive = letter.said is not None and not began_anew(letter.said, node)
        reply = await self._take(node, letter)
        if alive:
            self.desk.pushes.hear(node)
        elif self.desk.pushes.doubt(node) and self._is_needed(node):
            self.desk.wake(node.name)
        return reply

    def _is_needed(self, node: Node) -> bool:
        """Whether a job has it; an agent may have left for want of one."""
        jobs = self.desk.snapshot().jobs.values()
        return any(share.node == node.name for job in jobs for share in job.shares)

    def _sender(self, scope: Scope) -> Node:
        """The node that the token is of, as it was committed last. Raises Denied, LetterError."""
        name, launch = token.read_node(self.seal, bearer(scope))
        node = self.desk.snapshot().nodes.get(name)
        if node is None or node.launch != launch:
            raise LetterError(410, f"launch {launch} of {name} is over")
        return node

    async def _take(self, node: Node, letter: Letter) -> Reply:
        here: dict[str, object] = {"position": node.journal}
        if not letter.data or letter.at is None:
            trouble = None if letter.said is None else trouble_of(node, letter.said)
            if trouble is not None and node.state is NodeState.UP:
                self.desk.pushes.put(node, trouble, 0)
                self.desk.wake(node.name)
            return 200, here
        if letter.at != node.journal:
            why = f"the journal is known up to byte {node.journal}, not {letter.at}"
            return 409, {**here, "error": why}
        if node.state is not NodeState.UP:
            return 202, here
        return await self._commit(node, letter.data)

    async def _commit(self, node: Node, data: bytes) -> Reply:
        """Answered once it is on disk, or told to ask again."""
        try:
            found = news(node, data)
        except ValueError as error:
            raise LetterError(400, str(error)) from error
        if found is None or found.position != node.journal + len(data):
            raise LetterError(400, "the journal's last line is not whole")
        committed = self.desk.pushes.put(node, found, len(data))
        self.desk.wake(node.name)
        self.desk.bells.ring(node.name)
        try:
            waited = asyncio.wrap_future(committed)
            return 200, {"position": await asyncio.wait_for(waited, self.commit_seconds)}
        except TimeoutError:
            return 202, {"position": node.journal}


def parse(body: bytes) -> Letter:
    """Its first line is JSON, the rest the journal's own bytes. Raises LetterError."""
    head, line_end, data = body.partition(b"\n")
    try:
        value = json.loads(head) if line_end and len(head) <= LONGEST else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise LetterError(400, "no letter: its first line is no JSON object")
    at, said = value.get("at"), value.get("said")
    if isinstance(at, bool) or not isinstance(at, int | None):
        raise LetterError(400, f"no letter: `at` is {str(at)[:40]!r}")
    if not isinstance(said, dict | None):
        raise LetterError(400, "no letter: `said` is no JSON object")
    return Letter(at, said, data)


async def _body(receive: Receive, *, position: int) -> bytes:
    """Raises LetterError for one that is too long or too slow."""
    try:
        return await asyncio.wait_for(_read(receive, position), READ_SECONDS)
    except TimeoutError:
        raise LetterError(408, "the letter came too slowly") from None


async def _read(receive: Receive, position: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LetterError(400, "the letter is cut off")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            why = f"a letter of more than {MOST_BYTES} bytes"
            raise LetterError(413, why, position=position)
        more = message.get("more_body", False)
    return b"".join(parts)


async def _tell(send: Send, reply: Reply) -> None:
    status, value = reply
    await _send(send, status, json.dumps(value).encode("ascii"), kind=b"application/json")


async def _send(
    send: Send, status: int, body: bytes, *, kind: bytes = b"application/octet-stream"
) -> None:
    length = b"%d" % len(body)
    headers = [(b"content-type", kind), (b"content-length", length)]
    if status not in KEPT:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for start in range(0, len(body), PIECE):
        more = start + PIECE < len(body)
        part = body[start : start + PIECE]
        await send({"type": "http.response.body", "body": part, "more_body": more})
