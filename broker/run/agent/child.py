"""From fork to exec: the process that becomes a step's shell. It never returns to its maker."""

import array
import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
import termios
import time
import traceback

from . import (
    binding,
    container,
    identity,
    inside,
    kit,
    left,
    login,
    profile,
    runtime,
    scratch,
    wire,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, NoReturn, Union

    Stream = Union[int, "File"]

TASK_PID = b"SLURM_TASK_PID"
"""An entry of the environment that only the node can fill in; left alone unless it is empty."""
READY = b"ready"
UNOPENED = struct.Struct("ii")
"""What a child says of a file that it cannot open: the stream's number, the errno."""


class CannotOpenError(Exception):
    """An input or output file cannot be opened: which stream, and the errno."""

    def __init__(self, number: int, code: int, text: str) -> None:
        super().__init__(text)
        self.number = number
        self.code = code


class File:
    """A stream that the child is to open, since only it is the user."""

    def __init__(self, name: str, path: bytes, flags: int) -> None:
        self.name = name
        self.path = path
        self.flags = flags
        self.through = None  # type: int | None
        """What the program writes into where the supervisor writes the file."""

    @property
    def is_kept(self) -> bool:
        """Whether what is written is to be found again."""
        return self.path != os.devnull.encode()


class Program:
    """What one task runs; a stream is a descriptor that we have, or a file to be opened."""

    def __init__(
        self, argv: "list[bytes]", variables: bytes, streams: "list[Stream]", *, place: int = 0
    ) -> None:
        self.argv = argv
        self.place = place
        """Of the task among those of its node."""
        self.variables = variables
        """NAME=value entries over those of the step, separated by NUL."""
        self.streams = streams


def fork(step: "dict[str, Any]", program: Program) -> "tuple[int, Door]":
    """The process id of a task's first process, which waits behind the door to be let go."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _never_return(Phase(step, program), Door(theirs))
    theirs.close()
    return pid, Door(ours)


def _never_return(phase: "Phase", door: "Door") -> "NoReturn":
    try:
        phase.prepare(door)
        if door.may_go():
            phase.execute()
    except BaseException:  # border: nothing of the supervisor may run in this process
        traceback.print_exc()
    finally:
        os._exit(1)


class Door:
    """A socket between supervisor and child: what became of the files, and leave to go."""

    def __init__(self, sock: "socket.socket") -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def tell_ready(self, files: "list[int]") -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files).tobytes())]
        self.sock.sendmsg([READY], rights if files else [])

    def tell_unopened(self, error: CannotOpenError) -> None:
        self.sock.send(UNOPENED.pack(error.number, error.code))

    def hear(self) -> "tuple[bytes, list[int]]":
        """What the child says, READY if it is, and the files that it opened."""
        room = socket.CMSG_LEN(3 * array.array("i").itemsize)
        report, rights, _flags, _peer = self.sock.recvmsg(1 << 16, room, socket.MSG_CMSG_CLOEXEC)
        files = array.array("i")
        for _level, _kind, data in rights:
            files.frombytes(data)
        return report, list(files)

    def let_go(self) -> None:
        try:
            self.sock.send(b"go")
        except OSError:
            return  # it died meanwhile: its status tells

    def may_go(self) -> bool:
        """Waits for leave; False when the supervisor is gone."""
        return bool(self.sock.recv(2))


class Phase:
    """What is to be run, as whom, with which files."""

    def __init__(self, step: "dict[str, Any]", program: Program) -> None:
        self.step = step
        self.argv = program.argv
        self.program = program
        self.files = []  # type: list[int]
        self.cwd = wire.text(step.get("cwd") or "/")

    def prepare(self, door: Door) -> None:
        """Becomes the user, opens the files and says so."""
        os.setsid()
        _forget_signals()
        try:
            _join(self.step.get("group"))
            _join(self.step.get("fence"))
            with contextlib.suppress(OSError):  # then it is counted by its processes alone
                _join(self.step.get("account"))
            _hold_to(self.step.get("cpu_ids") or ())
            identity.become(self.step)
            opened = self._open_all()
        except (OSError, CannotOpenError) as error:
            print("cannot launch:", error, file=sys.stderr, flush=True)
            if isinstance(error, CannotOpenError):
                door.tell_unopened(error)
            os._exit(1)
        door.tell_ready(opened)

    def _open_all(self) -> "list[int]":
        """Those that were opened here; standard error may be standard output's file."""
        written = {}  # type: dict[bytes, int]
        found = {}  # type: dict[int, int]
        for number in (1, 2, 0):
            stream = self.program.streams[number]
            if isinstance(stream, File):
                same = written.get(stream.path) if number else None
                found[number] = _open(number, stream) if same is None else os.dup(same)
                written[stream.path] = found[number]
        self.files = [
            _written(stream, found.get(number))
            for number, stream in enumerate(self.program.streams)
        ]
        return [found[number] for number in sorted(found)]

    def execute(self) -> "NoReturn":
        """Puts the files in place and becomes the program; errno is the exit code if not."""
        for number, fd in enumerate(self.files):
            os.dup2(fd, number)
        if self.step.get("pty") and os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self._enter()
        identity.apply_soft_limits(self.step)
        path = self.argv[0]
        try:
            environment = self._environment()
            environment.update(binding.hold(self.step, self.program.place))
            argv = container.wrapped(self.step, self.argv, environment)
            path = locate(argv[0], environment)
            os.execve(path, [path, *argv[1:]], environment)  # its name is where it was found
        except runtime.ContainerError as error:
            _say(b"container: " + wire.text(str(error)))
            os._exit(1)
        except OSError as error:
            _say(_cannot_execute(path, error))
            os._exit(error.errno or 1)

    def _enter(self) -> None:
        try:
            os.chdir(self.cwd)
        except OSError as error:
            reason = os.strerror(error.errno or 0).encode()
            _say(b"couldn't chdir to `%b': %b: going to /tmp instead" % (self.cwd, reason))
            os.chdir("/tmp")

    def _environment(self) -> "dict[bytes, bytes]":
        values = wire.variables(self.step)
        login.below(values, self.step)
        for entry in self.program.variables.split(b"\0"):
            name, equals, value = entry.partition(b"=")
            if name and equals:
                values[name] = value
        values.pop(inside.NAME, None)  # what a step within another runs is not the other's
        kit.prefixed(values, self.step)
        profile.add(values, self.step)
        left.add(values, self.step)
        scratch.add(values, self.step)
        if values.get(TASK_PID) == b"":
            values[TASK_PID] = str(os.getpid()).encode()
        return values


def _join(door: "str | None") -> None:
    """Into the step's control group, with all that comes of us."""
    if door:
        with open(door, "w", encoding="ascii") as file:
            file.write("0")


def _hold_to(cpus: "Iterable[int]") -> None:
    """These of the node's cpus, so far as they are there: nothing else is to be had of others."""
    there = set(cpus) & os.sched_getaffinity(0)
    if there:
        os.sched_setaffinity(0, there)


def _written(stream: "Stream", opened: "int | None") -> int:
    """What the program has for a stream."""
    if not isinstance(stream, File):
        return stream
    assert opened is not None
    return opened if stream.through is None else stream.through


def _open(number: int, stream: File) -> int:
    try:
        return _open_in_made_folder(stream.path, stream.flags)
    except OSError as error:
        reason = "{} {!r}: {}".format(stream.name, stream.path, error.strerror)
        raise CannotOpenError(number, error.errno or 0, reason) from error


def _open_in_made_folder(path: bytes, flags: int) -> int:
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)  # as Slurm does since 23.02
        return os.open(path, flags, 0o666)


def _forget_signals() -> None:
    """Defaults for all, since what is ignored stays so through exec (Python ignores SIGPIPE)."""
    signal.set_wakeup_fd(-1)
    for number in set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
        with contextlib.suppress(OSError, ValueError):  # not every number is a signal
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def locate(name: bytes, environment: "dict[bytes, bytes]") -> bytes:
    """Where a command without a slash is, by the step's own PATH; the name itself if nowhere.

    Where none that may be run is there, the first file of that name is, as with Slurm (22.05).
    """
    if b"/" in name:
        return name
    if b"PATH" not in environment:
        return name  # `srun --export=NAME=value` finds nothing, in Slurm neither
    folders = environment[b"PATH"].split(b":")
    paths = (os.path.join(folder or b".", name) for folder in folders)
    files = [path for path in paths if os.path.isfile(path)]
    return next((path for path in files if os.access(path, os.X_OK)), (files or [name])[0])


def _say(message: bytes) -> None:
    os.write(2, words.error(message, time.time()))


def _cannot_execute(path: bytes, error: OSError) -> bytes:
    reason = os.strerror(error.errno or 0).encode()
    interpreter = _interpreter(path) if error.errno in {errno.ENOENT, errno.EACCES} else b""
    if interpreter:
        return b"execve(): bad interpreter(%b): %b" % (interpreter, reason)
    return b"execve(): %b: %b" % (path, reason)


def _interpreter(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            start = file.read(255)
    except OSError:
        return b""
    return start[2:].split(b"\n", 1)[0] if start.startswith(b"#!") else b""
