"""The tasks of a step: what each runs, with which variables and files, and how it ended."""

import base64
import functools
import os

from . import child, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Loop

NAMES = ("stdin", "stdout", "stderr")
RELAYED = True
"""Stands in an order for what passes through the io file, where else a path or nothing stands."""
CORE = 128
"""A shell's exit code for a death by signal is so much more than the signal's number."""


class Task:
    """One of a step's programs; its streams stay open from phase to phase."""

    def __init__(self, rank: int, order: "dict[str, Any]", place: int) -> None:
        self.rank = rank
        self.place = place
        self.order = order
        self.pid = None  # type: int | None
        self.door = None  # type: child.Door | None
        self.heard = False
        """Whether it waits behind its door for the others."""
        self.streams = []  # type: list[child.Stream]
        self.outcome = None  # type: tuple[int, int] | None
        self.unopened = None  # type: tuple[int, int] | None
        """The stream that it cannot open, and the errno."""

    def argv(self, common: "list[bytes]") -> "list[bytes]":
        own = self.order.get("argv")
        return common if own is None else [wire.text(word) for word in own]

    def variables(self) -> bytes:
        return base64.b64decode(self.order.get("env") or "")

    def relays(self, name: str) -> bool:
        return bool(self.order.get(name) is RELAYED)

    def fork(self, step: "dict[str, Any]", common: "list[bytes]") -> None:
        """Raises OSError."""
        program = child.Program(self.argv(common), self.variables(), self.streams, place=self.place)
        self.heard = False
        self.outcome = None
        self.pid, self.door = child.fork(step, program)

    def hear(self) -> bool:
        """What it says from behind its door: whether it can start."""
        assert self.door is not None
        report, files = self.door.hear()
        self.heard = report == child.READY
        if self.heard:
            opened = iter(files)
            self.streams = [one if isinstance(one, int) else next(opened) for one in self.streams]
        elif len(report) == child.UNOPENED.size:
            number, code = child.UNOPENED.unpack(report)
            self.unopened = number, code
        return self.heard

    def fileno(self) -> int:
        """Of its door."""
        assert self.door is not None
        return self.door.fileno()

    def let_go(self) -> None:
        assert self.door is not None
        self.door.let_go()

    def close_door(self) -> None:
        if self.door is not None:
            self.door.close()
            self.door = None

    def end(self, status: int) -> None:
        self.pid = None
        killer = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self.outcome = (os.WEXITSTATUS(status), killer)

    def failed(self) -> bool:
        return self.outcome is not None and self.outcome != (0, 0)


class Crew:
    """All tasks of a step; each waits behind its door until all have their files open."""

    def __init__(self, step: "dict[str, Any]", loop: "Loop") -> None:
        self.step = step
        self.loop = loop
        self.tasks = [] if step.get("hold") else of_step(step)

    def fork(self, common: "list[bytes]", heard: "Callable[[Task], None]") -> None:
        """Raises OSError; who was forked by then is sent away."""
        try:
            for task in self.tasks:
                task.fork(self.step, common)
                self.loop.watch(task.fileno(), functools.partial(heard, task))
        except OSError:
            self.close_doors()
            raise

    def hear(self, task: Task) -> "bool | None":
        """False if the task cannot start, True once all can, None until then."""
        if task.door is None:
            return None
        self.loop.ignore(task.fileno())
        if not task.hear():
            self.close_doors()
            return False
        return True if all(one.heard for one in self.tasks) else None

    def let_go(self) -> None:
        for task in self.tasks:
            task.let_go()

    def close_doors(self) -> None:
        """Who waits behind one and was not let go ends."""
        for task in self.tasks:
            if task.door is not None:
                self.loop.ignore(task.fileno())
                task.close_door()

    def waits(self) -> bool:
        """Whether any is behind its door."""
        return any(task.door is not None for task in self.tasks)

    def first(self) -> int:
        """The lowest rank here."""
        return self.tasks[0].rank if self.tasks else 0

    def leaders(self) -> "set[int]":
        """First processes of tasks that live."""
        return {task.pid for task in self.tasks if task.pid is not None}

    def find(self, pid: int) -> "Task | None":
        return next((task for task in self.tasks if task.pid == pid), None)

    def worst(self) -> "tuple[int, int]":
        """The end that counts: the highest as a shell would show it (Slurm's srun)."""
        outcomes = [task.outcome for task in self.tasks if task.outcome is not None]
        return max(outcomes, key=lambda one: CORE + one[1] if one[1] else one[0])

    def ends(self, whole: "tuple[int, int]") -> "list[dict[str, int]]":
        """How each ended, where there are several; who never began ends as the step does."""
        if len(self.tasks) < 2:
            return []
        pairs = [(task.rank, task.outcome or whole) for task in self.tasks]
        return [{"rank": rank, "code": code, "signal": number} for rank, (code, number) in pairs]


def of_step(step: "dict[str, Any]") -> "list[Task]":
    """The step's tasks by rank; one where its order names none."""
    orders = step.get("tasks")
    if not orders:
        alone = {name: step.get(name) for name in NAMES}
        alone["stderr"] = alone["stderr"] or alone["stdout"]
        orders = [alone]
    ranks = [order.get("rank") for order in orders]  # of a gateway of before there are none
    return [
        Task(place if rank is None else rank, order, place)
        for place, (rank, order) in enumerate(zip(ranks, orders))
    ]


def name_files(tasks: "list[Task]", step: "dict[str, Any]") -> None:
    """Where each stream comes from; several tasks that write one file begin it anew but once."""
    fresh = step.get("open_mode") != "append"
    folder = wire.text(step.get("cwd") or "/")
    begun = set()  # type: set[bytes]
    for task in tasks:
        task.streams = []
        for name in NAMES:
            given = None if task.relays(name) else task.order.get(name)
            path = os.path.join(folder, base64.b64decode(given)) if given else os.devnull.encode()
            flags = os.O_RDONLY
            if name != "stdin":
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                flags |= os.O_TRUNC if fresh and path not in begun else 0
                begun.add(path)
            task.streams.append(child.File(name, path, flags))
