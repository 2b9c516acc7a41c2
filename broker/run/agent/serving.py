"""`serve` starts the agent in the background, `ask` talks to it, `back` carries its calls."""

import os
import sys
import time

from . import back, commands, daemon, keeper, order, procs, spool, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Optional

READY = b"ready\n"
LOCK_PATIENCE = 3.0
"""A fork of an agent just killed may hold its lock for some milliseconds."""

OPTIONS = {
    "--dir": ("dir", os.path.abspath),
    "--node": ("node", str),
    "--wake": ("wake", os.path.abspath),
    "--slots": ("slots", os.path.abspath),
    "--slot-count": ("slot_count", int),
    "--idle-exit": ("idle_exit", float),
    "--lease": ("lease", float),
    "--deadline": ("deadline", float),
    "--notices": ("notices", str),
    "--commands": ("commands", str),
    "--ours": ("ours", bool),
    "--timeout": ("timeout", float),
}


class UsageError(Exception):
    """The command line cannot be understood."""


class Arguments(order.Options):
    """All that the command line may say."""

    def __init__(self, argv: "list[str]") -> None:
        order.Options.__init__(self)
        self.timeout = 30.0
        self.foreground = "--foreground" in argv
        rest = [word for word in argv if word != "--foreground"]
        for name, value in zip(rest[::2], rest[1::2] + [""] * (len(rest) % 2)):
            self._set(name, value)
        if not self.dir:
            raise UsageError("--dir is missing")

    def _set(self, name: str, value: str) -> None:
        if name not in OPTIONS:
            raise UsageError("unknown option {!r}".format(name))
        field, convert = OPTIONS[name]
        try:
            setattr(self, field, convert(value))  # type: ignore[operator]
        except ValueError:
            raise UsageError("{} {!r} is no number".format(name, value)) from None


def main(argv: "list[str]") -> int:
    """2 for words that cannot be understood."""
    try:
        options = Arguments(argv[1:])
    except UsageError as error:
        sys.stderr.write("agent: error: {}\n".format(error))
        return 2
    return COMMANDS[argv[0]](options)


def serve(options: Arguments) -> int:
    """0 once an agent serves the folder, this one or one that did already."""
    os.makedirs(options.dir, 0o711, exist_ok=True)
    os.chdir(options.dir)  # all names from here on are short and relative
    if options.lease or options.deadline or options.notices:
        keeper.start(sys.argv[0], options)
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    held = _lock(lock)
    if held is not None:
        sys.stdout.write(held + "\n")
        return 0 if held == "already" else 1
    if options.foreground:
        _serve(options, -1)
        return 0
    return _in_background(options, lock)


def _lock(fd: int) -> "Optional[str]":
    """None when the lock is ours, else why not."""
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        if spool.lock(fd):
            return None
        if _answers():
            return "already"
        if time.monotonic() > until:
            return "the lock is held, but nobody answers"
        time.sleep(0.02)


def _answers() -> bool:
    try:
        return bool(wire.ask(daemon.SOCKET, wire.encode({"do": "ping"}), 1.0))
    except OSError:
        return False


def _in_background(options: Arguments, lock: int) -> int:
    hear, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _detached(options, {lock, tell}, tell)
        os._exit(0)
    os.close(tell)
    os.close(lock)
    os.wait()
    if os.read(hear, len(READY)) == READY:
        sys.stdout.write(READY.decode())
        return 0
    sys.stderr.write("agent: it did not start: see {}/agent.log\n".format(options.dir))
    return 1


def _detached(options: Arguments, keep: "set[int]", tell: int) -> "NoReturn":
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open("agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, fd in enumerate((nothing, nothing, log)):
            os.dup2(fd, number)
        procs.close_others(keep | {0, 1, 2})
        _serve(options, tell)
        status = 0
    except BaseException:  # border: the log is all that is left to tell
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _serve(options: Arguments, tell: int) -> None:
    os.umask(0o022)
    os.chmod(".", 0o711)
    spool.lay_out()
    if options.commands:
        commands.lay_out(sys.argv[0], options.commands)
        options.wake = options.wake or os.path.abspath(commands.SOCKET)
    agent = daemon.Agent(options)
    agent.open()
    if tell >= 0:
        os.write(tell, READY)
        os.close(tell)
    agent.run()


def ask(options: Arguments) -> int:
    """Passes one line on and prints the answer; 1 if nobody answers."""
    path = os.path.join(options.dir, daemon.SOCKET)
    try:
        answer = wire.ask(path, sys.stdin.buffer.readline(), options.timeout)
    except OSError as error:
        sys.stderr.write("agent: {}: {}\n".format(path, error.strerror or error))
        return 1
    sys.stdout.buffer.write(answer)
    return 0 if answer else 1


COMMANDS = {"serve": serve, "ask": ask, "back": back.main}
