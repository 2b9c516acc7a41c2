"""Following a run: what it waits for, its text as it comes, how it ended.

The text is read from the file itself, as the user, when the service is on this host.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from broker.model.errors import Conflict, Unknown

Json = dict[str, Any]
CHUNK = 1 << 16
LOOK_AGAIN = 0.25
"""Seconds between two looks."""
TAIL_BLOCK = 1 << 13
IMPOSSIBLE = "BadConstraints"
"""The reason of a job that stays held; told here, for what has the model is slow to start."""
SUCCEEDED, FAILED, UNFINISHED, NOT_FOUND, CANCELLED = 0, 100, 101, 102, 103
"""Exit statuses of `logs`, as SkyPilot's."""
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
    """Copies a run's text to `out` and tells on `say` what it waits for."""

    service: Service
    out: BinaryIO
    say: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], None] = time.sleep
    _told: str = ""
    _offset: int = 0
    _attempt: int | None = None
    _path: str | None = None

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
        """What there is now."""
        state = part_of(self.service.get(f"/v1/jobs/{which.job}"), which)
        self._copy(state, which, tail)
        return state

    def _tell(self, text: str) -> None:
        if text and text != self._told:
            self.say(text)
        self._told = text

    def earlier(self, which: Which) -> None:
        """The text of the attempts before the present one, whole."""
        job = self.service.get(f"/v1/jobs/{which.job}")
        if self.service.here:
            for number, path in enumerate(job["logs"][:-1] if job["log"] else job["logs"], 1):
                self.say(f"attempt {number}:")
                with suppress(FileNotFoundError):
                    self._copy_file(path)
                self._offset = 0

    def _of_attempt(self, state: Json) -> None:
        """A job that starts again writes to another file: what is left of the one before first."""
        attempt = state.get("attempt")
        if self._attempt is not None and attempt != self._attempt:
            if self._path is not None:
                with suppress(FileNotFoundError):
                    self._copy_file(self._path)
            self._offset, self._path = 0, None
            self.say(f"attempt {attempt}:")
        self._attempt = attempt

    def _copy_file(self, path: str) -> None:
        """What is new of it. Raises FileNotFoundError."""
        with Path(path).open("rb") as file:
            file.seek(self._offset)
            while part := file.read(CHUNK):
                self._write(part)

    def _copy(self, state: Json, which: Which, tail: int | None) -> bool:
        """Copies what is new; whether there was a file."""
        if not self.service.here:
            return self._copy_stream(which)
        if state["log"] is None:
            return False
        try:
            if tail is not None:
                with Path(state["log"]).open("rb") as file:
                    self._offset = _tail_start(file, tail)
            self._copy_file(state["log"])
        except FileNotFoundError:
            return False
        self._path = state["log"]
        return True

    def _copy_stream(self, which: Which) -> bool:
        skip = self._offset
        for part in self.service.stream(f"/v1/jobs/{which.job}/log", run=which.run):
            fresh, skip = part[skip:], max(0, skip - len(part))
            if fresh:
                self._write(fresh)
        return True

    def _write(self, part: bytes) -> None:
        self.out.write(part)
        self.out.flush()
        self._offset += len(part)


def _tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last so many lines begin."""
    end = position = file.seek(0, 2)
    found = b""
    while position > 0 and found.count(b"\n") <= lines:
        position = max(0, position - TAIL_BLOCK)
        file.seek(position)
        found = file.read(end - position)
    kept = b"".join(found.splitlines(keepends=True)[-lines:]) if lines > 0 else b""
    return end - len(kept)


def part_of(job: Json, which: Which) -> Json:
    """The run's view, or the job's own as one. Raises Unknown."""
    if which.run is None:
        return {**job, "status": job["state"]}
    found = next((run for run in job["runs"] if run["id"] == which.run), None)
    if found is not None:
        return dict(found)
    if job["over"] or job["runs"]:
        raise Unknown(f"job {which.job} has no run {which.run}")
    return {"over": False, "status": "PENDING", "log": None}


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


def own_status(state: Json) -> int:
    """How `launch` and `exec` exit: with the run's own status, 128 and the signal that ended it."""
    code, signal = state["exit"]["code"], state["exit"]["signal"]
    if state["status"] in {"SUCCEEDED", "COMPLETED"}:
        return SUCCEEDED
    if state["status"] == "CANCELLED":
        return CANCELLED
    return int(code) or (128 + int(signal) if signal else FAILED)
