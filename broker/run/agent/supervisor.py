"""The process that watches one step: starts its phases, ends it in time, notes how it ended."""

import base64
import os
import resource
import select
import signal
import time

from . import child, journal, procs, trouble, wire, words
from .slots import Slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn, Optional

LAUNCH_FAILED = (0, 53)
"""Exit code and signal of a step whose files cannot be opened, as Slurm reports it."""
SWEEP_AGAIN = 0.05
WRITE_AGAIN = 1.0
LONGEST_SWEEP = 1.0
SAMPLE_FIRST = 0.2
SAMPLE_LAST = 30.0
"""Seconds between looks at a step's memory; they double from the first to the last."""
NAME = b"spz-step"


class Order:
    """What a supervisor is given by its agent."""

    __slots__ = (
        "agent_socket",
        "door",
        "folder",
        "key",
        "node",
        "slot_count",
        "slot_folder",
        "step",
    )

    def __init__(self, key: str, folder: str, *, step: "dict[str, Any]", node: str) -> None:
        self.key = key
        self.folder = folder
        self.step = step
        self.node = node
        self.agent_socket = ""
        self.door = -1
        """Descriptor of the FIFO on which the agent gives orders."""
        self.slot_folder = ""
        self.slot_count = 0

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)


def main(order: Order, keep: "set[int]") -> "NoReturn":
    """Runs in a fork of the agent and never returns; of its descriptors only `keep` stay."""
    status = 70
    try:
        wake = _settle(keep)
        Supervisor(order, wake).run()
        status = 0
    except BaseException:  # border: nothing of the agent may run in this process
        trouble.tell()
    finally:
        os._exit(status)


def _settle(keep: "set[int]") -> int:
    """Away from the agent: own session, no descriptors of its, orphans come here."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    for fd in {int(name) for name in os.listdir("/proc/self/fd")} - keep - {0, 1, 2}:
        _close(fd)
    procs.prctl(procs.PR_SET_CHILD_SUBREAPER, 1)
    procs.prctl(procs.PR_SET_NAME, NAME)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # at shutdown the step ends first, then its record
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    return wake


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return  # it was the one that listed the folder


class Supervisor:
    """Lives as long as any process of the step; holds the step's lock all the time."""

    def __init__(self, order: Order, wake: int) -> None:
        self.order = order
        self.step = order.step
        self.wake = wake
        self.phases = [] if self.step.get("hold") else list(self.step["phases"])
        self.number = -1
        self.leader = None  # type: Optional[int]
        self.door = None  # type: Optional[child.Door]
        self.files = []  # type: list[int]
        self.started = None  # type: Optional[float]
        self.cause = ""
        """Why it was made to end; empty while nobody made it."""
        self.outcome = None  # type: Optional[tuple[int, int]]
        self.childless = True
        self.due = {}  # type: dict[str, float]
        self.sweep_again = SWEEP_AGAIN
        self.sample_again = SAMPLE_FIRST
        self.peak_kib = 0
        self.inbox = b""
        self.slots = _slots(order)

    # ---------------------------------------------------------------- the loop

    def run(self) -> None:
        self.take_turn()
        while self.outcome is None or not self.childless:
            self.fire_due()
            if self.outcome is None or not self.childless:
                self.wait_and_see()
        self.finish()

    def wait_and_see(self) -> None:
        watched = [self.wake, self.order.door] + ([self.door] if self.door else [])
        ready = select.select(watched, [], [], self.patience())[0]
        if self.wake in ready:
            os.read(self.wake, 4096)
        if self.door in ready:
            self.hear_child()
        if self.order.door in ready:
            self.obey_all()
        self.reap()

    def patience(self) -> "Optional[float]":
        return max(0.0, min(self.due.values()) - time.monotonic()) if self.due else None

    def fire_due(self) -> None:
        now = time.monotonic()
        for name in sorted(self.due, key=self.due.__getitem__):
            if self.due.get(name, now + 1) <= now:
                del self.due[name]
                DUE[name](self)

    def after(self, name: str, seconds: float) -> None:
        """Sets a deadline; an earlier one of the same name stays."""
        at = time.monotonic() + seconds
        self.due[name] = min(at, self.due.get(name, at))

    # ---------------------------------------------------------------- beginning

    def take_turn(self) -> None:
        """Begins as soon as this host has room for one more step."""
        if self.started is not None or self.outcome is not None or self.number >= 0:
            return
        if self.slots is None or self.slots.take():
            self.begin()
        else:
            self.due["turn"] = time.monotonic() + self.slots.again()

    def begin(self) -> None:
        """The next phase; a step without any only lives until it is ended."""
        if not self.phases:
            self.note_start(os.getpid())
            return
        self.number += 1
        try:
            argv = self.arguments(self.phases[self.number])
            self.leader, self.door = child.fork(self.step, argv, self.files)
        except OSError:
            trouble.tell()
            self.cause, self.outcome = "launch_failed", LAUNCH_FAILED
            return
        self.childless = False

    def arguments(self, phase: "dict[str, Any]") -> "list[bytes]":
        path = self.write_script(phase.pop("script")) if phase.get("script") else b""
        return [child.text(item) if isinstance(item, str) else path for item in phase["argv"]]

    def write_script(self, script: str) -> bytes:
        """The script as a file of the user's that only the user may read and run."""
        path = os.fsencode(self.order.file("slurm_script"))
        if os.path.lexists(path):
            os.unlink(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with open(fd, "wb") as file:
            file.write(base64.b64decode(script))
            if os.geteuid() == 0:
                os.fchown(file.fileno(), self.step["uid"], self.step["gid"])
            os.fchmod(file.fileno(), 0o700)
        return path

    def hear_child(self) -> None:
        """Lets the child go, once its files are open and its start is on disk."""
        assert self.door is not None
        assert self.leader is not None
        door, self.door = self.door, None
        ready, files = door.hear()
        self.files = self.files or files
        if ready:
            self.note_start(self.leader)
        if ready and not self.cause:
            door.let_go()
        self.cause = self.cause or ("" if ready else "launch_failed")
        door.close()

    def note_start(self, pid: int) -> None:
        patiently(lambda: self.add_session(pid))
        if self.started is None:
            self.started = time.time()
            began = {"pid": pid, "started": self.started}
            patiently(lambda: journal.save(self.order.file("started"), began))
            self.set_clock()
            self.after("sample", SAMPLE_FIRST)
            wire.poke(self.order.agent_socket, self.order.key)

    def add_session(self, pid: int) -> None:
        with open(self.order.file("sessions"), "a", encoding="ascii") as file:
            file.write("{}\n".format(pid))

    def set_clock(self) -> None:
        limit = self.step.get("time_limit")
        if limit is None:
            return
        self.after("limit", limit)
        if self.step.get("warn"):
            self.after("warn", max(0, limit - self.step["warn"]["before"]))

    def sample(self) -> None:
        """As Slurm counts memory: all processes of the step together, looked at now and then."""
        if self.childless:
            return
        self.peak_kib = max(self.peak_kib, procs.memory_kib(self.everything()))
        self.sample_again = min(2 * self.sample_again, SAMPLE_LAST)
        self.after("sample", self.sample_again)

    # ---------------------------------------------------------------- orders

    def obey_all(self) -> None:
        self.inbox += os.read(self.order.door, 1 << 16)
        *lines, self.inbox = self.inbox.split(b"\n")
        for line in lines:
            order = wire.decode(line)
            ORDERS[order["do"]](self, order)

    def obey_turn(self, _order: "dict[str, Any]") -> None:
        self.take_turn()

    def obey_kill(self, order: "dict[str, Any]") -> None:
        self.end(order["cause"], order["grace"])

    def obey_signal(self, order: "dict[str, Any]") -> None:
        self.signal(order["signal"], order["scope"])

    def signal(self, number: int, scope: str) -> None:
        """As scancel: `batch` is the shell, `full` everything, `steps` all but a batch step."""
        if self.leader is None or self.door is not None:
            return
        pids = SCOPES[scope](self)
        if number in words.SIGNALS and self.leader in pids:
            self.say(words.by_signal(number))
        self.send(pids, number)

    def send(self, pids: "set[int]", number: int) -> None:
        """To the shell first, or it would tell in the output that its child was killed."""
        procs.send(sorted(pids, key=lambda pid: (pid != self.leader, pid)), number)

    def is_batch(self) -> bool:
        return self.order.key.endswith("/batch")

    def everything(self) -> "set[int]":
        return procs.descendants(os.getpid())

    def shell(self) -> "set[int]":
        return {self.leader} if self.is_batch() and self.leader else set()

    def all_but_batch(self) -> "set[int]":
        return set() if self.is_batch() else self.everything()

    # ---------------------------------------------------------------- ending

    def warn(self) -> None:
        warning = self.step["warn"]
        self.signal(warning["signal"], "batch" if warning.get("batch") else "steps")

    def out_of_time(self) -> None:
        self.end("time_limit", self.step.get("kill_wait", 30))

    def end(self, cause: str, grace: float) -> None:
        """SIGTERM to all now, SIGKILL after `grace` seconds; asked again, the earlier end holds."""
        if not self.cause and self.outcome is not None:
            return  # it ended by itself and is being swept
        for name in ("limit", "warn", "turn"):
            self.due.pop(name, None)
        if not self.cause:
            self.cause = cause
            self.say(words.because(cause))
            self.ask_to_end()
        if self.leader is None and self.outcome is None:
            self.outcome = (0, int(signal.SIGTERM))
        self.after("sweep", grace)

    def ask_to_end(self) -> None:
        pids = self.everything()
        self.send(pids, signal.SIGCONT)
        self.send(pids, signal.SIGTERM)

    def say(self, why: str) -> None:
        if len(self.files) == 3 and not self.step.get("hold"):
            who = self.step.get("job_label") or "STEP " + self.order.key
            _write(self.files[2], words.cancelled(who, self.order.node, why=why, now=time.time()))

    def sweep(self) -> None:
        """SIGKILL to all that is left, until nothing is."""
        procs.end_all(self.everything)
        self.after("sweep", self.sweep_again)
        self.sweep_again = min(2 * self.sweep_again, LONGEST_SWEEP)

    def reap(self) -> None:
        """Every descendant ends up as our child, so no child left means none left at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            if pid == self.leader:
                self.leader_ended(status)

    def leader_ended(self, status: int) -> None:
        if self.door:
            self.hear_child()  # its last word may not have been read yet
        self.leader = None
        outcome = (os.WEXITSTATUS(status), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
        if outcome == (0, 0) and not self.cause and self.number + 1 < len(self.phases):
            self.begin()
            return
        self.outcome = LAUNCH_FAILED if self.cause == "launch_failed" else outcome
        for name in ("limit", "warn"):
            self.due.pop(name, None)
        if not self.cause:
            self.after("sweep", 0)

    def finish(self) -> None:
        """Writes down how it ended."""
        if self.slots is not None:
            self.slots.release()
        record = self.record()
        patiently(lambda: journal.save(self.order.file("exit"), record, durable=True))
        wire.poke(self.order.agent_socket, self.order.key)

    def record(self) -> "dict[str, Any]":
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, number = self.outcome or (0, 0)
        return {
            "code": code,
            "signal": number,
            "cause": self.cause or "exit",
            "phase": self.phases[self.number]["name"] if self.number >= 0 else None,
            "user_us": int(used.ru_utime * 1e6),
            "sys_us": int(used.ru_stime * 1e6),
            "max_rss_kib": max(self.peak_kib, _own_peak(used.ru_maxrss)),
            "started": self.started,
            "ended": time.time(),
        }


DUE = {
    "turn": Supervisor.take_turn,
    "warn": Supervisor.warn,
    "limit": Supervisor.out_of_time,
    "sweep": Supervisor.sweep,
    "sample": Supervisor.sample,
}
ORDERS = {
    "turn": Supervisor.obey_turn,
    "kill": Supervisor.obey_kill,
    "signal": Supervisor.obey_signal,
}
SCOPES = {
    "steps": Supervisor.all_but_batch,
    "batch": Supervisor.shell,
    "full": Supervisor.everything,
}


def patiently(write: "Callable[[], None]") -> None:
    """A full disk only delays what has to be written."""
    while not _written(write):
        time.sleep(WRITE_AGAIN)


def _written(write: "Callable[[], None]") -> bool:
    try:
        write()
    except OSError:
        trouble.tell()
        return False
    return True


def _own_peak(peak_kib: int) -> int:
    """The largest process's peak; 0 where it may be no more than that of our fork before exec."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_kib if peak_kib > 1.25 * ours else 0


def _slots(order: Order) -> "Optional[Slots]":
    if order.slot_count <= 0 or order.step.get("hold"):
        return None
    return Slots(order.slot_folder, order.slot_count, order.file("orders"))


def _write(fd: int, data: bytes) -> None:
    try:
        if select.select([], [fd], [], 0)[1]:  # a pipe that nobody empties must not hold us up
            os.write(fd, data)
    except OSError:
        return  # the user's disk is full or the reader gone; the journal has the reason too
