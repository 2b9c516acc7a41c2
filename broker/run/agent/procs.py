"""Processes of this host as /proc shows them: who descends from whom, and how to end them all."""

import base64
import contextlib
import ctypes
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Optional

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
MOST_ROUNDS = 100
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Process:
    """A line of the process table."""

    __slots__ = ("born", "parent", "session", "zombie")

    def __init__(self, parent: int, session: int, *, zombie: bool, born: int) -> None:
        self.parent = parent
        self.session = session
        self.zombie = zombie
        self.born = born
        """In ticks since the host's start: another process of its number has another one."""


def prctl(option: int, value: "int | bytes") -> bool:
    """Linux's prctl; False where there is none."""
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def close_others(keep: "set[int]") -> None:
    """Every descriptor of this process but these."""
    for fd in {int(name) for name in os.listdir("/proc/self/fd")} - keep:
        with contextlib.suppress(OSError):  # it was the one that listed the folder
            os.close(fd)


def table() -> "dict[int, Process]":
    """All processes that are there now."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = _read(int(name))
            if process is not None:
                found[int(name)] = process
    return found


def _read(pid: int) -> "Optional[Process]":
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            text = file.read()
    except OSError:
        return None  # it ended meanwhile
    # the name before ")" may hold anything, blanks and brackets too
    told = text[text.rfind(b")") + 2 :].split(None, 20)
    zombie = told[0] in {b"Z", b"X"}
    return Process(int(told[1]), int(told[3]), zombie=zombie, born=int(told[19]))


def below(processes: "dict[int, Process]", roots: "Iterable[int]") -> "set[int]":
    """All that descend from `roots`, which are left out themselves."""
    children = {}  # type: dict[int, list[int]]
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found = set()  # type: set[int]
    waiting = list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(new)
        waiting.extend(new)
    return found


def descendants(pid: int) -> "set[int]":
    """Living descendants of a process."""
    processes = table()
    return {one for one in below(processes, [pid]) if not processes[one].zombie}


def bears(pid: int, entry: bytes, place: str = "environ") -> bool:
    """Whether a process has that in its environment, or among its words (`cmdline`)."""
    try:
        with open("/proc/{}/{}".format(pid, place), "rb") as file:
            return entry in file.read().split(b"\0")
    except OSError:
        return False  # it ended, or is not ours to look at


def memory_kib(pid: int) -> "tuple[int, int]":
    """What the process holds in memory now, pages that it shares included; its address space."""
    try:
        with open("/proc/{}/statm".format(pid), "rb") as file:
            size, resident = file.read().split()[:2]
        return int(resident) * PAGE_KIB, int(size) * PAGE_KIB
    except (OSError, ValueError):
        return 0, 0  # it ended meanwhile


def moved_bytes(pid: int) -> "tuple[int, int]":
    """What the process read and wrote so far, and those of its children that it waited for."""
    try:
        with open("/proc/{}/io".format(pid), "rb") as file:
            rows = dict(line.split(b": ") for line in file.read().splitlines())
        return int(rows[b"rchar"]), int(rows[b"wchar"])
    except (OSError, ValueError, KeyError):
        return 0, 0  # it ended meanwhile, or is not to be looked at


def send(pids: "Iterable[int]", number: int) -> None:
    """The signal to each that still is there."""
    for pid in pids:
        # it may have ended, be set-uid under an ordinary user, or there is no such signal
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def end_all(find: "Callable[[], set[int]]") -> bool:
    """SIGKILL to all that `find` finds, stopped first so that none forks away; whether any was."""
    known = set()  # type: set[int]
    for _ in range(MOST_ROUNDS):
        new = find() - known
        if not new:
            break
        send(new, signal.SIGSTOP)
        known |= new
    send(known, signal.SIGKILL)
    return bool(known)


def strays(supervisors: "set[int]", sessions: "set[int]", mark: "Mark") -> "set[int]":
    """What a lost supervisor left: adopted by this process, in the step's sessions, or marked."""
    processes = table()
    me = os.getpid()
    roots = {
        pid
        for pid, process in processes.items()
        if (process.parent == me and pid not in supervisors)
        or process.session in sessions
        or mark.is_on(pid)
    }
    found = roots | below(processes, roots)
    return {pid for pid in found if not processes[pid].zombie} - {me}


class Mark:
    """Variables that only one attempt's processes have in their environment, and their user."""

    NAMES = (b"SLURM_JOB_ID=", b"SLURM_JOB_START_TIME=", b"SLURM_CLUSTER_NAME=")
    STEP = b"SLURM_STEP_ID="
    """Numbered steps have it too; what a batch step began may belong to any."""

    def __init__(self, step: "dict[str, Any]") -> None:
        self.uid = step.get("uid", os.geteuid())
        entries = base64.b64decode(step.get("env") or "").split(b"\0")
        self.entries = {entry for entry in entries if entry.startswith((*self.NAMES, self.STEP))}

    def is_on(self, pid: int) -> bool:
        if len(self.entries) < len(self.NAMES):
            return False  # too little to go by
        try:
            folder = "/proc/{}".format(pid)
            if os.stat(folder).st_uid != self.uid:
                return False
            with open(folder + "/environ", "rb") as file:
                return self.entries <= set(file.read().split(b"\0"))
        except OSError:
            return False
