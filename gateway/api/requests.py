"""What became of a request, by its id: what `--async` prints."""

from fastapi import APIRouter, Request

from accounting.ids import JobId
from broker.model.errors import Unknown
from broker.model.ids import StepId
from gateway.api.asking import AsciiJson, caller, desk_of, find_job, viewer_of
from gateway.api.job_views import Json

of_requests = APIRouter(default_response_class=AsciiJson)


@of_requests.get("/requests/{request_id}")
async def what_became(request: Request, request_id: str) -> Json:
    """The job and run that it began, and their state. Raises Unknown."""
    desk = desk_of(request)
    await caller(request)
    reply = await desk.read(desk.history.reply, request_id)
    if reply is None:
        raise Unknown(f"no request {request_id}", hint="a launch with --async prints its id")
    number, _, step = reply.partition(".")
    job = await find_job(desk, JobId(int(number)), await viewer_of(request))
    found = job.step(StepId(step or "0"))
    return {
        "request": request_id,
        "job": job.id,
        "cluster": job.spec.cluster,
        "run": None if found is None else int(found.id) + 1,
        "state": job.shown_state,
        "over": job.over if found is None else found.state.final,
    }
