"""srun, salloc and sattach: standard input, signals, window size, terminal, salloc's own command.

Loaded by the shim for these three alone. It decides nothing: signals go to the service, which says
what to print and when to end. A lost connection is taken up again where it was lost: the service's
last word on how far it got is sent back, and what was printed since is not printed again.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import termios
from select import POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, poll
from time import monotonic

from line import Line  # type: ignore[import-not-found] # lies beside this file when installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

ENVELOPE, HELLO, INPUT, END, SIGNAL = b"E", b"h", b"i", b"z", b"s"
WINDOW, FILE, ENDED = b"w", b"f", b"q"
"""Kinds of frames that go up; ENDED tells of salloc's command."""
PLACE, WANT, TAKEN, RAW, RUN, KILL = b"p", b"i", b"k", b"t", b"r", b"g"
"""Kinds that come down beside the shim's own."""

MOST_AHEAD = 1 << 18
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
MISSING = b"missing"


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
        self.shim = shim
        self.program = command.program
        self.terminal = Terminal()
        self.child = Child()
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
        line.say(ENVELOPE, self.command.head() + self.shim.pack(self.command.files))
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
            data = posix.read(0, 65536)
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


class Child:
    """salloc's command: in a process group of its own, in the foreground of the terminal."""

    def __init__(self) -> None:
        self.pid = 0
        self.status = b""
        """How it ended: `exit N`, `signal N`, or `missing`."""
        self.tty = posix.isatty(0)

    def start(self, words: "list[bytes]", variables: "list[bytes]") -> None:
        if self.pid or self.status:
            return
        environment = dict(entry.split(b"=", 1) for entry in variables)
        path = found(words[0], environment.get(b"PATH", b"/usr/bin:/bin"))
        if not path:
            self.status = MISSING
            return
        sys.stdout.flush()
        self.pid = posix.fork()
        if not self.pid:
            self.become(path, words, environment)
        self.give_terminal(self.pid)

    def become(self, path: bytes, words: "list[bytes]", environment: "dict[bytes, bytes]") -> None:
        posix.setpgid(0, 0)
        self.give_terminal(posix.getpid())
        for number in (*FORWARDED, *QUIET, _signal.SIGPIPE):
            _signal.signal(number, _signal.SIG_DFL)
        try:
            posix.execve(path, words, environment)
        except OSError:
            posix._exit(126)

    def give_terminal(self, group: int) -> None:
        """Either of us may be the first to do it."""
        if not self.tty:
            return
        before = _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
        try:
            posix.tcsetpgrp(0, group)
        except OSError:
            self.tty = False  # not our terminal: we are in the background
        _signal.signal(_signal.SIGTTOU, before)

    def look(self) -> None:
        """Whether it has ended; one that was stopped stops us, as a shell's child does."""
        if not self.pid:
            return
        pid, status = posix.waitpid(self.pid, posix.WNOHANG | posix.WUNTRACED)
        if pid and posix.WIFSTOPPED(status):
            self.stop()
        elif pid:
            self.pid = 0
            self.give_terminal(posix.getpgrp())
            self.status = how(status)

    def stop(self) -> None:
        self.give_terminal(posix.getpgrp())
        posix.kill(0, _signal.SIGSTOP)
        self.give_terminal(self.pid)
        self.kill(_signal.SIGCONT)

    def kill(self, number: int) -> None:
        if self.pid:
            try:
                posix.killpg(self.pid, number)
            except OSError:
                return  # it has ended, or has not made its group yet


def how(status: int) -> bytes:
    if posix.WIFSIGNALED(status):
        return b"signal %d" % posix.WTERMSIG(status)
    return b"exit %d" % posix.WEXITSTATUS(status)


def found(name: bytes, path: bytes) -> bytes:
    """The program's file; empty if there is none."""
    if b"/" in name:
        return name if posix.access(name, posix.X_OK) else b""
    for folder in path.split(b":"):
        candidate = b"%b/%b" % (folder or b".", name)
        if is_program(candidate):
            return candidate
    return b""


def is_program(path: bytes) -> bool:
    try:
        regular = posix.stat(path).st_mode & 0o170000 == 0o100000
    except OSError:
        return False
    return regular and posix.access(path, posix.X_OK)


def window() -> bytes:
    """Rows and columns of the terminal; empty where standard output is none."""
    try:
        size = posix.get_terminal_size(1)
    except OSError:
        return b""
    return b"%d %d" % (size.lines, size.columns)


def unpacked(payload: bytes) -> "tuple[list[bytes], list[bytes]]":
    """Arguments and variables: their count, then each, all ended by NUL."""
    count, _, rest = payload.partition(b"\0")
    fields = rest.split(b"\0")[:-1]
    return fields[: int(count)], fields[int(count) :]
