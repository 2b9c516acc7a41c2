"""salloc's own command, where it was typed.

Loaded by `interact` alone. The command has a process group of its own, and the terminal while it
is in the foreground.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys

MISSING = b"missing"


class Child:
    """The command, from its start to how it ended."""

    def __init__(self, caught: "tuple[int, ...]") -> None:
        self.caught = caught
        """Signals that we catch and it does not."""
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
        for number in (*self.caught, _signal.SIGPIPE):
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


def unpacked(payload: bytes) -> "tuple[list[bytes], list[bytes]]":
    """Arguments and variables: their count, then each, all ended by NUL."""
    count, _, rest = payload.partition(b"\0")
    fields = rest.split(b"\0")[:-1]
    return fields[: int(count)], fields[int(count) :]
