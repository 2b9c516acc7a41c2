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
        self.step = step
        self.entry = b""
        self._begin()

    def _begin(self) -> None:
        if self.step.get("container"):
            self.entry = b"%b=%b" % (NAME, os.urandom(8).hex().encode("ascii"))
        self.step["inside_entry"] = self.entry

    def leave(self) -> None:
        """Those there now are none of the step's any more, and end with their container."""
        if self._with("environ"):
            self.step["serves"] = True
            self._begin()

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
        return {pid for pid in procs.table() if procs.bears(pid, self.entry, place)}
