"""Our own routes below /v1, as JSON: launch, clusters, jobs, why, logs."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from accounting.ids import JobId
from broker.decide.stopping import WAY_OUT, never_stops
from broker.model.commands import AddStep, Cancel, CancelStep, Signal, Target, TestSubmit, Update
from broker.model.errors import Busy, Conflict, Refused, Unknown
from broker.model.ids import BATCH, StepId
from broker.model.job import Job, Owner, Step, StepState
from broker.model.stopping import StartCluster, StopCluster
from broker.ports import HistoryQuery, Provider
from gateway.api.asking import AsciiJson, caller, desk_of, find_job, seen_by, viewer_of, writer
from gateway.api.desk import Desk
from gateway.api.errands import Backup, errands
from gateway.api.job_logs import Part, readable_log, tail, text
from gateway.api.job_views import (
    Json,
    cluster_view,
    clusters,
    job_view,
    nodes_of,
    run_view,
    storage_view,
)
from gateway.api.keeper import Keeper
from gateway.api.launches import (
    LaunchRequest,
    Market,
    Opening,
    Opens,
    Planned,
    candidates,
    explained,
    must_find,
    nodes_asked,
    planned,
    planned_run,
)
from gateway.api.managed import managed_jobs
from gateway.api.requests import requests
from gateway.api.why import rungs, why
from gateway.observe.chronicle import of_job

TERM = 15
DAY = 86400
BYTES = "application/octet-stream"


def router(
    *, market: Market, providers: Mapping[str, Provider], backup: Backup, keeper: Keeper
) -> APIRouter:
    """All of them; they find their desk as `request.app.state.desk`.

    `backup` copies the store to a path that does not exist yet, and may block.
    """
    routes = APIRouter(prefix="/v1")
    parts = (launches(market, providers), managed_jobs(market), of_clusters, requests(keeper))
    for part in (*parts, of_jobs, errands(providers, backup)):
        routes.include_router(part)
    return routes


def launches(market: Market, providers: Mapping[str, Provider]) -> APIRouter:
    """What makes clusters, and runs in them."""
    routes = APIRouter(default_response_class=AsciiJson)
    one_at_a_time = asyncio.Lock()

    @routes.post("/launch")
    async def launch(request: Request, asked: LaunchRequest) -> Json:
        """A cluster with the task in it; with `dry_run` only what it would be bought from.

        One at a time, so that two launches of one name make one cluster.
        """
        desk, owner = desk_of(request), await writer(request)
        async with one_at_a_time:
            seen = desk.snapshot()
            before = await desk.read(desk.history.reply, asked.request)
            plan = planned(asked, owner, seen, answered=before)
            offers: list[Json] = []
            if plan.spec is not None:
                quote = market.at(desk.now())
                offers = await desk.read(candidates, plan.spec, desk.site, quote)
            try:
                if asked.dry_run and plan.spec is not None and not offers:
                    await desk.ask(TestSubmit(spec=plan.spec, owner=owner))
                reply = None if asked.dry_run else await _asked(desk, plan, providers)
            except Refused as error:
                raise explained(error, plan.spec, desk.site) from None
        return _launched(plan, offers, reply)

    @routes.post("/clusters/{name}/exec")
    async def execute(request: Request, name: str, asked: LaunchRequest) -> Json:
        """A run in an open cluster, without `setup`; with `dry_run` only where it would be."""
        desk, owner = desk_of(request), await writer(request)
        plan = planned_run(asked, owner, desk.snapshot(), name=name)
        reply = None if asked.dry_run else await _asked(desk, plan, providers)
        return _launched(plan, [], reply)

    return routes


async def _asked(desk: Desk, plan: Planned, providers: Mapping[str, Provider]) -> Any:
    if plan.opening is not None:
        await _open(desk, plan.opening, providers[plan.opening.provider])
    for before in plan.first:
        await desk.ask(before)
    made = await desk.ask(plan.command)
    for then in plan.after:
        await desk.ask(then)
    return made


async def _open(desk: Desk, asked: Opening, provider: Provider) -> None:
    """Raises Refused, and Busy where the provider does not answer."""
    if not isinstance(provider, Opens):
        return
    try:
        await desk.read(provider.open_ports, asked.machines, asked.ports)
    except OSError as error:
        raise Busy(str(error), hint="the same command again") from error


def _launched(plan: Planned, offers: list[Json], reply: Any) -> Json:
    """The engine answers with a new job's id, or with the id of a step in one that was there."""
    there = plan.command.job if isinstance(plan.command, AddStep) else None
    step = reply if there is not None else 0
    return {
        "cluster": plan.cluster,
        "job": reply if there is None else there,
        "run": None if reply is None or not plan.runs else int(step) + 1,
        "reused": there is not None,
        "cwd": plan.cwd,
        "workdir": plan.workdir,
        "notes": list(plan.notes),
        "nodes": nodes_asked(plan.spec),
        "candidates": offers,
    }


# --- clusters

of_clusters = APIRouter(default_response_class=AsciiJson)


@of_clusters.get("/clusters")
async def list_clusters(request: Request) -> Json:
    """Every open cluster."""
    desk, seen = desk_of(request), await seen_by(request)
    found = clusters(seen.jobs)
    costs = await desk.costs([job.id for job in found])
    return {"clusters": [cluster_view(job, seen=seen, cost=costs.get(job.id)) for job in found]}


@of_clusters.get("/clusters/{name}/queue")
async def queue(request: Request, name: str) -> Json:
    """The runs of a cluster, in the order they were asked for."""
    owner, seen = await caller(request), await seen_by(request)
    job = must_find(seen, owner, name)
    runs = [run_view(job, step) for step in job.steps if step.run]
    return {"cluster": name, "job": job.id, "runs": runs}


@of_clusters.post("/clusters/{name}/down")
async def down(request: Request, name: str) -> Json:
    """Ends what runs in it and lets its machine go."""
    desk, owner = desk_of(request), await writer(request)
    job = must_find(await seen_by(request), owner, name)
    await desk.ask(Cancel(target=Target(job.id), by=owner))
    return {"cluster": name, "job": job.id}


@of_clusters.post("/clusters/{name}/stop")
async def stop(request: Request, name: str) -> Json:
    """Ends what runs in it and stops its machines; their disks stay, and are billed."""
    return await _power(request, name, StopCluster)


@of_clusters.post("/clusters/{name}/start")
async def start(request: Request, name: str) -> Json:
    """The same machines again, where they are."""
    return await _power(request, name, StartCluster)


async def _power(request: Request, name: str, kind: type[StopCluster | StartCluster]) -> Json:
    desk, owner = desk_of(request), await writer(request)
    job = must_find(await seen_by(request), owner, name)
    await desk.ask(kind(job=job.id, by=owner))
    return {"cluster": name, "job": job.id}


class IdleRequest(BaseModel):
    """After how many seconds without a run a cluster is let go or stopped; null keeps it."""

    idle_seconds: int | None = Field(default=None, ge=0)
    down: bool = True
    limit: bool = False
    """So long from now on, whatever runs (`wait_for: none`): then it is let go."""
    past_logins: bool = False
    """Sessions of ssh do not hold it off (`wait_for: jobs`)."""


@of_clusters.post("/clusters/{name}/autostop")
async def autostop(request: Request, name: str, asked: IdleRequest) -> Json:
    """Sets when it is let go, or stopped. Raises Conflict where it cannot be stopped."""
    desk, owner = desk_of(request), await writer(request)
    seen = await seen_by(request)
    job = must_find(seen, owner, name)
    why = "" if asked.down or asked.idle_seconds is None else never_stops(nodes_of(job, seen))
    if why:
        raise Conflict(f"cluster {name!r} cannot be stopped: {why}", hint=WAY_OUT)
    now, seconds = desk.now(), None if asked.limit else asked.idle_seconds
    ends = _ends_in(job, asked.idle_seconds, now) if asked.limit else None
    change = (
        *(("idle_seconds", seconds), ("idle_stops", not asked.down)),
        *(("idle_past_logins", asked.past_logins), ("idle_from", now)),
    )
    await desk.ask(Update(target=Target(job.id), by=owner, spec=change, time_limit=ends))
    return {"cluster": name, "job": job.id, "idle_seconds": seconds}


def _ends_in(job: Job, seconds: int | None, now: int) -> int | None:
    """The limit with which it has so long from now on."""
    if seconds is None:
        return None
    return max(0, now - (job.started or now) - job.suspended_for) + seconds


@of_clusters.get("/report")
async def report(request: Request, days: int | None = None) -> Json:
    """Clusters of the last days, those that are gone too, with what they cost."""
    desk, seen = desk_of(request), await seen_by(request)
    since = None if days is None else seen.at - days * DAY
    query = HistoryQuery(since=since)
    every = await desk.read(lambda: [one for one in desk.history.jobs(query) if one.spec.cluster])
    past = filter((await viewer_of(request)).job, every)
    live = {job.id: job for job in [*past, *clusters(seen.jobs)]}
    costs = await desk.costs(list(live))
    jobs = [job_view(job, seen=seen, cost=costs.get(job.id)) for job in live.values()]
    return {"clusters": jobs, "at": seen.at}


@of_clusters.get("/storage")
async def storages(request: Request, all_users: bool = False) -> Json:
    """Buckets that tasks of the caller have had by name; the latest that did tells of each."""
    desk, owner = desk_of(request), await caller(request)
    query = HistoryQuery(uids=() if all_users else (owner.uid,))
    past = await desk.read(lambda: [one for one in desk.history.jobs(query) if one.spec.buckets])
    jobs = {job.id: job for job in [*past, *desk.snapshot().jobs.values()]}
    by = await viewer_of(request)
    shown = filter(by.job, (job for _, job in sorted(jobs.items())))
    mine = [job for job in shown if all_users or job.owner.uid == owner.uid]
    found = {one.name: storage_view(job, one) for job in mine for one in job.spec.buckets}
    return {"storages": list(found.values()), "at": desk.now()}


@of_clusters.post("/clusters/{name}/cancel")
async def cancel_runs(request: Request, name: str, run: int | None = None) -> Json:
    """Ends what is running in it, or `run` if that is all; the cluster stays open."""
    desk, owner = desk_of(request), await writer(request)
    job = must_find(await seen_by(request), owner, name)
    ended = _to_cancel(job, run)
    for step in ended:
        await desk.ask(_end(job, step, by=owner))
    return {"cluster": name, "job": job.id, "runs": [int(step.id) + 1 for step in ended]}


def _end(job: Job, step: Step, *, by: Owner) -> Signal | CancelStep:
    """SIGTERM for what runs, so that it can tidy up; what waits never begins."""
    if step.state is StepState.RUNNING:
        return Signal(target=Target(job.id), by=by, number=TERM, step=step.id)
    return CancelStep(job=job.id, step=step.id, by=by)


def _to_cancel(job: Job, run: int | None) -> list[Step]:
    """The runs that are ended. Raises Unknown, Conflict."""
    live = [step for step in job.steps if step.run and not step.state.final]
    asked = [step for step in live if run is None or step.id == str(run - 1)]
    if run is not None and job.step(StepId(str(run - 1))) is None:
        raise Unknown(f"cluster {job.spec.cluster!r} has no run {run}")
    if not asked:
        raise Conflict(f"nothing to cancel in cluster {job.spec.cluster!r}: it is not running")
    return asked


# --- jobs

of_jobs = APIRouter(default_response_class=AsciiJson)


class LogQuery(BaseModel):
    """Which text: of a run of a cluster, of the batch script without one."""

    run: int | None = None
    rank: Annotated[int, Field(ge=0)] = 0
    """Of the node whose text it is."""
    attempt: int | None = None
    """Of a managed job, counted from 1; absent: the latest."""
    follow: bool = False
    tail: Annotated[int | None, Field(ge=0, le=1 << 20)] = None
    """So many bytes of its end; absent: all of it."""


@of_jobs.get("/jobs")
async def list_jobs(request: Request) -> Json:
    """Jobs that are not over, and those that ended lately."""
    desk, seen = desk_of(request), await seen_by(request)
    costs = await desk.costs(list(seen.jobs))
    jobs = [job_view(job, seen=seen, cost=costs.get(job.id)) for job in seen.jobs.values()]
    return {"jobs": jobs, "at": seen.at}


@of_jobs.get("/jobs/{job_id}")
async def show_job(request: Request, job_id: int) -> Json:
    """A job of now or of the past, with its runs."""
    desk = desk_of(request)
    job = await find_job(desk, job_id, await viewer_of(request))
    costs = await desk.costs([job.id])
    return job_view(job, seen=desk.snapshot(), cost=costs.get(job.id))


@of_jobs.post("/jobs/{job_id}/cancel")
async def cancel_job(request: Request, job_id: int) -> Json:
    """As scancel does."""
    desk, owner = desk_of(request), await writer(request)
    await desk.ask(Cancel(target=Target(JobId(job_id)), by=owner))
    return {"job": job_id}


@of_jobs.get("/jobs/{job_id}/why")
async def reasons(request: Request, job_id: int) -> Json:
    """Why this type, zone and market, or why it waits; `lines` are for people."""
    desk = desk_of(request)
    job = await find_job(desk, job_id, await viewer_of(request))
    events = await desk.read(desk.history.events, job.id)
    costs = await desk.costs([job.id])
    cost = costs.get(job.id)
    return {
        "job": job.id,
        "state": job.shown_state,
        "reason": job.reason,
        "detail": job.detail,
        "choice": [rung.told() for rung in rungs(job.choice)],
        "cost_micro_usd": cost,
        "lines": list(
            why(
                job,
                seen=desk.snapshot(),
                events=events,
                cost=cost,
                swept=desk.pushes.fallen_back,
            )
        ),
    }


@of_jobs.get("/jobs/{job_id}/events")
async def history(request: Request, job_id: int) -> Json:
    """What happened to it, in the words of the log; `told` is what each says beside."""
    desk = desk_of(request)
    job = await find_job(desk, job_id, await viewer_of(request))
    facts = await desk.read(desk.history.events, job.id)
    told = [(fact, line) for fact in facts if (line := of_job(fact)) is not None]
    events = [{"at": fact.at, "event": line[0], "told": line[1]} for fact, line in told]
    return {"job": job.id, "events": events}


@of_jobs.get("/jobs/{job_id}/log")
async def log(request: Request, job_id: int, wanted: Annotated[LogQuery, Query()]) -> Response:
    """The text of a run (of the batch script without `run`), followed until it is over.

    With `tail` only its end, which the service reads with the rights of the job's owner.
    """
    desk, owner = desk_of(request), await caller(request)
    job = await find_job(desk, job_id, await viewer_of(request))
    step = BATCH if wanted.run is None else StepId(str(wanted.run - 1))
    part = Part(job, step, wanted.rank, wanted.attempt)
    if wanted.tail is not None:
        with desk.looks.one(job.owner.uid, job.owner.user):
            data = await desk.read(tail, part, owner, desk.site.admins, size=wanted.tail)
        return Response(data, media_type=BYTES)
    path = readable_log(part, caller=owner, desk=desk)
    told = text(desk, part, path, follow=wanted.follow)
    return StreamingResponse(told, media_type=BYTES)
