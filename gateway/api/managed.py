"""Managed jobs: a task, a pipeline or a group as requeueable jobs, and their listing."""

from collections.abc import Iterator

from fastapi import APIRouter, Request
from pydantic import Field

from broker.model.commands import Submit
from broker.model.errors import BadSpec
from broker.model.job import Job, JobState, Owner
from broker.model.spec import Managed
from broker.ports import HistoryQuery
from broker.world import Snapshot
from gateway.api.asking import AsciiJson, desk_of, seen_by, viewer_of, writer
from gateway.api.desk import Desk
from gateway.api.job_views import Json, infra, job_view, nodes_of
from gateway.api.launches import (
    LaunchRequest,
    Market,
    candidates,
    given_with,
    nodes_asked,
    origin,
)
from gateway.translate.skypilot import Task, TaskFile, read_file
from gateway.translate.skypilot_managed import (
    after,
    ending_with,
    is_managed,
    joined,
    managed,
    places,
)
from gateway.translate.skypilot_task import Translated, settled

STATES = {
    "PENDING": "PENDING",
    "CONFIGURING": "STARTING",
    "RUNNING": "RUNNING",
    "COMPLETED": "SUCCEEDED",
    "CANCELLED": "CANCELLED",
    "TIMEOUT": "FAILED",
    "FAILED": "FAILED",
    "OUT_OF_MEMORY": "FAILED",
    "PREEMPTED": "FAILED",
    "NODE_FAIL": "FAILED",
    "BOOT_FAIL": "FAILED_NO_RESOURCE",
    "DEADLINE": "FAILED_NO_RESOURCE",
    "REQUEUED": "RECOVERING",
    "REQUEUE_HOLD": "RECOVERING",
    "SUSPENDED": "RECOVERING",
    "STOPPED": "RECOVERING",
}
"""SkyPilot's words for the states of a managed job."""
ENDING = {JobState.PENDING: "RECOVERING", JobState.CANCELLED: "CANCELLING"}
"""The same by the state to which an attempt that is ended comes."""


class ManagedRequest(LaunchRequest):
    """A task as typed, for a managed job."""

    num_jobs: int | None = Field(default=None, ge=1, le=10_000)


def managed_jobs(market: Market) -> APIRouter:
    """Their launch and their listing."""
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.post("/managed")
    async def launch(request: Request, asked: ManagedRequest) -> Json:
        """One job for each task; with `dry_run` only what they would be bought from."""
        desk, owner = desk_of(request), await writer(request)
        file = read_file(asked.task, given_with(asked))
        made = _made(file, asked, desk, owner=owner)
        offers = []
        for one in made:
            quote = market.at(desk.now())
            offers.append(await desk.read(candidates, one.spec, desk.site, quote))
        jobs = [] if asked.dry_run else await _submitted(desk, owner, file, asked=asked, made=made)
        return {
            "name": made[0].spec.name,
            "kind": file.kind,
            "jobs": jobs,
            "root": min(jobs, default=None),
            "primary": [
                job for job, task in zip(jobs, file.tasks, strict=False) if _leads(file, task)
            ],
            "tasks": [one.spec.name for one in made],
            "cwd": made[0].spec.cwd,
            "notes": list(dict.fromkeys(_notes(file, made))),
            "nodes": nodes_asked(made[0].spec),
            "candidates": offers[0],
        }

    @routes.get("/managed")
    async def queue(request: Request, all: bool = False) -> Json:
        """Managed jobs of now; with `all` those of the past too. The newest first."""
        desk, seen = desk_of(request), await seen_by(request)
        found = {job.id: job for job in seen.jobs.values() if is_managed(job.spec)}
        if all:
            past = await desk.read(lambda: list(desk.history.jobs(HistoryQuery())))
            by = await viewer_of(request)
            found = {job.id: job for job in past if is_managed(job.spec) and by.job(job)} | found
        costs = await desk.costs(list(found))
        jobs = [_view(job, seen, costs.get(job.id)) for job in found.values()]
        return {"jobs": sorted(jobs, key=lambda one: -int(one["id"])), "at": seen.at}

    return routes


def _made(file: TaskFile, asked: ManagedRequest, desk: Desk, *, owner: Owner) -> list[Translated]:
    if asked.num_jobs and len(file.tasks) > 1:
        raise BadSpec("num_jobs", asked.num_jobs, "--num-jobs is for one task")
    if asked.num_jobs and any(task.volumes for task in file.tasks):
        raise BadSpec("num_jobs", asked.num_jobs, "--num-jobs: a volume is with one job at a time")
    name = asked.overrides.get("name")
    found = places(file, name, at=desk.now())
    made = [
        managed(task, origin(asked, desk.site, task), place=place, jobs=asked.num_jobs)
        for task, place in zip(file.tasks, found, strict=True)
    ]
    known, admin = desk.snapshot().volumes, owner.uid in desk.site.admins
    return [settled(one, known=known, owner=owner, admin=admin) for one in made]


def _notes(file: TaskFile, made: list[Translated]) -> Iterator[str]:
    yield from file.header.notes
    for one in made:
        yield from one.notes


async def _submitted(
    desk: Desk, owner: Owner, file: TaskFile, *, asked: ManagedRequest, made: list[Translated]
) -> list[int]:
    """Their ids in the file's order; the same for every try of one request."""
    if file.kind == "group":
        return await _together(desk, owner, file, request=asked.request, made=made)
    jobs: list[int] = []
    for number, one in enumerate(made):
        spec = after(joined(one.spec, root=jobs[0]), jobs[-1]) if jobs else one.spec
        request = f"{asked.request[:56]}x{number}" if jobs else asked.request
        command = Submit(spec=spec, owner=owner, request=request, blobs=one.blobs)
        jobs.append(int(await desk.ask(command)))
    return jobs


async def _together(
    desk: Desk, owner: Owner, file: TaskFile, *, request: str, made: list[Translated]
) -> list[int]:
    """The tasks of a group as components of one job: all of them begin, or none.

    Those that the others end with come first.
    """
    leads = [_leads(file, task) for task in file.tasks]
    order = sorted(range(len(made)), key=lambda number: not leads[number])
    primary = tuple(place for place, number in enumerate(order) if leads[number])
    first, *more = (
        made[number].spec if leads[number] else ending_with(made[number].spec, primary)
        for number in order
    )
    blobs = {digest: data for one in made for digest, data in one.blobs.items()}
    command = Submit(spec=first, more=tuple(more), owner=owner, request=request, blobs=blobs)
    base = int(await desk.ask(command))
    return [base + order.index(number) for number in range(len(made))]


def _status(job: Job) -> str:
    if job.completing:
        return ENDING.get(job.state, "WINDING_DOWN")
    if job.state is JobState.FAILED and any(step.phase == "setup" for step in job.steps):
        return "FAILED_SETUP"
    status = STATES.get(job.shown_state, job.shown_state)
    return "RECOVERING" if job.restarts and status in {"PENDING", "STARTING"} else status


def _leads(file: TaskFile, task: Task) -> bool:
    """Whether the others end with it."""
    return not file.header.primary or task.name in file.header.primary


def _view(job: Job, seen: Snapshot, cost: int | None) -> Json:
    told = job_view(job, seen=seen, cost=cost)
    asked = job.spec.managed or Managed()
    return {
        **told,
        "status": _status(job),
        "infra": next((infra(node) for node in nodes_of(job, seen)), None),
        "rank": job.array.task if job.array else None,
        "kind": asked.kind,
        "root": job.array.base if job.array else asked.root or job.id,
        "whole": asked.name,
        "task": asked.number,
        "tasks": len(asked.tasks),
        "primary": not asked.outlives,
    }
