"""Volumes in one pass of planning: each goes to one job at a time."""

from collections.abc import Callable

from broker.model.job import Job
from broker.model.volume import names_of


class Disks:
    """Those that jobs of this pass may get, beside what is held already."""

    def __init__(self, waits: Callable[[Job], str | None]) -> None:
        self._waits = waits
        self._given: set[str] = set()

    def why_not(self, job: Job) -> str | None:
        """Why the job cannot have its volumes; they are its own for the pass if it can."""
        names = names_of(job.spec.volumes)
        if not names:
            return None
        taken = sorted(names & self._given)
        why = f"volume {taken[0]} goes to another job" if taken else self._waits(job)
        if why is None:
            self._given |= names
        return why
