"""Text of runs for callers who are not on this host; those who are read the file themselves."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from broker.model.errors import Conflict, Denied, Refused, Unknown
from broker.model.ids import BATCH, StepId
from broker.model.job import Job, Owner
from gateway.api.asking import find_job
from gateway.api.desk import Desk
from gateway.api.job_views import log_path

CHUNK = 1 << 16
LOOK_AGAIN = 0.2
"""Seconds between two looks at a log that is followed."""


def readable_log(job: Job, step: StepId, *, caller: Owner, desk: Desk) -> Path:
    """A file that the service may read for the caller. Raises SpzError where it may not."""
    if caller.uid != job.owner.uid and caller.uid not in desk.site.admins:
        raise Denied(f"job {job.id} is {job.owner.user}'s")
    if os.getuid() != job.owner.uid:
        # Another user's folder may hold a link to what only this service can read.
        raise Refused(
            f"the service does not open files of {job.owner.user}",
            hint="read the file on the submit host: `spz logs` there does",
        )
    if step != BATCH and job.step(step) is None:
        raise Unknown(f"job {job.id} has no run {int(step) + 1}")
    path = log_path(job, step)
    if path is None:
        raise Conflict(f"job {job.id} has not started, it has no log yet")
    return Path(path)


async def text(desk: Desk, job: Job, step: StepId, *, follow: bool) -> AsyncIterator[bytes]:
    """What the file holds; followed, also what is added until the step is over."""
    offset, path = 0, Path(log_path(job, step) or os.devnull)
    while True:
        over = not follow or await _is_over(desk, job, step)
        while part := await desk.read(_read, path, offset):
            offset += len(part)
            yield part
        if over:
            return
        await asyncio.sleep(LOOK_AGAIN)


async def _is_over(desk: Desk, job: Job, step: StepId) -> bool:
    now = await find_job(desk, job.id)
    found = now.step(step)
    return now.over or now.attempt != job.attempt or (found is not None and found.state.final)


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK)
    except FileNotFoundError:
        return b""
