"""The agent's folder: a place per step, and what is still to be ended."""

import fcntl
import os
import re
import shutil
import time

from . import groups, journal, wire
from .left import STAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional

KEY = re.compile(r"[0-9A-Za-z_+-]+(/[0-9A-Za-z_+-]+){2}\Z")
ATTEMPT = re.compile(r"[0-9A-Za-z_+-]+/[0-9A-Za-z_+-]+\Z")
STEPS = "steps"
KILLS = "kills"
IO_KEPT = 86400
"""Seconds for which the io file of a step that is over waits for its reader."""


class RefusedError(Exception):
    """An order that is wrong and stays so."""


def checked(form: "Any", text: str) -> str:
    """The text, if it has the form. Raises RefusedError."""
    if not form.match(text):
        raise RefusedError(
            "{!r} is no name of a step or attempt, such as 4711/1/batch".format(text)
        )
    return text


def discard(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def lock(fd: int) -> bool:
    """Whether the lock is ours now; it then is of all forks that keep the descriptor."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def attempt_of(key: str) -> str:
    return key.rsplit("/", 1)[0]


def lay_out() -> None:
    """Folders that a job's user may pass through, to his own script only."""
    for name, mode in ((STEPS, 0o711), (KILLS, 0o700)):
        os.makedirs(name, exist_ok=True)
        os.chmod(name, mode)


def free() -> int:
    """Bytes that may still be written here."""
    found = os.statvfs(".")
    return found.f_bavail * found.f_frsize


def boot_id() -> str:
    """Changes with every start of this host, when nothing of before runs any more."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Place:
    """The folder of one step, its lock (held by a live supervisor) and its FIFO for orders."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.attempt = attempt_of(key)
        self.folder = os.path.join(STEPS, key.replace("/", "."))
        self.pid = None  # type: Optional[int]
        """The supervisor, if it is a child of this agent."""
        self.lock = -1
        self.door = -1
        self.started = False
        self.over = False
        """Whether its end is told; it then lives by what its setup left."""
        self.unkillable = False
        """Whether it was noted that what was left of it would not die."""

    @property
    def io(self) -> str:
        """Beside the folder, since it outlives it."""
        return self.folder + ".io"

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def make(self, step: "dict[str, Any]") -> None:
        """A new folder with the order in it; one never accepted gives way. Raises OSError."""
        self.remove()
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o711)
        journal.save(self.file("order"), {"key": self.key, "step": step, "boot": boot_id()})
        os.mkfifo(self.file("orders"), 0o600)
        self.open()
        journal.sync_folder(STEPS)

    def open(self) -> None:
        """The FIFO and the lock's file; being open at both ends, the FIFO loses no order."""
        self.door = os.open(self.file("orders"), os.O_RDWR | os.O_NONBLOCK)
        self.lock = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT, 0o600)

    def close(self) -> None:
        for fd in (self.door, self.lock):
            if fd >= 0:
                os.close(fd)
        self.door = self.lock = -1

    def seize(self) -> bool:
        """Takes the lock if no supervisor lives; a fork then holds it too."""
        return lock(self.lock)

    def hand_over(self) -> None:
        """Leaves the lock to the fork alone."""
        os.close(self.lock)
        self.lock = os.open(self.file("lock"), os.O_RDWR)

    def tell(self, line: bytes) -> None:
        """Raises OSError if the supervisor has not read 64 KiB of orders."""
        os.write(self.door, line)

    def nudge(self, line: bytes) -> None:
        """As `tell`, for what may be left out when 64 KiB of orders wait already."""
        try:
            self.tell(line)
        except BlockingIOError:
            return

    def end_attempt(self, how: "dict[str, Any]") -> None:
        """With what the step's setup left; this order is kept elsewhere."""
        self.tell(wire.encode(dict(how, do="kill", whole=True)))

    def end(self, how: "dict[str, Any]") -> None:
        """The order is on disk before it is given, so that it is kept after any kill."""
        journal.save(self.file("end"), how)
        self.end_again()

    def end_again(self) -> None:
        how = journal.load(self.file("end"))
        if how is not None:
            self.tell(wire.encode(dict(how, do="kill")))

    def order(self) -> "Optional[dict[str, Any]]":
        """What was to be run, if it was given since this host started."""
        value = journal.load(self.file("order"))
        return value if value is not None and value.get("boot") == boot_id() else None

    def stays(self) -> bool:
        """Whether what its setup left is to be there when it is over."""
        return os.path.exists(self.file(STAYS))

    def sessions(self) -> "set[int]":
        """Sessions that the step's phases began since this host's start."""
        if self.order() is None:
            return set()
        try:
            with open(self.file("sessions"), encoding="ascii") as file:
                return {int(line) for line in file.read().split()}
        except FileNotFoundError:
            return set()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        groups.drop(self.key)


def step_keys() -> "list[str]":
    """Steps that have a folder, oldest first."""
    found = [name.replace(".", "/") for name in os.listdir(STEPS)]
    return sorted(key for key in found if KEY.match(key))


def drop_old_io(live: "Iterable[str]") -> None:
    """Text of steps long over that nobody came to read."""
    kept = {Place(key).io for key in live}
    for name in os.listdir(STEPS):
        path = os.path.join(STEPS, name)
        if not name.endswith(".io") or path in kept:
            continue
        if time.time() - os.stat(path).st_mtime > IO_KEPT:
            discard(path)


def kill_file(attempt: str) -> str:
    return os.path.join(KILLS, attempt.replace("/", "."))


def pending_kills() -> "dict[str, dict[str, Any]]":
    """Ends that were promised and not yet confirmed."""
    found = {}
    for name in os.listdir(KILLS):
        value = journal.load(os.path.join(KILLS, name))
        if value is not None:
            found[name.replace(".", "/")] = value
    return found


def flaw(step: "dict[str, Any]") -> "Optional[str]":
    """What makes a step impossible to run; None if nothing does."""
    if step.get("hold"):
        return None
    phases = step.get("phases")
    if not phases or not all(phase.get("name") and phase.get("argv") for phase in phases):
        return "a step needs phases with a name and an argv each, or hold"
    return None
