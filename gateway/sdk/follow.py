"""Following a run: what it waits for, its text as it comes, how it ended.

The text is read from the file itself, as the user, when the service is on this host.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from broker.model.errors import Conflict, Unknown
from gateway.sdk.texts import Text, copied, of_nodes

Json = dict[str, Any]
LOOK_AGAIN = 0.25
"""Seconds between two looks."""
IMPOSSIBLE = "BadConstraints"
"""The reason of a job that stays held; told here, for what has the model is slow to start."""
SUCCEEDED, FAILED, UNFINISHED, NOT_FOUND, CANCELLED = 0, 100, 101, 102, 103
"""Exit statuses of `logs`, and of who follows a run that it began, as SkyPilot's (0.14)."""
STATUSES = {"SUCCEEDED": SUCCEEDED, "COMPLETED": SUCCEEDED, "CANCELLED": CANCELLED}


class Service(Protocol):
    """The part of a client that following takes."""

    @property
    def here(self) -> bool: ...
    def get(self, route: str, **query: object) -> Json: ...
    def stream(self, route: str, **query: object) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Which:
    """A run of a job; None is its batch script."""

    job: int
    run: int | None = None


@dataclass(slots=True)
class Follower:
    """Copies a run's text to `out` and tells on `say` what it waits for.

    Of several nodes each line stands under its node's name, or those of the node `only` alone.
    """

    service: Service
    out: BinaryIO
    say: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep
    only: int | None = None
    _told: str = ""
    _texts: list[Text] = field(default_factory=list)
    _attempt: int | None = None
    _paths: Sequence[str] = ()

    def follow(self, which: Which, *, tail: int | None = None) -> Json:
        """Until it is over; the run (or job) as it ended. `tail` skips all but the last lines."""
        first = True
        while True:
            job = self.service.get(f"/v1/jobs/{which.job}")
            state = part_of(job, which)
            self._tell(_waits_for(job, state))
            must_not_be_in_vain(job)
            self._of_attempt(state)
            if self._copy(state, which, tail if first else None):
                first = False
            if state["over"]:
                self._end()
                return state
            if job["over"]:
                raise Conflict(
                    f"job {which.job} ended {job['state']} before the run did",
                    hint=f"`spz why {which.job}` tells why",
                )
            self.sleep(LOOK_AGAIN)

    def until_up(self, job: int) -> None:
        """Until its machines are there. Raises Conflict where it ends before."""
        while True:
            found = self.service.get(f"/v1/jobs/{job}")
            if found["over"] and found["started"] is None:
                raise Conflict(f"job {job} ended {found['state']}", hint=f"`spz why {job}`")
            if found["state"] not in {"PENDING", "CONFIGURING"}:
                return
            self._tell(_waits_for(found, {"over": True}))
            must_not_be_in_vain(found)
            self.sleep(LOOK_AGAIN)

    def show(self, which: Which, *, tail: int | None = None) -> Json:
        """What there is now. Raises Unknown for a node that it does not run on."""
        state = part_of(self.service.get(f"/v1/jobs/{which.job}"), which)
        self._copy(state, which, tail)
        self._end()
        return state

    def _tell(self, text: str) -> None:
        if text and text != self._told:
            self.say(text)
        self._told = text

    def earlier(self, which: Which) -> None:
        """The text of the attempts before the present one, whole."""
        job = self.service.get(f"/v1/jobs/{which.job}")
        if self.service.here:
            found = job["attempts"][:-1] if job["log"] else job["attempts"]
            for number, paths in enumerate(found, 1):
                self.say(f"attempt {number}:")
                copied(paths, self.out.write, only=self.only)

    def _of_attempt(self, state: Json) -> None:
        """A job that starts again writes to other files: what is left of those before first."""
        attempt = state.get("attempt")
        if self._attempt is not None and attempt != self._attempt:
            if self._paths:
                self._copy_files(self._paths, None)
                self._end()
            self._texts, self._paths = [], ()
            self.say(f"attempt {attempt}:")
        self._attempt = attempt

    def _copy(self, state: Json, which: Which, tail: int | None) -> bool:
        """Copies what is new; whether there was any file."""
        paths = state["texts"]
        if not paths:  # it waits, for the first time or again
            return False
        if not self._texts:
            if self.only is not None and not 0 <= self.only < len(paths):
                raise Unknown(f"it runs on {len(paths)} nodes, 0 is the head: no node {self.only}")
            self._texts = of_nodes(len(paths), self.only)
        if not self.service.here:
            return self._copy_streams(which)
        self._paths = paths
        return self._copy_files(paths, tail)

    def _copy_files(self, paths: Sequence[str], tail: int | None) -> bool:
        found = False
        for text in self._texts:
            with suppress(FileNotFoundError):
                for part in text.of_file(paths[text.rank], tail):
                    self._write(part)
                found = True
        return found

    def _copy_streams(self, which: Which) -> bool:
        for text in self._texts:
            parts = self.service.stream(f"/v1/jobs/{which.job}/log", run=which.run, rank=text.rank)
            for part in text.of_stream(parts):
                self._write(part)
        return True

    def _end(self) -> None:
        """Nothing more comes of these."""
        for text in self._texts:
            self._write(text.rest())

    def _write(self, part: bytes) -> None:
        self.out.write(part)
        self.out.flush()


def part_of(job: Json, which: Which) -> Json:
    """The run's view, or the job's own as one. Raises Unknown."""
    if which.run is None:
        return {**job, "status": job["state"]}
    found = next((run for run in job["runs"] if run["id"] == which.run), None)
    if found is not None:
        return dict(found)
    if job["over"] or job["runs"]:
        raise Unknown(f"job {which.job} has no run {which.run}")
    return {"over": False, "status": "PENDING", "log": None, "texts": []}


def _waits_for(job: Json, state: Json) -> str:
    if job["state"] == "PENDING":
        detail = f": {job['detail']}" if job["detail"] else ""
        return f"waiting ({job['reason']}{detail})" if job["reason"] != "None" else "waiting"
    if job["state"] == "CONFIGURING":
        return f"booting {job['node_list']}"
    if not state["over"] and state["status"] in {"INIT", "PENDING"}:
        return f"starting on {job['node_list']}"
    return ""


def must_not_be_in_vain(job: Json) -> None:
    """Raises Conflict for one that is held because no machine could be what it wishes."""
    if job["state"] == "PENDING" and job["reason"] == IMPOSSIBLE and job["detail"]:
        raise Conflict(
            f"job {job['id']} is held: {job['detail']}",
            hint=f"mend the task and launch it again; `scancel {job['id']}` lets go of this one",
        )


def logs_status(state: Json) -> int:
    """How `logs` exits for a run in this state."""
    if not state["over"]:
        return UNFINISHED
    return STATUSES.get(state["status"], FAILED)
