"""Processes of a step that a container's daemon began, so that they descend from none of ours.

Each has a variable that only this step has; a command that waits for one has it among its words.
Where a container has the host's processes to itself nothing is found, and nothing is lost.
"""

import os

from . import procs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = b"SPZ_INSIDE"


class Inside:
    """Those of one step; none of a step that is in no container."""

    def __init__(self, step: "dict[str, Any]") -> None:
        self.entry = b""
        if step.get("container"):
            self.entry = b"%b=%b" % (NAME, os.urandom(8).hex().encode("ascii"))
        step["inside_entry"] = self.entry

    def all(self) -> "set[int]":
        """With all that they began."""
        found = self._with("environ")
        return found | (procs.below(procs.table(), found) if found else set())

    def first(self) -> "set[int]":
        """What the tasks themselves run there."""
        found = self._with("environ")
        processes = procs.table() if found else {}
        return {pid for pid in found if pid in processes and processes[pid].parent not in found}

    def waiting(self) -> "set[int]":
        """Commands that pass text on and no signals: they end with what they wait for."""
        return self._with("cmdline")

    def _with(self, place: str) -> "set[int]":
        if not self.entry:
            return set()
        return {pid for pid in procs.table() if self.entry in _words(pid, place)}


def _words(pid: int, place: str) -> "list[bytes]":
    try:
        with open("/proc/{}/{}".format(pid, place), "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []  # it ended, or is not ours to look at
