"""What the nodes of a run wrote: copied from where it was left, each line under its node's name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 16
TAIL_BLOCK = 1 << 13


@dataclass(slots=True)
class Text:
    """Of one node; `title` stands before each of its lines, empty where there is but one node."""

    rank: int
    title: bytes = b""
    offset: int = 0
    _begun: bytes = b""
    """A line of which the end is to come."""

    def shown(self, part: bytes) -> bytes:
        """What is to be seen of it now."""
        self.offset += len(part)
        if not self.title:
            return part
        *lines, self._begun = (self._begun + part).split(b"\n")
        return b"".join(self.title + line + b"\n" for line in lines)

    def rest(self) -> bytes:
        """A last line that has no end, once nothing more can come."""
        begun, self._begun = self._begun, b""
        return self.title + begun + b"\n" if begun else b""

    def of_file(self, path: str, tail: int | None) -> Iterator[bytes]:
        """What is new of it, of the last lines alone with `tail`. Raises FileNotFoundError."""
        with Path(path).open("rb") as file:
            if tail is not None:
                self.offset = _tail_start(file, tail)
            file.seek(self.offset)
            while part := file.read(CHUNK):
                yield self.shown(part)

    def of_stream(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """The same of a stream that always begins at the beginning."""
        skip = self.offset
        for part in parts:
            fresh, skip = part[skip:], max(0, skip - len(part))
            if fresh:
                yield self.shown(fresh)


def of_nodes(count: int, only: int | None) -> list[Text]:
    """A text for each, or of the node `only` alone, which then needs no title."""
    if only is not None or count <= 1:
        return [Text(only or 0)]
    return [Text(rank, f"({name_of(rank)}, rank={rank}) ".encode()) for rank in range(count)]


def name_of(rank: int) -> str:
    """As SkyPilot calls the nodes of a cluster."""
    return "head" if rank == 0 else f"worker{rank}"


def copied(paths: Sequence[str], write: Callable[[bytes], object], *, only: int | None) -> bool:
    """Whole files of the nodes of a run that is over; whether there was any."""
    found = False
    for text in of_nodes(len(paths), only):
        if not 0 <= text.rank < len(paths):
            continue
        try:
            for part in text.of_file(paths[text.rank], None):
                write(part)
        except FileNotFoundError:
            continue
        found = True
        write(text.rest())
    return found


def _tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last so many lines begin."""
    end = position = file.seek(0, 2)
    found = b""
    while position > 0 and found.count(b"\n") <= lines:
        position = max(0, position - TAIL_BLOCK)
        file.seek(position)
        found = file.read(end - position)
    kept = b"".join(found.splitlines(keepends=True)[-lines:]) if lines > 0 else b""
    return end - len(kept)
