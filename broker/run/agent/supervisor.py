"""The process that watches one step: starts its phases, ends it in time, notes how it ended."""

import os
import resource
import signal
import time

from . import (
    account,
    container,
    devices,
    gpus,
    hooks,
    inside,
    journal,
    left,
    memory,
    obey,
    procs,
    slots,
    spool,
    tasks,
    trouble,
    wire,
    words,
)
from .clock import Clock
from .loop import Loop
from .order import Order
from .streams import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

TERM = int(signal.SIGTERM)
LAUNCH_FAILED = (0, 53)
"""Exit code and signal of a step whose files cannot be opened, as Slurm reports it."""
SWEEP_AGAIN = 0.05
LONGEST_SWEEP = 1.0
OUT_OF_MEMORY = (0, 125)
"""As Slurm reports it: a signal that there is not."""
TELL_AGAIN = 0.01
"""Seconds between two words to who follows a step's text."""


class Supervisor:
    """Lives as long as any process of the step; holds the step's lock all the time."""

    def __init__(self, order: Order, wake: int) -> None:
        self.order = order
        self.step = order.step
        self.phases = [] if self.step.get("hold") else list(self.step["phases"])
        self.number = -1
        self.started = None  # type: Optional[float]
        self.cause = ""
        """Why it was made to end; empty while nobody made it."""
        self.outcome = None  # type: Optional[tuple[int, int]]
        self.childless = True
        self.hook = None  # type: Optional[int]  # prepares the node
        self.tidying = None  # type: Optional[int]  # sees to what a container leaves
        self.inside = inside.Inside(order.step)
        self.left = left.Left(order.step, order.key)
        self.sweep_again = SWEEP_AGAIN
        self.memory = memory.Memory(order.step, order.key, everything=self.everything)
        self.fence = devices.Fence(order.step, order.key)
        self.account = account.Account(order.step, order.key)
        self.inbox = b""
        self.slots = slots.of(order)
        self.told = 0.0
        """When the service was last told of text, by the monotonic clock."""
        self.loop = Loop()
        self.loop.watch(wake, lambda: os.read(wake, 4096))
        self.loop.watch(order.door, self.obey_all)
        self.clock = Clock(self)
        self.gpus = gpus.Gpus(order, self.loop)
        self.noticed = -1  # the number of the latest notice that was written
        self.crew = tasks.Crew(self.step, self.loop)
        self.streams = self.open_streams()

    def open_streams(self) -> "Optional[Streams]":
        if not self.step.get("relay"):
            return None
        return Streams(self.order.folder, loop=self.loop, told=self.tell)

    # ---------------------------------------------------------------- the loop

    def run(self) -> None:
        self.take_turn()
        self.live_until(self.is_over)
        self.loop.forget("sweep", "unkillable")
        self.finish()
        self.left.alone = not self.childless
        self.live_until(lambda: self.childless)
        self.close()

    def live_until(self, over: "Callable[[], bool]") -> None:
        while not over():
            self.loop.fire_due()
            if not over():
                self.loop.turn()
                self.reap()

    def is_over(self) -> bool:
        """Nothing of the step lives, but for what its setup left."""
        if self.outcome is None or self.childless:
            return self.outcome is not None
        return bool(self.left.sessions) and self.tidying is None and not self.own()

    def tell(self) -> None:
        """Wakes who follows the text, but not for every line of a flood."""
        if time.monotonic() - self.told >= TELL_AGAIN:
            self.tell_now()
        else:
            self.loop.after("tell", TELL_AGAIN, self.tell_now)

    def tell_now(self) -> None:
        self.told = time.monotonic()
        if self.streams is not None and self.streams.frames.waiting:
            self.loop.after("push", trouble.WRITE_AGAIN, self.streams.push)
        if self.order.wake:
            wire.shout(self.order.wake, wire.about_io(self.order.node, self.order.key))

    # ---------------------------------------------------------------- beginning

    def take_turn(self) -> None:
        """Begins as soon as this host has room for one more step."""
        begun = self.started is not None or self.number >= 0 or self.hook is not None
        if begun or self.outcome is not None:
            return
        if self.slots is None or self.slots.take():
            self.prepare()
        else:
            self.loop.forget("turn")
            self.loop.after("turn", self.slots.again(), self.take_turn)

    def prepare(self) -> None:
        """First what is to be done on the node before any step of the job."""
        if not hooks.wanted(self.step):
            self.begin()
            return
        self.hook = hooks.fork_before(self.step, self.order.key)
        self.childless = False

    def prepared(self, status: int) -> None:
        self.hook = None
        if self.outcome is not None:
            return
        if status == 0:
            self.begin()
        else:
            self.cause, self.outcome = "launch_failed", LAUNCH_FAILED

    def begin(self) -> None:
        """The next phase; a step without any only lives until it is ended."""
        if not self.phases:
            self.note_start([os.getpid()])
            return
        self.number += 1
        self.step["inside"] = self.phases[self.number].get("inside", 0)
        self.left.enter(self.phases[self.number])
        try:
            common = self.order.arguments(self.phases[self.number])
            if self.number == 0:
                self.name_streams()
            self.crew.fork(common, self.hear)
        except OSError:
            trouble.tell()
            self.cause, self.outcome = "launch_failed", LAUNCH_FAILED
        self.childless = not self.crew.leaders()

    def name_streams(self) -> None:
        tasks.name_files(self.crew.tasks, self.step)
        if self.streams is not None:
            self.streams.join(self.crew.tasks, self.step)

    def hear(self, task: "tasks.Task") -> None:
        """One of the tasks has its files open, or cannot; when all have, all are let go."""
        ready = self.crew.hear(task)
        if ready is None:
            return
        if ready:
            self.note_start(sorted(self.crew.leaders()))
        elif self.streams is not None and task.unopened is not None:
            self.streams.unopened(task.rank, task.unopened)
        if ready and not self.cause and self.step.get("settle"):
            self.loop.after("go", self.step["settle"], self.go)
        else:
            self.go(ready)
        if self.streams is not None and self.number + 1 == len(self.phases):
            self.streams.hand_over()

    def go(self, ready: bool = True) -> None:
        """Lets all tasks begin, unless one cannot or the end was asked for meanwhile."""
        if ready and not self.cause:
            self.crew.let_go()
        self.cause = self.cause or ("" if ready else "launch_failed")
        self.crew.close_doors()

    def note_start(self, pids: "list[int]") -> None:
        trouble.patiently(lambda: self.order.add_sessions(pids))
        if self.started is None:
            self.started = time.time()
            began = {"pid": pids[0], "started": self.started}
            trouble.patiently(lambda: journal.save(self.order.file("started"), began))
            self.clock.set()
            self.loop.after("sample", memory.FIRST_PAUSE, self.sample)
            wire.poke(self.order.agent_socket, self.order.key)

    def sample(self) -> None:
        """As Slurm counts memory: all processes of the step together, looked at now and then."""
        if self.childless:
            return
        self.gpus.look()
        self.loop.after("sample", self.memory.look(), self.sample)
        if self.memory.whole_is_over():
            self.send(self.own(), signal.SIGKILL)

    # ---------------------------------------------------------------- orders

    def obey_all(self) -> None:
        self.inbox += os.read(self.order.door, 1 << 16)
        *lines, self.inbox = self.inbox.split(b"\n")
        for line in lines:
            obey.order(self, wire.decode(line))

    def signal(self, number: int, scope: str) -> None:
        """As scancel: `batch` is the shell, `full` everything, `steps` all but a batch step."""
        if not self.crew.leaders() or self.crew.waits():
            return
        pids = SCOPES[scope](self)
        if number in words.SIGNALS and self.crew.leaders() & pids:
            self.say(words.by_signal(number))
        self.send(pids, number)

    def send(self, pids: "set[int]", number: int) -> None:
        """To shells first, or they would tell in the output that a child was killed."""
        leaders = self.crew.leaders()
        if number != signal.SIGKILL and self.inside.first():
            pids = pids - self.inside.waiting()
        procs.send(sorted(pids, key=lambda pid: (pid not in leaders, pid)), number)

    def is_batch(self) -> bool:
        return self.order.key.endswith("/batch")

    def everything(self) -> "set[int]":
        """All of the step's, without what tidies up behind it."""
        found = procs.descendants(os.getpid()) | self.inside.all()
        if self.tidying is not None:
            found -= {self.tidying} | procs.descendants(self.tidying)
        return found

    def own(self) -> "set[int]":
        """What ends with the step."""
        found = self.everything()
        return found - self.left.among(found)

    def shell(self) -> "set[int]":
        return self.crew.leaders() | self.inside.first() if self.is_batch() else set()

    def all_but_batch(self) -> "set[int]":
        return set() if self.is_batch() else self.own()

    # ---------------------------------------------------------------- ending

    def out_of_time(self) -> None:
        self.end("time_limit", self.step.get("kill_wait", 30))

    def wait_is_over(self) -> None:
        """`srun --wait`: the first task ended so long ago."""
        self.end("wait", 0, signal.SIGKILL)

    def end(self, cause: str, grace: float, number: int = TERM) -> None:
        """`number` to all now, SIGKILL after `grace` seconds; asked again, the first end holds."""
        if not self.cause and self.outcome is not None and not self.left.alone:
            return  # it ended by itself and is being swept
        self.loop.forget("limit", "warn", "turn", "wait")
        if self.left.alone:
            self.ask_to_end(number)
        elif not self.cause:
            self.cause = cause
            if self.step.get("hears_why"):
                self.send(self.crew.leaders(), words.WHY.get(cause, number))
            else:
                self.say(words.because(cause, number))
                self.ask_to_end(number)
        if not self.crew.leaders() and self.outcome is None:
            self.outcome = (0, int(number))
        self.loop.after("sweep", grace, self.sweep)

    def ask_to_end(self, number: int) -> None:
        pids = self.own()
        if number != signal.SIGKILL:
            self.send(pids, signal.SIGCONT)
        self.send(pids, number)

    def say(self, why: str) -> None:
        """Where the step's own errors go, as the first node's slurmstepd does."""
        if self.step.get("further"):
            return
        who = self.step.get("job_label") or "STEP " + self.order.key
        self.write(words.cancelled(who, self.order.node, why=why, now=time.time()))

    def write(self, line: bytes) -> None:
        first = self.crew.tasks[:1]
        if self.streams is not None and first[0].relays("stderr"):
            self.streams.say(line, self.crew.first())
            return
        for stream in [task.streams[2] for task in first if task.streams]:
            if isinstance(stream, int):
                words.put(stream, line)

    def sweep(self) -> None:
        """SIGKILL to all that is left, until nothing is."""
        procs.end_all(self.own)
        wait = self.step.get("unkillable_timeout", 60)
        self.loop.after("unkillable", wait, self.tell_unkillable)
        self.loop.after("sweep", self.sweep_again, self.sweep)
        self.sweep_again = min(2 * self.sweep_again, LONGEST_SWEEP)

    def tell_unkillable(self) -> None:
        """The agent passes it on; it is tried on and on all the same."""
        stuck = {"pids": sorted(self.own())}
        if stuck["pids"]:
            trouble.patiently(lambda: journal.save(self.order.file("unkillable"), stuck))
            wire.poke(self.order.agent_socket, self.order.key)

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
            if pid == self.hook:
                self.prepared(status)
            if pid == self.tidying:
                self.tidied(status)
            task = self.crew.find(pid)
            if task is not None:
                self.task_ended(task, status)

    def task_ended(self, task: "tasks.Task", status: int) -> None:
        if task.door is not None and not task.heard:
            self.hear(task)  # its last word may not have been read yet
        task.end(status)
        if self.streams is not None and self.started is not None:
            spent = task.failed() and self.memory.oom_kills()
            self.streams.ended(task.rank, OUT_OF_MEMORY if spent else task.outcome or (0, 0))
        if not self.crew.leaders():
            self.all_ended()
        elif self.started is not None and not self.cause:
            self.one_ended(task)

    def one_ended(self, task: "tasks.Task") -> None:
        if task.failed() and self.step.get("kill_on_bad_exit"):
            self.end("task_failure", self.step.get("kill_wait", 30))
        elif self.step.get("wait"):
            self.loop.after("wait", self.step["wait"], self.wait_is_over)

    def all_ended(self) -> None:
        outcome = self.crew.worst()
        succeeded = outcome == (0, 0) and not self.cause
        if succeeded and self.left.may_be():
            found = self.left.look(self.everything())
            trouble.patiently(lambda: self.order.add_sessions(found))
            self.inside.leave()
        if succeeded and self.number + 1 < len(self.phases):
            self.begin()
            return
        self.outcome = LAUNCH_FAILED if self.cause == "launch_failed" else outcome
        self.loop.forget("limit", "warn", "wait")
        if self.started is not None:
            self.tidying = hooks.fork_tidy(self.step)
        if not self.cause and self.tidying is None:
            self.loop.after("sweep", 0, self.sweep)

    def tidied(self, status: int) -> None:
        self.tidying, self.childless = None, False
        if status:
            self.write(words.error(container.UNTIDY, time.time()))
        if not self.cause:
            self.loop.after("sweep", 0, self.sweep)

    def finish(self) -> None:
        """Writes down how it ended."""
        if self.slots is not None:
            self.slots.release()
        self.note_memory()
        if self.streams is not None:
            self.streams.finish()
        record = self.account.settle(self.record())
        self.close_groups()
        if not self.childless:
            trouble.patiently(lambda: journal.save(self.order.file(left.STAYS), {}))
        trouble.patiently(lambda: journal.save(self.order.file("exit"), record, durable=True))
        wire.poke(self.order.agent_socket, self.order.key)

    def close_groups(self) -> None:
        for group in (self.memory, self.fence, self.account):
            group.close()

    def close(self) -> None:
        """Nothing is left that setup left, either."""
        self.close_groups()
        spool.discard(self.order.file(left.STAYS))

    def note_memory(self) -> None:
        """Processes that were killed for want of memory make that the step's end (25.11).

        Of srun's steps only where it made a task fail.
        """
        kills = self.memory.oom_kills()
        if kills and (self.is_batch() or any(task.failed() for task in self.crew.tasks)):
            attempt, _, step = self.order.key.rpartition("/")
            name = "{}.{}".format(attempt.partition("/")[0], step)
            self.write(memory.told(kills, name, time.time()))
            self.cause = self.cause or "out_of_memory"

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
            "max_rss_kib": max(self.memory.peak_kib, memory.own_peak(used.ru_maxrss)),
            "max_size_kib": self.memory.peak_size_kib,
            "read": self.memory.read,
            "written": self.memory.written,
            "pages": used.ru_majflt,
            "started": self.started,
            "ended": time.time(),
            "tasks": self.crew.ends(self.outcome or (0, 0)),
            **self.gpus.record(),
        }


SCOPES = {
    "steps": Supervisor.all_but_batch,
    "batch": Supervisor.shell,
    "full": Supervisor.own,
}
