"""Managed jobs: a task, a pipeline or a group as requeueable jobs, and their listing."""

from fastapi import APIRouter, Request
from pydantic import Field

from broker.model.commands import Submit
from broker.model.errors import BadSpec
from broker.model.job import Job, Owner
from broker.ports import HistoryQuery
from broker.world import Snapshot
from gateway.api.asking import AsciiJson, desk_of, writer
from gateway.api.desk import Desk
from gateway.api.job_views import Json, job_view
from gateway.api.launches import LaunchRequest, Market, candidates, given_with, origin
from gateway.translate.skypilot import TaskFile, read_file
from gateway.translate.skypilot_managed import after, is_managed, managed, places
from gateway.translate.skypilot_task import Translated

STATES = {
    "PENDING": "PENDING",
    "CONFIGURING": "STARTING",
    "RUNNING": "RUNNING",
    "COMPLETING": "WINDING_DOWN",
    "COMPLETED": "SUCCEEDED",
    "CANCELLED": "CANCELLED",
    "TIMEOUT": "FAILED",
    "FAILED": "FAILED",
    "OUT_OF_MEMORY": "FAILED",
    "NODE_FAIL": "FAILED",
    "BOOT_FAIL": "FAILED_NO_RESOURCE",
    "DEADLINE": "FAILED_NO_RESOURCE",
    "REQUEUED": "RECOVERING",
    "REQUEUE_HOLD": "RECOVERING",
    "SUSPENDED": "RECOVERING",
}
"""SkyPilot's words for the states of a managed job."""


class ManagedRequest(LaunchRequest):
    """A task as typed, for a managed job."""

    num_jobs: int | None = Field(default=None, ge=1, le=10_000)
    group: bool = False
    """`--job-group`: the file's tasks together, whatever its header says."""


def managed_jobs(market: Market) -> APIRouter:
    """Their launch and their listing."""
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.post("/managed")
    async def launch(request: Request, asked: ManagedRequest) -> Json:
        """One job for each task; with `dry_run` only what they would be bought from."""
        desk, owner = desk_of(request), await writer(request)
        file = read_file(asked.task, given_with(asked))
        made = _made(file, asked, desk)
        offers = []
        for one in made:
            quote = market.at(desk.now())
            offers.append(await desk.read(candidates, one.spec, desk.site, quote))
        jobs = [] if asked.dry_run else await _submitted(desk, owner, file, asked=asked, made=made)
        return {
            "name": made[0].spec.name,
            "kind": file.kind,
            "jobs": jobs,
            "tasks": [one.spec.name for one in made],
            "cwd": made[0].spec.cwd,
            "notes": list(dict.fromkeys(note for one in made for note in one.notes)),
            "candidates": offers[0],
        }

    @routes.get("/managed")
    async def queue(request: Request, all: bool = False) -> Json:
        """Managed jobs of now; with `all` those of the past too. The newest first."""
        desk, seen = desk_of(request), desk_of(request).snapshot()
        found = {job.id: job for job in seen.jobs.values() if is_managed(job.spec)}
        if all:
            past = await desk.read(lambda: list(desk.history.jobs(HistoryQuery())))
            found = {job.id: job for job in past if is_managed(job.spec)} | found
        costs = await desk.costs(list(found))
        jobs = [_view(job, seen, costs.get(job.id)) for job in found.values()]
        return {"jobs": sorted(jobs, key=lambda one: -int(one["id"])), "at": seen.at}

    return routes


def _made(file: TaskFile, asked: ManagedRequest, desk: Desk) -> list[Translated]:
    if asked.num_jobs and len(file.tasks) > 1:
        raise BadSpec("num_jobs", asked.num_jobs, "--num-jobs is for one task")
    name = asked.overrides.get("name")
    return [
        managed(task, origin(asked, desk.site, task), place=place, jobs=asked.num_jobs)
        for task, place in zip(file.tasks, places(file, name), strict=True)
    ]


async def _submitted(
    desk: Desk, owner: Owner, file: TaskFile, *, asked: ManagedRequest, made: list[Translated]
) -> list[int]:
    """Their ids; the same for every try of one request."""
    together = file.kind == "group" or asked.group
    jobs: list[int] = []
    for number, one in enumerate(made):
        spec = one.spec if together or not jobs else after(one.spec, jobs[-1])
        request = asked.request if number == 0 else f"{asked.request[:56]}x{number}"
        command = Submit(spec=spec, owner=owner, request=request, blobs=one.blobs)
        jobs.append(int(await desk.ask(command)))
    return jobs


def _view(job: Job, seen: Snapshot, cost: int | None) -> Json:
    told = job_view(job, seen=seen, cost=cost)
    status = STATES.get(job.shown_state, job.shown_state)
    if job.restarts and status in {"PENDING", "STARTING"}:
        status = "RECOVERING"
    rank = job.array.task if job.array else None
    return {**told, "status": status, "comment": job.spec.comment, "rank": rank}
