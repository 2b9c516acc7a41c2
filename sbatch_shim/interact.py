"""srun, salloc and sattach: standard input, signals, window size, terminal.

Loaded by the shim for these three alone. It decides nothing: signals go to the service, which says
what to print and when to end. A lost connection is taken up again where it was lost: the service's
last word on how far it got is sent back, and what was printed since is not printed again.
"""

import _signal  # type: ignore[import-not-found]
import posix
import termios
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll
from time import monotonic

from child import (  # type: ignore[import-not-found] # lies beside this file when installed
    Child,
    unpacked,
)
from line import Line  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

ENVELOPE, HELLO, INPUT, END, SIGNAL = b"E", b"h", b"i", b"z", b"s"
WINDOW, FILE, ENDED, MOVED = b"w", b"f", b"q", b"d"
"""Kinds of frames that go up; ENDED tells of salloc's command, MOVED of its folder."""
PLACE, WANT, TAKEN, RAW, RUN, KILL, MOVE = b"p", b"i", b"k", b"t", b"r", b"g", b"d"
"""Kinds that come down beside the shim's own."""

MOST_AHEAD = 4 << 20
"""Bytes of standard input that may be on their way."""
HELD_ON = 60.0
"""Seconds for which a service that went away is tried again once it had taken the request."""
RETRY = 0.25
FORWARDED = (
    _signal.SIGINT,
    _signal.SIGTERM,
    _signal.SIGHUP,
    _signal.SIGQUIT,
    _signal.SIGUSR1,
    _signal.SIGUSR2,
    _signal.SIGCONT,
    _signal.SIGALRM,
)
DEADLY = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
QUIET = (_signal.SIGCHLD, _signal.SIGWINCH)


def run(command: "Any", shim: "ModuleType") -> int:
    """The exit status that the service tells. Raises the shim's ContactError and RefusalError."""
    session = Session(command, shim)
    try:
        return session.run()
    finally:
        session.terminal.restore()


class Session:
    """One command from its request to its end, over as many connections as that takes."""

    def __init__(self, command: "Any", shim: "ModuleType") -> None:
        self.command = command
        self.head = command.head()
        self.shim = shim
        self.program = command.program
        self.terminal = Terminal()
        self.child = Child((*FORWARDED, *QUIET))
        self.line = None  # type: Any
        self.retry_at = 0.0
        self.give_up = monotonic() + (0 if command.argv in shim.VERSION_ASKED else command.patience)
        self.code = None  # type: Optional[int]
        self.place = b""
        self.written = {1: 0, 2: 0}
        """Bytes of each stream since the service last said its place."""
        self.skip = {1: 0, 2: 0}
        self.typed = Typed()
        self.signals, self.waker = posix.pipe2(posix.O_CLOEXEC | posix.O_NONBLOCK)

    def run(self) -> int:
        self.catch_signals()
        while self.code is None:
            self.turn()
        return self.code

    def catch_signals(self) -> None:
        _signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (*FORWARDED, *QUIET):
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, lambda *_: None)

    # ---------------------------------------------------------------- one turn

    def turn(self) -> None:
        """Waits for something to do, and does it."""
        if self.line is None and monotonic() >= self.retry_at:
            self.connect()
        for descriptor, events in self.waiting().poll(self.patience()):
            if descriptor == self.signals:
                self.take_signals()
            elif descriptor == 0:
                self.read_input()
            elif self.line is not None:
                self.serve(self.line, events)

    def waiting(self) -> "Any":
        watch = poll()
        watch.register(self.signals, POLLIN)
        if self.line is not None:
            watch.register(self.line.socket, POLLIN | (POLLOUT if self.line.unsent else 0))
            if self.typed.may_read():
                watch.register(0, POLLIN)
        return watch

    def patience(self) -> "Optional[int]":
        """Milliseconds until the service is tried again; None while there is a connection."""
        return None if self.line else max(1, int(1000 * (self.retry_at - monotonic())))

    # ---------------------------------------------------------------- the connection

    def connect(self) -> None:
        """Opens the connection and queues all that the service has to know."""
        try:
            socket = self.shim.connect(self.command.address)
        except self.shim.ContactError:
            self.lost()
            return
        line = self.line = Line(socket, self.command, self.shim)
        line.say(ENVELOPE, self.head + self.shim.pack(self.command.files))
        line.say(HELLO, b"\0".join((self.place, b"%d" % self.typed.taken, window())))
        self.skip = dict(self.written)
        self.typed.again(line)
        if self.child.status:
            line.say(ENDED, self.child.status)

    def serve(self, line: "Any", events: int) -> None:
        try:
            if events & POLLOUT:
                line.send()
            if events & (POLLIN | POLLHUP | POLLERR):
                for kind, payload in line.hear():
                    self.obey(kind, payload)
        except self.shim.ContactError:
            self.lost()

    def lost(self) -> None:
        """Tries again later. Raises ContactError when that has taken too long."""
        if self.line is not None:
            self.line.socket.close()
            if self.place:
                self.give_up = monotonic() + HELD_ON
        self.line = None
        if self.code is None and monotonic() > self.give_up and not self.child.pid:
            raise self.shim.ContactError
        self.retry_at = monotonic() + (RETRY if self.place else self.shim.PAUSE)

    def say(self, kind: bytes, payload: bytes = b"") -> None:
        if self.line is not None:
            self.line.say(kind, payload)

    # ---------------------------------------------------------------- what the service says

    def obey(self, kind: bytes, payload: bytes) -> None:
        if kind in self.shim.STREAMS:
            self.copy(self.shim.STREAMS[kind], payload)
        elif kind == self.shim.EXIT:
            self.code = int(payload)
        elif kind == self.shim.EXEC:
            self.terminal.restore()
            import seldom  # type: ignore[import-not-found]  # noqa: PLC0415 - not on the usual way

            seldom.become(self.command, payload.split(b"\0")[:-1])
        elif kind == self.shim.ASK:
            self.send_file(payload)
        elif kind in ORDERS:
            ORDERS[kind](self, payload)
        else:
            raise self.shim.RefusalError(self.shim.UNKNOWN_FRAME % kind)

    def copy(self, stream: int, payload: bytes) -> None:
        skipped = min(self.skip[stream], len(payload))
        self.skip[stream] -= skipped
        self.written[stream] += len(payload) - skipped
        self.shim.write(stream, payload[skipped:], self.program)

    def note_place(self, payload: bytes) -> None:
        self.place, self.written, self.skip = payload, {1: 0, 2: 0}, {1: 0, 2: 0}

    def want_input(self, payload: bytes) -> None:
        self.typed.wanted = payload == b"1"

    def note_taken(self, payload: bytes) -> None:
        self.typed.note(int(payload))

    def make_raw(self, _payload: bytes) -> None:
        self.terminal.make_raw()

    def send_file(self, path: bytes) -> None:
        content, error = self.shim.read_file(path)
        self.command.files[path] = content, error
        self.say(FILE, b"%b\0%d\0%b" % (path, error, content))

    def move(self, folder: bytes) -> None:
        """Into another folder; its answer is the errno, 0 if we are there."""
        code = 0
        try:
            posix.chdir(folder)
        except OSError as error:
            code = error.errno or 0
        self.say(MOVED, b"%d" % code)

    def start_child(self, payload: bytes) -> None:
        self.child.start(*unpacked(payload))
        if self.child.status:
            self.say(ENDED, self.child.status)

    def kill_child(self, payload: bytes) -> None:
        self.child.kill(int(payload))

    # ---------------------------------------------------------------- what happens here

    def read_input(self) -> None:
        data = self.typed.read()
        self.say(INPUT if data else END, data)

    def take_signals(self) -> None:
        try:
            numbers = posix.read(self.signals, 512)
        except BlockingIOError:
            return
        for number in numbers:
            self.take_signal(number)

    def take_signal(self, number: int) -> None:
        if number == _signal.SIGCHLD:
            self.child.look()
            if self.child.status:
                self.say(ENDED, self.child.status)
        elif number == _signal.SIGWINCH:
            self.say(WINDOW, window())
        elif self.child.pid:
            self.child.kill(number)
        elif self.line is not None:
            self.say(SIGNAL, b"%d" % number)
        elif number in DEADLY:
            self.code = 128 + number


ORDERS = {
    PLACE: Session.note_place,
    WANT: Session.want_input,
    TAKEN: Session.note_taken,
    RAW: Session.make_raw,
    RUN: Session.start_child,
    KILL: Session.kill_child,
    MOVE: Session.move,
}


class Typed:
    """Standard input: what was read and is not known to have arrived is kept."""

    def __init__(self) -> None:
        self.wanted = False
        self.ended = False
        self.taken = 0
        """Bytes that the service has handed on."""
        self.kept = b""

    def may_read(self) -> bool:
        return self.wanted and not self.ended and len(self.kept) < MOST_AHEAD

    def read(self) -> bytes:
        """Some bytes; none at the end, which is also where there is nothing to read from."""
        try:
            data = posix.read(0, 262144)
        except BlockingIOError:
            return self.read_later()
        except OSError:
            data = b""
        self.ended = not data
        self.kept += data
        return data

    def read_later(self) -> bytes:
        watch = poll()
        watch.register(0, POLLIN | POLLHUP | POLLNVAL)
        watch.poll()
        return self.read()

    def note(self, taken: int) -> None:
        self.kept = self.kept[taken - self.taken :]
        self.taken = taken

    def again(self, line: "Any") -> None:
        """Over a new connection: what may not have arrived over the one before."""
        if self.kept:
            line.say(INPUT, self.kept)
        if self.ended:
            line.say(END, b"")


class Terminal:
    """The terminal's modes, as they were."""

    def __init__(self) -> None:
        self.before = None  # type: Optional[list[Any]]

    def make_raw(self) -> None:
        """Keys go to the task as they are; our own lines still begin at the left."""
        if self.before is not None or not posix.isatty(0):
            return
        self.before = termios.tcgetattr(0)
        modes = termios.tcgetattr(0)
        modes[0] &= ~(
            termios.IGNBRK
            | termios.BRKINT
            | termios.PARMRK
            | termios.ISTRIP
            | termios.INLCR
            | termios.IGNCR
            | termios.ICRNL
            | termios.IXON
        )
        modes[2] = modes[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
        modes[3] &= ~(
            termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN
        )
        termios.tcsetattr(0, termios.TCSANOW, modes)

    def restore(self) -> None:
        if self.before is not None:
            termios.tcsetattr(0, termios.TCSANOW, self.before)
            self.before = None


def window() -> bytes:
    """Rows and columns of the terminal; empty where standard output is none."""
    try:
        size = posix.get_terminal_size(1)
    except OSError:
        return b""
    return b"%d %d" % (size.lines, size.columns)
