"""Ways back: commands on machines that cannot reach our socket come by our own connections there.

Nothing that arrives is believed about who sends it: a token that was signed for an attempt says so,
and only while its job holds the node that it comes from.
"""

import asyncio
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.model.errors import Denied, SpzError
from broker.model.ids import NodeName
from broker.model.kin import elsewhere
from broker.model.node import Node, NodeState
from broker.ports import Opens, Pipe
from broker.run.agent.mux import (
    DATA,
    END,
    GONE,
    OPEN,
    PIECE,
    PING,
    SILENCE,
    TAKEN,
    WINDOW,
    BrokenError,
    Frames,
    pack,
)
from gateway.api.auth import Who
from gateway.api.desk import Desk
from gateway.api.wire import Peer
from gateway.translate import token

TURN_SECONDS = 0.5
"""How often it is looked on which nodes something runs."""
OPEN_SECONDS = 10.0
PING_SECONDS = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Until a way that broke is tried again; doubles in between."""
HEAD_SECONDS = 10.0
LONGEST_HEAD = 4096
MOST_GUESTS = 256
"""Connections of one node at a time."""
THREADS = 8
"""In which ways are opened and written to."""
BEARER = re.compile(rb"\r\nAuthorization: Bearer ([0-9a-zA-Z]+)(?=\r\n)")
REFUSED = b"HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%b"

Make = Callable[..., asyncio.BaseProtocol]
"""A protocol of the server's, for who is named by `who`."""


class Log(Protocol):
    def warning(self, event: str, **fields: object) -> object: ...


class HeadError(Exception):
    """What comes is no request."""


@dataclass(slots=True)
class Ways:
    """One way for each node elsewhere that jobs hold; all in the event loop."""

    desk: Desk
    seal: bytes
    log: Log
    _open: dict[NodeName, asyncio.Task[None]] = field(default_factory=dict)
    _pause: dict[NodeName, tuple[float, float]] = field(default_factory=dict)
    """Of those that broke: not before which instant, and the next pause."""
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="back")
    )

    async def run(self, make: Make) -> None:
        """Until it is cancelled."""
        try:
            while True:
                self._turn(make)
                await asyncio.sleep(TURN_SECONDS)
        finally:
            for task in self._open.values():
                task.cancel()
            await asyncio.gather(*self._open.values(), return_exceptions=True)
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _turn(self, make: Make) -> None:
        wanted = self.wanted()
        for name in [name for name in self._open if name not in wanted]:
            self._open[name].cancel()
        for name in [name for name, task in self._open.items() if task.done()]:
            del self._open[name]
        for name in [name for name in self._pause if name not in wanted]:
            del self._pause[name]
        for name, node in wanted.items():
            if name not in self._open and time.monotonic() >= self._pause.get(name, (0.0, 0.0))[0]:
                self._open[name] = asyncio.create_task(self._keep(node, make))

    def wanted(self) -> dict[NodeName, Node]:
        """Nodes elsewhere that are up and that a job holds."""
        seen = self.desk.snapshot()
        held = {share.node for job in seen.jobs.values() for share in job.shares}
        nodes = (seen.nodes[name] for name in held if name in seen.nodes)
        return {n.name: n for n in nodes if n.state is NodeState.UP and elsewhere(n)}

    async def _keep(self, node: Node, make: Make) -> None:
        """One way, from its opening to its end."""
        loop = asyncio.get_running_loop()
        try:
            pipe = await loop.run_in_executor(self._pool, self._opened, node)
            if pipe is not None:
                self._pause.pop(node.name, None)
                await Way(self, node.name, pipe, make).run()
        except (OSError, SpzError, BrokenError) as error:
            self.log.warning("back.lost", node=node.name, error=str(error))
        pause = self._pause.get(node.name, (0.0, FIRST_PAUSE))[1]
        self._pause[node.name] = time.monotonic() + pause, min(2 * pause, LONGEST_PAUSE)

    def _opened(self, node: Node) -> Pipe | None:
        """None where no commands are on the node. Raises OSError, SpzError."""
        if self.desk.reach is None:
            return None
        place = self.desk.reach.place(node)
        if not place.asks or not isinstance(place.channel, Opens):
            return None
        argv = [place.python, "-IS", place.archive, "back", "--dir", place.folder]
        return place.channel.open(argv, timeout=OPEN_SECONDS)

    async def blocking(self, act: Callable[[], None]) -> None:
        """Raises OSError when it takes too long, and what it raises."""
        work = asyncio.get_running_loop().run_in_executor(self._pool, act)
        await asyncio.wait_for(work, SILENCE)

    def close(self, pipe: Pipe, *, lost: bool) -> None:
        """Beside all else; of no interest to anybody."""
        with suppress(RuntimeError):  # the pool is closed: so are soon all connections
            self._pool.submit(pipe.close, lost=lost)


def ways(desk: Desk, seal: bytes | None, log: Log) -> Ways | None:
    """None where no machine is elsewhere, and nothing is sealed."""
    return None if seal is None else Ways(desk, seal, log)


@dataclass(slots=True)
class Way:
    """To one node: a program of the agent's there, whose streams carry many connections."""

    ways: Ways
    node: NodeName
    pipe: Pipe
    make: Make
    guests: "dict[int, Guest]" = field(default_factory=dict)
    _frames: Frames = field(default_factory=Frames)
    _unsent: bytearray = field(default_factory=bytearray)
    _to_send: asyncio.Event = field(default_factory=asyncio.Event)
    _over: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _heard: float = 0.0

    async def run(self) -> None:
        """Until it is cancelled, or the node's end is gone. Raises OSError, BrokenError."""
        loop, lost = asyncio.get_running_loop(), True
        descriptor = self.pipe.fileno()
        self._heard = loop.time()
        loop.add_reader(descriptor, self._read)
        tasks = [asyncio.create_task(act) for act in (self._send(), self._watch())]
        try:
            await asyncio.wait([self._over, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for done in (self._over, *tasks):
                if done.done():
                    done.result()
        except asyncio.CancelledError:
            lost = False
            raise
        finally:
            loop.remove_reader(descriptor)
            for task in (*tasks, *(guest.task for guest in self.guests.values())):
                task.cancel()
            self.ways.close(self.pipe, lost=lost)

    def say(self, number: int, kind: bytes, payload: bytes = b"") -> None:
        self._unsent += pack(number, kind, payload)
        self._to_send.set()

    async def _send(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            data, self._unsent = bytes(self._unsent), bytearray()
            await self.ways.blocking(lambda data=data: self.pipe.write(data))  # type: ignore[misc]

    async def _watch(self) -> None:
        """Both ends show that they live. Raises TimeoutError, which is an OSError."""
        while asyncio.get_running_loop().time() - self._heard < SILENCE:
            self.say(0, PING)
            await asyncio.sleep(PING_SECONDS)
        raise TimeoutError(f"nothing was heard for {SILENCE:g} s")

    def _read(self) -> None:
        try:
            data = self.pipe.read(PIECE)
            self._heard = asyncio.get_running_loop().time()
            if data == b"":
                raise ConnectionError("the node's end is gone")
            for number, kind, payload in self._frames.feed(data or b""):
                self._take(number, kind, payload)
        except (OSError, BrokenError) as error:
            if not self._over.done():
                self._over.set_exception(error)

    def _take(self, number: int, kind: bytes, payload: bytes) -> None:
        guest = self.guests.get(number)
        if kind == OPEN and guest is None:
            self._welcome(number)
        elif guest is not None:
            guest.take(kind, payload)

    def _welcome(self, number: int) -> None:
        if len(self.guests) >= MOST_GUESTS:
            self.say(number, GONE)
            return
        guest = self.guests[number] = Guest(self, number)
        guest.task = asyncio.create_task(guest.run())
        guest.task.add_done_callback(lambda _task: self.guests.pop(number, None))

    def judged(self, head: bytes) -> tuple[bytes, Who]:
        """The request's head without a token, and who sends it. Raises Denied."""
        words = head.split(b" ", 2)
        path = b"/agent/" + self.node.encode()
        if words[0] == b"POST" and words[1:] and words[1].partition(b"?")[0] == path:
            return BEARER.sub(b"", head), lambda _socket: None
        found = BEARER.search(head)
        if found is None:
            raise Denied("this command runs in no job: it has no SKYPURZA_TOKEN")
        peer = self._peer(found[1].decode("ascii"))
        return BEARER.sub(b"", head), lambda _socket: peer

    def _peer(self, shown: str) -> Peer:
        job_id, attempt = token.read(self.ways.seal, shown)
        job = self.ways.desk.snapshot().jobs.get(job_id)
        here = job is not None and any(share.node == self.node for share in job.shares)
        if job is None or not here or job.attempt != attempt:
            raise Denied(f"job {job_id} does not run here any more")
        return Peer(uid=job.owner.uid, gid=job.owner.gid)


class Guest:
    """One connection that a process on the node has made."""

    def __init__(self, way: Way, number: int) -> None:
        self.way = way
        self.number = number
        self.task: asyncio.Task[None]
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._held = 0
        """Bytes that came and were not passed on."""
        self._under_way = 0
        """Bytes that left and were not said to be passed on."""
        self._room = asyncio.Event()
        self._room.set()

    def take(self, kind: bytes, payload: bytes) -> None:
        """A frame of its. Raises BrokenError where the node sends more than it may."""
        if kind == DATA:
            self._held += len(payload)
            if self._held > WINDOW + PIECE:  # the node reads a piece while there is any room
                raise BrokenError("more bytes than may be under way")
            self._inbox.put_nowait(payload)
        elif kind == END:
            self._inbox.put_nowait(None)
        elif kind == TAKEN and payload.isdigit():
            self._under_way -= int(payload[:9])
            self._room.set()
        elif kind == GONE:
            self.task.cancel()

    async def run(self) -> None:
        """To its end, however it comes."""
        try:
            head, rest = await asyncio.wait_for(self._head(), HEAD_SECONDS)
            head, who = self.way.judged(head)
        except (HeadError, TimeoutError):
            self.way.say(self.number, GONE)
        except Denied as error:
            self._say(DATA, REFUSED % error.message.encode("utf-8", "backslashreplace"))
            self._say(END)
        else:
            await self._joined(head + rest, who)

    async def _head(self) -> tuple[bytes, bytes]:
        """The request's lines, and what came behind them. Raises HeadError."""
        heard = b""
        while b"\r\n\r\n" not in heard:
            if len(heard) > LONGEST_HEAD or (part := await self._next()) is None:
                raise HeadError
            heard += part
        end = heard.index(b"\r\n\r\n") + 2
        return heard[:end], heard[end:]

    async def _joined(self, begin: bytes, who: Who) -> None:
        """As a connection of the server's own."""
        ours, theirs = socket.socketpair()
        for one in (ours, theirs):
            one.setblocking(False)
        make, loop = self.way.make, asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: make(who=who), theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write(begin)
        up = asyncio.create_task(self._up(writer))
        try:
            await self._down(reader)
        finally:
            up.cancel()
            writer.close()

    async def _next(self) -> bytes | None:
        """The next bytes, for which there is room again; None behind the last."""
        part = await self._inbox.get()
        if part is not None:
            self._held -= len(part)
            self._say(TAKEN, b"%d" % len(part))
        return part

    async def _up(self, writer: Any) -> None:
        with suppress(OSError):  # the program was done before all was said
            while (part := await self._next()) is not None:
                writer.write(part)
                await writer.drain()

    async def _down(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(PIECE):
            while self._under_way >= WINDOW:
                self._room.clear()
                await self._room.wait()
            self._under_way += len(data)
            self._say(DATA, data)
        self._say(END)

    def _say(self, kind: bytes, payload: bytes = b"") -> None:
        self.way.say(self.number, kind, payload)
