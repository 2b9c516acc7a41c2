"""Text of runs for callers who are not on this host; those who are read the file themselves."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Container
from dataclasses import dataclass
from pathlib import Path

from broker.model.errors import Conflict, Denied, Refused, Unknown
from broker.model.ids import BATCH, StepId
from broker.model.job import Job, Owner
from gateway.api import ending
from gateway.api.asking import find_job
from gateway.api.desk import Desk
from gateway.api.job_views import attempts_of, texts_of
from gateway.query.privacy import SEES_ALL

CHUNK = 1 << 16
LOOK_AGAIN = 0.2
"""Seconds between two looks at a log that is followed."""
TAIL_SECONDS = 5
"""A file may be on a file system that hangs."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one node of a run wrote, by its rank."""

    job: Job
    step: StepId
    rank: int = 0
    attempt: int | None = None
    """Of a managed job, counted from 1; None: the latest."""


def readable_log(part: Part, *, caller: Owner, desk: Desk) -> Path:
    """A file that the service may read for the caller. Raises SpzError where it may not."""
    job = part.job
    _must_be_shown(job, caller, desk.site.admins)
    if os.getuid() != job.owner.uid:
        # Another user's folder may hold a link to what only this service can read.
        raise Refused(
            f"the service does not open files of {job.owner.user}",
            hint="read the file on the submit host: `spz logs` there does",
        )
    return _path(part)


def _must_be_shown(job: Job, caller: Owner, admins: Container[int]) -> None:
    """Raises Denied."""
    if caller.uid != job.owner.uid and caller.uid not in admins:
        raise Denied(f"job {job.id} is {job.owner.user}'s")


def _path(part: Part) -> Path:
    """Where it writes. Raises Unknown, Conflict."""
    job, step = part.job, part.step
    if step != BATCH and job.step(step) is None:
        raise Unknown(f"job {job.id} has no run {int(step) + 1}")
    paths = texts_of(job, step) if part.attempt is None else _of_attempt(job, part.attempt)
    if not paths:
        raise Conflict(f"job {job.id} has not started, it has no log yet")
    if part.rank >= len(paths):
        raise Unknown(f"job {job.id} has no text of a node {part.rank}", hint="0 is the head")
    return Path(paths[part.rank])


def _of_attempt(job: Job, number: int) -> list[str]:
    """What its nodes wrote. Raises Unknown."""
    known = attempts_of(job)
    if not 0 < number <= len(known):
        raise Unknown(f"job {job.id} has no attempt {number}", hint=f"it has {len(known)}")
    return known[number - 1]


def tail(part: Part, caller: Owner, admins: Container[int], *, size: int) -> bytes:
    """The last bytes of it, read with its owner's rights and no others. Blocks.

    Raises Denied for who may not see it, and where the owner cannot read it or this service is
    somebody else's; Unknown, Conflict.
    """
    owner = part.job.owner
    _must_be_shown(part.job, caller, admins)
    groups = ",".join(map(str, owner.groups or (owner.gid,)))
    words = [str(owner.uid), str(owner.gid), groups, str(size), str(_path(part))]
    try:
        done = subprocess.run(
            [sys.executable, "-IS", ending.__file__, *words],
            capture_output=True,
            check=False,
            cwd="/",
            env={},  # what this service knows by its variables is nobody else's
            timeout=TAIL_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Denied(f"the service does not read files of {owner.user}: {error}") from error
    if done.returncode:
        raise Denied(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout


async def text(desk: Desk, part: Part, path: Path, *, follow: bool) -> AsyncIterator[bytes]:
    """What the file holds; followed, also what is added until the step is over."""
    offset = 0
    while True:
        over = not follow or await _is_over(desk, part.job, part.step)
        while found := await desk.read(_read, path, offset):
            offset += len(found)
            yield found
        if over:
            return
        await asyncio.sleep(LOOK_AGAIN)


async def _is_over(desk: Desk, job: Job, step: StepId) -> bool:
    now = await find_job(desk, job.id, SEES_ALL)
    found = now.step(step)
    return now.over or now.attempt != job.attempt or (found is not None and found.state.final)


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK)
    except FileNotFoundError:
        return b""
