"""Which file goes where: three views of one folder (here, there, as both had it last) compared.

Pure. A file travels when its side changed it and the other did not; nothing is ever deleted. Of one
whose content is there already only time and mode travel.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import NoneType
from typing import Any, NamedTuple

from broker.model import octets

PART = 8 << 20
"""Bytes of a file that travel in one piece: an interrupted transfer goes on behind the last one."""
LONGEST_NAME = 255
"""Bytes; what does not fit is named by a digest, as `below.named` does it."""
BATCH = 32 << 20
"""Bytes that travel together, in memory."""
STREAM = 1 << 30
"""The same from process to process."""


class Entry(NamedTuple):
    """A file, folder or link below the folder."""

    kind: str
    """`f`, `d` or `l`."""
    size: int
    mtime: int
    """Nanoseconds; kept on the way, so that both sides show the same."""
    mode: int
    target: str | None
    """Of a link."""


KINDS = frozenset("fdl")
LARGEST = 1 << 63
CONFLICT = Entry("?", 0, 0, 0, None)
"""Nothing looks like this: what comes is kept beside whatever is there."""
Manifest = Mapping[str, Entry]
"""By path relative to the folder; folders before what they hold."""


def entries(rows: Mapping[str, Iterable[Any]]) -> dict[str, Entry]:
    """What a side lists. Raises ValueError for what no folder holds: nodes may say anything."""
    found = {path: Entry(*row) for path, row in rows.items()}
    for path, one in found.items():
        if not _may_be(one):
            raise ValueError(f"{path!r:.80} is listed as {one!r:.80}")
    return found


def _may_be(one: Entry) -> bool:
    numbers = one.size, one.mtime, one.mode
    whole = all(type(number) is int and abs(number) < LARGEST for number in numbers)
    texts = one.kind in KINDS and isinstance(one.target, str if one.kind == "l" else NoneType)
    return whole and texts and one.size >= 0 and 0 <= one.mode <= 0o7777


class Mark(NamedTuple):
    """How a path looked on both sides when its content was the same."""

    here: Entry
    there: Entry
    kept: bool = False
    """It was not: what stands here is its user's, the node's was put beside it."""

    def turned(self) -> "Mark":
        """Seen from the other side, for which nothing that was kept may be replaced."""
        return Mark(self.there, CONFLICT if self.kept else self.here)


def alike(one: Entry, other: Entry) -> bool:
    """Whether nothing has to travel between these."""
    if one.kind != other.kind or one.kind == "d":
        return one.kind == other.kind
    return one == other


@dataclass(frozen=True, slots=True)
class Move:
    """One path that travels; `over` is what it may replace there, None for nothing."""

    path: str
    entry: Entry
    over: Entry | None = None
    same: bool = False
    """Whether what is there has the same content."""

    @property
    def size(self) -> int:
        """Bytes that travel."""
        return self.entry.size if self.entry.kind == "f" and not self.same else 0


@dataclass(slots=True)
class Plan:
    """What one way of a synchronisation comes to."""

    moves: list[Move] = field(default_factory=list)
    settled: dict[str, Mark] = field(default_factory=dict)
    """Alike on both sides: the giver's is `here`."""
    clashes: list[Move] = field(default_factory=list)
    """Changed on both sides since they were alike."""


def one_way(giver: Manifest, taker: Manifest, last: Mapping[str, Mark]) -> Plan:
    """What the giver has that the taker should get; of the marks the giver's are `here`."""
    plan = Plan()
    for path, entry in giver.items():
        there, before = taker.get(path), last.get(path)
        if there is not None and alike(entry, there):
            plan.settled[path] = Mark(entry, there)
        elif before is not None and alike(entry, before.here):
            continue  # only the taker changed it, or took it away
        elif there is None or (before is not None and alike(there, before.there)):
            plan.moves.append(Move(path, entry, there, same=_content_is_there(entry, there)))
        else:
            plan.clashes.append(Move(path, entry, there))
    return plan


def _content_is_there(entry: Entry, there: Entry | None) -> bool:
    """Whether the two differ in their modes alone."""
    return there is not None and entry.kind == "f" and entry[:3] == there[:3]


def doubtful(moves: Iterable[Move], least: int = 0) -> list[str]:
    """Files of so many bytes that differ in time alone: their content decides."""
    return [
        move.path
        for move in moves
        if move.over is not None
        and move.entry.kind == move.over.kind == "f"
        and move.entry.size == move.over.size >= least
        and not move.same
    ]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a move."""

    move: Move
    offset: int
    length: int


def draft(move: Move) -> str:
    """Where a file that takes several pieces grows on the other side."""
    folder, slash, name = move.path.rpartition("/")
    made = f".{name}.spz-{move.entry.mtime}"
    if len(octets.raw(made)) > LONGEST_NAME:
        digest = sha256(octets.raw(name)).hexdigest()
        made = f".{digest}.spz-{move.entry.mtime}"
    return f"{folder}{slash}{made}"


def long_ones(moves: Iterable[Move]) -> list[Move]:
    """Files that take several pieces: of these some may be there already."""
    return [move for move in moves if move.size > PART]


def batches(
    moves: Iterable[Move], begun: Mapping[str, int], most: int = BATCH
) -> Iterator[list[Piece]]:
    """The moves in their order, cut into pieces of which at most so many bytes travel together.

    `begun` are bytes by path that an earlier transfer has brought.
    """
    batch: list[Piece] = []
    room = most
    for piece in _pieces(moves, begun):
        if batch and piece.length > room:
            yield batch
            batch, room = [], most
        batch.append(piece)
        room -= piece.length
    if batch:
        yield batch


def _pieces(moves: Iterable[Move], begun: Mapping[str, int]) -> Iterator[Piece]:
    for move in moves:
        size = move.size
        start = min(begun.get(move.path, 0) // PART, max(0, size - 1) // PART) * PART
        for offset in range(start, max(size, 1), PART):
            yield Piece(move, offset, min(PART, size - offset))
