"""What the setup of a cluster's run leaves in the background: it stays until the allocation ends.

A server begun there is for all later runs, as in SkyPilot; what `run` leaves ends with the run.
Its processes are those that lived when setup was over, and all of their sessions; those that bear
a variable of setup's, whatever begins them later; and all below these.
"""

from . import procs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME, VALUE = b"SPZ_SETUP", b"1"
SETUP = "setup"
STAYS = "stays"
"""A file of a step that is over, as long as something that it left is watched."""


class Left:
    """Of one step; nothing of a batch step, whose end is its job's."""

    def __init__(self, step: "dict[str, Any]", key: str) -> None:
        self.step = step
        self.may = not key.endswith("/batch")
        self.sessions = set()  # type: set[int]
        self.seen = set()  # type: set[tuple[int, int]]
        """Number and birth: one that was on its way into a session of its own goes there later."""
        self.ends = False
        """Whether the allocation does, and this with it."""
        self.alone = False
        """Whether the step is over, and nothing else of it lives."""

    def enter(self, phase: "dict[str, Any]") -> None:
        """A phase begins."""
        self.step["leaves"] = self.may and phase["name"] == SETUP

    def may_be(self) -> bool:
        """Whether this phase may leave anything."""
        return bool(self.step.get("leaves"))

    def look(self, alive: "set[int]") -> "list[int]":
        """A phase succeeded, and these live yet: their sessions."""
        processes = procs.table()
        there = [(pid, processes[pid]) for pid in alive & set(processes)]
        self.sessions |= {one.session for _, one in there}
        self.seen |= {(pid, one.born) for pid, one in there}
        return sorted(self.sessions)

    def among(self, pids: "set[int]") -> "set[int]":
        """Those of the step's processes that are to stay."""
        if self.ends or not self.sessions:
            return set()
        processes = procs.table()
        roots = {
            pid
            for pid in pids & set(processes)
            if processes[pid].session in self.sessions
            or (pid, processes[pid].born) in self.seen
            or procs.bears(pid, NAME + b"=" + VALUE)
        }
        return (roots | procs.below(processes, roots)) & pids


def add(values: "dict[bytes, bytes]", step: "dict[str, Any]") -> None:
    """By this a process that setup began is known."""
    if step.get("leaves"):
        values[NAME] = VALUE
