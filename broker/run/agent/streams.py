"""Pipes and terminals between a step's tasks and the files through which their text passes."""

import contextlib
import errno
import fcntl
import os
import struct
import termios

from . import trouble
from .child import File
from .feed import Feed, Sink
from .frames import CODES, END, ERR, OUT, UNOPENED, Frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Loop
    from .tasks import Task

CHUNK = 1 << 16
SET_PIPE_SIZE = 1031
"""F_SETPIPE_SZ, which Python names from 3.10 on."""
WIDE = 1 << 20
"""Bytes that the pipe of a task's input may hold: much input passes with few turns."""
LONGEST_LINE = 1 << 16
"""Bytes without a line's end that are held back at most."""
FULL_PIPE = 32
"""Pieces after which a pipe that still has more has one who goes on writing."""


class Source:
    """One stream of one task that we read."""

    def __init__(self, fd: int, stream: bytes, rank: int) -> None:
        self.fd = fd
        self.stream = stream
        self.rank = rank
        self.held = b""
        """The begun line."""
        self.open = True
        self.into = None  # type: int | None
        """The file that its lines go into, each behind the task's number."""


class Streams:
    """All that passes through; `told` is called when there is more for who follows."""

    def __init__(self, folder: str, *, loop: "Loop", told: "Callable[[], None]") -> None:
        self.loop = loop
        self.frames = Frames(folder + ".io", told)
        self.feed = Feed(folder, loop)
        self.sources = []  # type: list[Source]
        self.theirs = []  # type: list[int]
        """Ends of pipes that are the tasks'."""
        self.paused = False
        self.by_line = True
        self.numbered = 0
        """Width of the numbers before lines that go into files; 0: tasks write these themselves."""
        self.written = []  # type: list[tuple[Source, Task, int]]
        """Sources whose file a task has yet to open: the number of its stream."""
        self.master = None  # type: int | None

    # ---------------------------------------------------------------- joining

    def join(self, tasks: "list[Task]", step: "dict[str, Any]") -> None:
        """Puts pipes, or for the first task of a `pty` step a terminal, where the order says."""
        self.numbered = step.get("numbered") or 0
        self.by_line = not step.get("unbuffered") and not step.get("pty")
        for task in tasks:
            self._join(task, step)

    def _join(self, task: "Task", step: "dict[str, Any]") -> None:
        if step.get("pty") and task.rank == 0:
            self._terminal(task, step)
            return
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = task.streams[number]
            if task.relays(name):
                task.streams[number] = self._pipe(task.rank, number)
            elif number and self.numbered and isinstance(stream, File) and stream.is_kept:
                stream.through = self._pipe(task.rank, number)
                self.written.append((self.sources[-1], task, number))

    def _pipe(self, rank: int, number: int) -> int:
        read, write = os.pipe2(os.O_CLOEXEC)
        ours, theirs = (write, read) if number == 0 else (read, write)
        os.set_blocking(ours, False)
        self.theirs.append(theirs)
        if number == 0:
            with contextlib.suppress(OSError):  # no more than this user may have
                fcntl.fcntl(ours, SET_PIPE_SIZE, WIDE)
            self.feed.sinks.append(Sink(ours))
        else:
            self._listen(Source(ours, OUT if number == 1 else ERR, rank))
        return theirs

    def _terminal(self, task: "Task", step: "dict[str, Any]") -> None:
        master, slave = os.openpty()
        os.set_blocking(master, False)
        if os.geteuid() == 0:
            os.fchown(slave, step["uid"], -1)
        self.master = master
        self.resize(*step["pty"])
        self.theirs.append(slave)
        self.feed.sinks.append(Sink(os.dup(master), terminal=True))
        self._listen(Source(master, OUT, task.rank))
        task.streams = [slave, slave, slave]

    def _listen(self, source: Source) -> None:
        self.sources.append(source)
        self._watch(source)

    def _watch(self, source: Source) -> None:
        self.loop.watch(source.fd, lambda: self.read(source))

    def hand_over(self) -> None:
        """The tasks have their ends: ours of them go, so that an end of file is seen."""
        for fd in self.theirs:
            os.close(fd)
        self.theirs = []
        for source, task, number in self.written:
            opened = task.streams[number]
            source.into = opened if isinstance(opened, int) else None
        self.feed.turn()

    def resize(self, rows: int, columns: int) -> None:
        """The terminal's size; who reads it is told by SIGWINCH."""
        if self.master is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    # ---------------------------------------------------------------- passing on

    def read(self, source: Source) -> bool:
        """Passes on what is there now; False once there is no more."""
        try:
            data = os.read(source.fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EIO:  # so a terminal says that nobody writes any more
                trouble.tell()
            data = b""
        if data:
            self._pass_on(source, source.held + data)
        else:
            self._shut(source)
        self.pause_or_go_on()
        return bool(data)

    def _pass_on(self, source: Source, data: bytes) -> None:
        end = len(data)
        if (self.by_line or source.into is not None) and end < LONGEST_LINE:
            end = data.rfind(b"\n") + 1
        source.held = data[end:]
        if end:
            self._write(source, data[:end])

    def _write(self, source: Source, data: bytes) -> None:
        if source.into is None:
            self.frames.write(source.stream, source.rank, data)
            return
        start = b"%*d: " % (self.numbered, source.rank)
        lines = data[:-1].split(b"\n") if data.endswith(b"\n") else data.split(b"\n")
        try:
            os.write(source.into, b"".join(start + line + b"\n" for line in lines))
        except OSError:
            trouble.tell()  # the user's disk is full: so a program's own line would be lost

    def _flush(self, source: Source) -> None:
        if source.held:
            self._write(source, source.held)
            source.held = b""

    def _shut(self, source: Source) -> None:
        if source.open:
            self._flush(source)
            self.loop.ignore(source.fd)
            source.open = False

    def pause_or_go_on(self) -> None:
        """Stops reading while nothing more can be passed on."""
        pause = self.frames.choked()
        if pause == self.paused:
            return
        self.paused = pause
        for source in self.sources:
            if source.open and pause:
                self.loop.ignore(source.fd)
            elif source.open:
                self._watch(source)

    def acknowledge(self, at: int) -> None:
        self.frames.acknowledge(at)
        self.pause_or_go_on()

    def push(self) -> None:
        """Once more to a disk that was full."""
        self.frames.push()
        self.pause_or_go_on()

    def say(self, line: bytes, rank: int) -> None:
        """A line of the agent's own: that task's, as slurmstepd's are the first one's."""
        self.frames.write(ERR, rank, line)

    # ---------------------------------------------------------------- ending

    def ended(self, rank: int, outcome: "tuple[int, int]") -> None:
        """All that the task wrote, then its end; what it left behind may write more."""
        for source in self.sources:
            if source.rank == rank:
                self._drain(source)
        self.frames.write(END, rank, CODES.pack(*outcome))

    def unopened(self, rank: int, what: "tuple[int, int]") -> None:
        """A task cannot begin for want of that stream, for that errno."""
        self.frames.write(UNOPENED, rank, CODES.pack(*what))

    def _drain(self, source: Source) -> None:
        for _ in range(FULL_PIPE):
            if not (source.open and self.read(source)):
                break
        self._flush(source)

    def finish(self) -> None:
        """When no process is left: what still is in pipes."""
        for source in self.sources:
            self._drain(source)
        self.frames.finish()
