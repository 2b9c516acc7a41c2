"""What our own routes share: who asks, which job is meant, JSON that keeps any bytes."""

import json
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from accounting.ids import JobId
from broker.model.errors import Denied, Unknown
from broker.model.job import Job, Owner
from broker.ports import HistoryQuery
from broker.world import Snapshot
from gateway.api.app import peer
from gateway.api.desk import Desk
from gateway.query.privacy import Viewer


class AsciiJson(JSONResponse):
    """JSON in which bytes of paths that are no UTF-8 survive, as lone surrogates."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


async def caller(request: Request) -> Owner:
    """Who asks. Raises Denied for somebody whom the host does not know."""
    return await desk_of(request).owner(peer(request).uid)


async def writer(request: Request) -> Owner:
    """Who asks, and may change things here. Raises Denied."""
    desk, owner = desk_of(request), await caller(request)
    denied = await desk.barred(owner.uid)
    if denied is not None:
        raise denied
    return owner


async def operator(request: Request) -> Owner:
    """Who asks, and runs this service or is an administrator. Raises Denied."""
    owner = await caller(request)
    if not desk_of(request).site.is_run_by(owner.uid):
        raise Denied("this is for administrators", hint="ask who runs the service")
    return owner


async def viewer_of(request: Request) -> Viewer:
    """What PrivateData lets the caller see. Raises Denied."""
    return await desk_of(request).viewer(peer(request).uid)


async def seen_by(request: Request) -> Snapshot:
    """What the caller may see of the jobs there are. Raises Denied."""
    return await desk_of(request).seen(peer(request).uid)


async def find_job(desk: Desk, job_id: int, by: Viewer) -> Job:
    """Of memory, else of history. Raises Unknown, also where they may not see it."""
    live = desk.snapshot().jobs.get(JobId(job_id))
    query = HistoryQuery(jobs=(JobId(job_id),))
    kept = [] if live else await desk.read(lambda: list(desk.history.jobs(query)))
    for job in [live] if live else kept:
        if job.id == job_id and by.job(job):
            return job
    raise Unknown(f"no job {job_id}", hint="`squeue` lists jobs of now, `sacct` those of the past")
