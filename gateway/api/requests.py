"""What became of a request, by its id: what `--async` prints."""

from fastapi import APIRouter, Request

from accounting.ids import JobId
from broker.model.errors import Conflict, Unknown
from broker.model.ids import StepId
from gateway.api.asking import AsciiJson, caller, desk_of, find_job, seen_by, viewer_of, writer
from gateway.api.goals import Asked, End, told
from gateway.api.job_views import Json
from gateway.api.keeper import Keeper

OUT = "what was asked for with --async has one"


def requests(keeper: Keeper) -> APIRouter:
    """Those of launches by the job and run that they began, those of other verbs by their goals."""
    routes = APIRouter(prefix="/requests", default_response_class=AsciiJson)

    @routes.get("")
    async def not_over(request: Request, all_users: bool = False) -> Json:
        """Those of verbs that are not over: the caller's, or of everybody for administrators."""
        owner, admins = await caller(request), desk_of(request).site.admins
        everybodys = all_users and owner.uid in admins
        found = [one for one in keeper.open.values() if everybodys or one.uid == owner.uid]
        return {"requests": [{"request": one.request, "verb": one.verb} for one in found]}

    @routes.get("/{request_id}")
    async def what_became(request: Request, request_id: str) -> Json:
        """What it was, and its state. Raises Unknown."""
        desk = desk_of(request)
        await caller(request)
        reply = await desk.read(desk.history.reply, request_id)
        if reply is None:
            return await _of_verb(request, request_id, keeper)
        return await _of_launch(request, request_id, reply)

    @routes.post("")
    async def take(request: Request, asked: Asked) -> Json:
        """Notes what a client has begun; it is seen through, whoever else ends."""
        owner = await writer(request)
        at = desk_of(request).now()
        await keeper.take(asked.model_copy(update={"uid": owner.uid, "at": at}))
        return await _of_verb(request, asked.request, keeper)

    @routes.post("/{request_id}/end")
    async def end(request: Request, request_id: str, came_to: End) -> Json:
        """What it came to; `CANCELLED`: nothing more is done for it. Raises Unknown, Conflict."""
        owner = await writer(request)
        asked = await _owned(request, request_id, keeper)
        if await keeper.ended(request_id) is not None:
            raise Conflict(f"request {request_id} is over", hint=f"`spz api status {request_id}`")
        by_itself = any(goal.to == "told" for goal in asked.goals)
        if came_to.state != "CANCELLED" and not (by_itself and owner.uid == asked.uid):
            raise Conflict(f"request {request_id} ends by itself")
        lines = came_to.told or told(asked, await seen_by(request))
        await keeper.end(asked, came_to.model_copy(update={"told": lines}))
        await keeper.undo(asked)
        return await _of_verb(request, request_id, keeper)

    return routes


async def _owned(request: Request, request_id: str, keeper: Keeper) -> Asked:
    """Raises Unknown, also for somebody else's."""
    owner, asked = await caller(request), await keeper.find(request_id)
    admins = desk_of(request).site.admins
    if asked is None or (asked.uid != owner.uid and owner.uid not in admins):
        raise Unknown(f"no request {request_id}", hint=OUT)
    return asked


async def _of_verb(request: Request, request_id: str, keeper: Keeper) -> Json:
    """Processes are told to their user alone: whoever cancels it ends them with his own rights."""
    asked, asker = await _owned(request, request_id, keeper), await caller(request)
    end = await keeper.ended(request_id)
    lines = told(asked, await seen_by(request)) if end is None else end.told
    return {
        "request": request_id,
        "verb": asked.verb,
        "job": None,
        "cluster": None,
        "run": None,
        "state": "RUNNING" if end is None else end.state,
        "over": end is not None,
        "told": list(lines),
        "processes": _processes(asked) if end is None and asker.uid == asked.uid else [],
    }


def _processes(asked: Asked) -> list[Json]:
    return [{"pid": goal.pid, "birth": goal.birth} for goal in asked.goals if goal.pid]


async def _of_launch(request: Request, request_id: str, reply: str) -> Json:
    number, _, step = reply.partition(".")
    job = await find_job(desk_of(request), JobId(int(number)), await viewer_of(request))
    found = job.step(StepId(step or "0"))
    return {
        "request": request_id,
        "verb": "exec" if step else "launch",
        "job": job.id,
        "cluster": job.spec.cluster,
        "run": None if found is None else int(found.id) + 1,
        "state": job.shown_state,
        "over": job.over if found is None else found.state.final,
        "told": [],
        "processes": [],
    }
