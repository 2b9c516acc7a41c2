"""What a step's tasks write and read, between the io file of its node and the command."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from broker.model.errors import Unknown
from broker.model.ids import NodeName
from broker.model.job import ExitCode
from broker.ports import Place
from broker.run import launch
from gateway.api.desk import Desk

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.2
GROWTH = 1.4
"""How the pauses between two looks grow while nothing rings."""
MANY = 8
"""Nodes for which the longest pause holds once; for twice as many it is twice as long."""
HEAD = 9
"""Bytes before a payload: stream, rank, length."""
OUT, ERR, ENDED, UNOPENED = b"o", b"e", b"x", b"n"
"""What pieces are; the last: a task could not begin for want of one of its files."""
NOBODY = 0xFFFFFFFF
"""Rank of what no task wrote: words of the node itself."""
LAG = 1 << 20
"""Bytes that are not told to be read yet, as they may not have reached the command."""
EVERY = 4 << 20
"""Bytes after which the node is told how much was read, so that it can forget that."""
ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that one task wrote in one go, or (ENDED, UNOPENED) two numbers about it."""

    stream: bytes
    rank: int
    data: bytes

    def exit(self) -> ExitCode:
        """Of an ENDED piece."""
        return ExitCode(*self.numbers())

    def numbers(self) -> tuple[int, int]:
        """Exit code and signal of an ENDED piece; the stream's number and errno of UNOPENED."""
        return int.from_bytes(self.data[:4], "big"), int.from_bytes(self.data[4:8], "big")


def pieces(data: bytes) -> tuple[list[Piece], int]:
    """The whole frames of an io file's part, and how many bytes they take."""
    found, place = [], 0
    while len(data) >= place + HEAD:
        rank = int.from_bytes(data[place + 1 : place + 5], "big")
        end = place + HEAD + int.from_bytes(data[place + 5 : place + HEAD], "big")
        if len(data) < end:
            break
        found.append(Piece(data[place : place + 1], rank, data[place + HEAD : end]))
        place = end
    return found, place


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a step's output is passed on, and how: `-l`, `-o RANK`, `-e RANK`."""

    label: int = 0
    """Width of the tasks' numbers before each line; 0 for none."""
    first: int = 0
    """The number of its first task."""
    out: int | None = None
    err: int | None = None
    """The one task whose output is passed on; None for all."""

    def passes(self, piece: Piece) -> bool:
        if piece.stream not in (OUT, ERR):
            return False
        wanted = self.err if piece.stream == ERR else self.out
        return wanted in (None, piece.rank) or piece.rank == NOBODY

    def text(self, piece: Piece) -> bytes:
        if not self.label or piece.rank == NOBODY:
            return piece.data
        start = b"%*d: " % (self.label, self.first + piece.rank)
        return b"".join(start + line + b"\n" for line in _lines(piece.data))

    def runs(self, found: Iterable[Piece]) -> list[tuple[bytes, bytes]]:
        """(stream, bytes) in order; what follows on the same stream is joined."""
        kept = [piece for piece in found if self.passes(piece)]
        return [
            (stream, b"".join(map(self.text, same)))
            for stream, same in groupby(kept, key=lambda piece: piece.stream)
        ]


def _lines(data: bytes) -> list[bytes]:
    """Lines without their ends; the last need not have one (Slurm ends it)."""
    return data.removesuffix(b"\n").split(b"\n") if data else []


@dataclass(slots=True)
class Relay:
    """One step's io file, from `offset` on, and the way to its tasks' input."""

    desk: Desk
    place: Place
    key: str
    node: NodeName
    offset: int = 0
    acknowledged: int = 0
    shut: bool = False
    """Whether no task reads any more."""

    @property
    def path(self) -> str:
        return f"{self.place.folder}/steps/{self.key.replace('/', '.')}.io"

    async def follow(self, over: Callable[[], bool]) -> AsyncIterator[Sequence[Piece]]:
        """As `Gathered.follow`, of one node."""
        async for found in Gathered(self.desk, self.key, [self]).follow(over):
            yield found

    async def read(self) -> list[Piece]:
        """Nothing while the node cannot be reached: it will be again, or the step ends."""
        try:
            data = await self.desk.read(self.place.channel.read, self.path, self.offset)
        except OSError:
            return []
        found, size = pieces(data)
        self.offset += size
        return found

    async def give(self, data: bytes, at: int, *, eof: bool = False) -> int | None:
        """Hands on input that begins at offset `at` of all; how much the tasks have been given.

        None if they cannot be reached now. What they have already is not given twice, and nothing
        where none reads any more.
        """
        if self.shut:
            return at + len(data)
        answer = await self._ask(launch.feed(self.key, data, at=at, eof=eof))
        size, self.shut = answer.get("size"), answer.get("shut") is True
        return size if isinstance(size, int) else None

    async def resize(self, rows: int, columns: int) -> None:
        await self._ask(launch.window(self.key, rows, columns))

    async def note_read(self) -> None:
        """Tells the node now and then what it need not keep."""
        if self.offset - self.acknowledged >= EVERY + LAG:
            self.acknowledged = self.offset - LAG
            await self._ask(launch.acknowledge(self.key, self.acknowledged))

    async def forget(self) -> None:
        """All was read of a step that is over."""
        await self._ask(launch.forget(self.key))

    async def _ask(self, request: bytes) -> Mapping[str, object]:
        """The agent's answer; empty where there is none."""
        ask, socket = self.place.channel.ask, f"{self.place.folder}/agent.sock"
        try:
            return launch.reply(await self.desk.read(ask, socket, request, timeout=ASK_SECONDS))
        except (OSError, ValueError):
            return {}


@dataclass(slots=True)
class Gathered:
    """The io files of a step on all of its nodes, read and fed as one."""

    desk: Desk
    key: str
    each: list[Relay] = field(default_factory=list)
    """Empty until it is known which nodes these are."""

    def join(self, nodes: Sequence[NodeName], offsets: Sequence[int] = ()) -> None:
        """The nodes in their order, and how far each was read before. Raises Unknown."""
        known = dict(zip(nodes, offsets, strict=False))
        self.each = [
            Relay(self.desk, place_of(self.desk, node), self.key, node, known.get(node, 0))
            for node in nodes
        ]

    def offsets(self) -> str:
        """How far each was read, in one word."""
        return ",".join(str(relay.offset) for relay in self.each)

    async def follow(self, over: Callable[[], bool]) -> AsyncIterator[Sequence[Piece]]:
        """What is written, as it comes, and nothing now and then meanwhile.

        Ends when all was read of a step that is `over`.
        """
        pause = FIRST_PAUSE
        with self.desk.bells.listening(self.key, *(relay.node for relay in self.each)) as bell:
            while True:
                last = over()
                read = await asyncio.gather(*(relay.read() for relay in self.each))
                found = [piece for pieces_of_one in read for piece in pieces_of_one]
                yield found
                if found:
                    pause = FIRST_PAUSE
                elif last:
                    return
                else:
                    pause = await self._wait(bell, pause)

    async def _wait(self, bell: asyncio.Event, pause: float) -> float:
        """Until something rings or the pause is over; the next pause, longer for many nodes."""
        try:
            await asyncio.wait_for(bell.wait(), pause)
        except TimeoutError:
            longest = LONGEST_PAUSE * max(1, len(self.each) // MANY)
            return min(pause * GROWTH, longest)
        bell.clear()
        return FIRST_PAUSE

    async def give(self, data: bytes, at: int, *, eof: bool = False) -> int | None:
        """As `Relay.give`, to all: how much every node has."""
        taken = await asyncio.gather(*(relay.give(data, at, eof=eof) for relay in self.each))
        sizes = [size for size in taken if size is not None]
        return min(sizes) if sizes and len(sizes) == len(taken) else None

    def shut(self) -> bool:
        """Whether no task on any node reads any more."""
        return all(relay.shut for relay in self.each)

    async def resize(self, rows: int, columns: int) -> None:
        await asyncio.gather(*(relay.resize(rows, columns) for relay in self.each))

    async def note_read(self) -> None:
        await asyncio.gather(*(relay.note_read() for relay in self.each))

    async def forget(self) -> None:
        await asyncio.gather(*(relay.forget() for relay in self.each))


def place_of(desk: Desk, name: NodeName) -> Place:
    """The way to a node. Raises Unknown if it is gone."""
    node = desk.snapshot().nodes.get(name)
    if node is None or desk.reach is None:
        raise Unknown(f"node {name} is gone")
    return desk.reach.place(node)
