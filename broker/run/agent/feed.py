"""What a step's tasks are to read: put down in `stdin` of its folder, so that no byte is lost.

`stdin.eof` says that nothing follows, `stdin.taken` how far every task has read, `stdin.shut` that
none reads any more.
"""

import contextlib
import os

from . import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loop import Loop

CHUNK = 1 << 18
MOST_AHEAD = 8 << 20
"""Bytes that may lie there unread; more is not taken for now."""
NOTED = 1 << 20
"""Bytes that are read before that is noted, and their room on the disk given back."""
END_OF_FILE = b"\x04"
"""What a terminal takes for the end of its input."""


class Input:
    """What comes for a step, as the agent puts it down: each byte once, however often told."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "stdin")

    def size(self) -> int:
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def add(self, data: bytes, at: int) -> int:
        """Takes bytes that begin at offset `at` of all input, or none; how much there is now."""
        size = self.size()
        if at > size or size - self.taken() > MOST_AHEAD:
            return size
        with open(self.path, "ab") as file:
            file.write(data[size - at :])
        return max(size, at + len(data))

    def end(self) -> None:
        with open(self.path + ".eof", "w", encoding="ascii"):
            return

    def over(self) -> bool:
        return os.path.exists(self.path + ".eof")

    def shut(self) -> None:
        with open(self.path + ".shut", "w", encoding="ascii"):
            return

    def is_shut(self) -> bool:
        return os.path.exists(self.path + ".shut")

    def taken(self) -> int:
        try:
            with open(self.path + ".taken", encoding="ascii") as file:
                return int(file.read() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def piece(self, at: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(at)
            return file.read(CHUNK)

    def note_taken(self, at: int) -> None:
        if not at:
            return
        with open(self.path + ".taken", "w", encoding="ascii") as file:
            file.write(str(at))
        with open(self.path, "rb+") as file:
            frames.give_back(file.fileno(), at)


class Sink:
    """A task's standard input, which we write."""

    def __init__(self, fd: int, terminal: bool = False) -> None:
        self.fd = fd
        self.terminal = terminal
        self.at = 0


class Feed:
    """Gives every task that reads all that came; waits for none."""

    def __init__(self, folder: str, loop: "Loop") -> None:
        self.input = Input(folder)
        self.loop = loop
        self.sinks = []  # type: list[Sink]
        self.noted = 0

    def turn(self) -> None:
        """To each task what has come for it and it takes now."""
        over = self.input.over()  # looked at before the size: nothing follows
        size = self.input.size()
        for sink in list(self.sinks):
            self._fill(sink, size, over)
        taken = min([sink.at for sink in self.sinks] or [size])
        if taken - self.noted >= NOTED or taken == size:
            self.noted = taken
            self.input.note_taken(taken)

    def _fill(self, sink: Sink, size: int, over: bool) -> None:
        while sink.at < size:
            if not self._give(sink):
                return
        self.loop.ignore(sink.fd)
        if over:
            if sink.terminal:
                with contextlib.suppress(OSError):
                    os.write(sink.fd, END_OF_FILE)
            self._close(sink)

    def _give(self, sink: Sink) -> bool:
        """One piece to the task; False if it takes no more now, or none ever."""
        try:
            sink.at += os.write(sink.fd, self.input.piece(sink.at))
        except BlockingIOError:
            self.loop.watch(sink.fd, self.turn, write=True)
            return False
        except OSError:
            self._close(sink)  # it reads no more
            return False
        return True

    def _close(self, sink: Sink) -> None:
        self.loop.ignore(sink.fd)
        os.close(sink.fd)
        self.sinks.remove(sink)
        if not self.sinks:
            self.input.shut()
