"""The service's HTTP face: the commands' door first, everything else through FastAPI."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from broker.model.errors import SpzError, Unknown
from broker.model.ids import NodeName
from gateway.api import stream
from gateway.api.auth import Scope, caller
from gateway.api.desk import Desk
from gateway.api.errors import body_of, status_of
from gateway.api.text import PATH, Log, Program, TextDoor
from gateway.api.wire import Peer
from gateway.config.problems import shown

OTHER = "other"
"""What is asked that is neither a command nor a route."""
App = Callable[[Scope, Any, Any], Awaitable[None]]


def build_app(
    desk: Desk,
    programs: Mapping[str, Program | stream.Interactive],
    *,
    log: Log,
    routers: Sequence[APIRouter] = (),
    key: bytes | None = None,
) -> App:
    """The ASGI application. `key` signs tokens for callers over TCP; without one there are none.

    Routes find the desk as `request.app.state.desk` and the caller with `peer(request)`.
    """
    once = {name: one for name, one in programs.items() if not isinstance(one, stream.Interactive)}
    streams = {
        name: one.run for name, one in programs.items() if isinstance(one, stream.Interactive)
    }
    door = TextDoor(desk, once, log=log, key=key)
    stream_door = stream.StreamDoor(desk, streams, log, key)
    api = FastAPI(title="SkyPurza", docs_url=None, redoc_url=None)
    api.state.desk = desk
    api.state.key = key
    api.add_exception_handler(SpzError, _told)
    api.add_exception_handler(RequestValidationError, _misfit)
    api.include_router(own)
    times = api.state.times = desk.times
    for router in routers:
        api.include_router(router)

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        begun = perf_counter()
        if scope["type"] == "http" and scope["path"].startswith(stream.PATH):
            await stream_door(scope, receive, send)
        elif scope["type"] == "http" and scope["path"].startswith(PATH):
            await door(scope, receive, send)
            name = scope["path"].removeprefix(PATH)
            times.note(name if name in once else OTHER, perf_counter() - begun)
        else:
            await api(scope, receive, send)
            times.note(_route(scope), perf_counter() - begun)

    return app


def _route(scope: Scope) -> str:
    """The route as it is written, which does not grow with what is asked for."""
    return str(getattr(scope.get("route"), "path", OTHER))


def peer(request: Request) -> Peer:
    """Who calls this route. Raises Denied."""
    state = request.app.state
    return caller(request.scope, key=state.key, now=state.desk.now())


async def _told(request: Request, error: Exception) -> JSONResponse:
    """Any error of ours as status and body; the framework asks for this signature."""
    if not isinstance(error, SpzError):
        raise error
    return JSONResponse(body_of(error), status_code=status_of(error))


async def _misfit(request: Request, error: Exception) -> JSONResponse:
    """What does not fit, as FastAPI tells it, but every value cut and as JSON can hold it."""
    if not isinstance(error, RequestValidationError):
        raise error
    told = [
        {key: one[key] for key in ("type", "loc", "msg")} | {"input": _plain(one.get("input"))}
        for one in error.errors()
    ]
    return JSONResponse({"detail": told}, status_code=422)


def _plain(value: object) -> object:
    if isinstance(value, bool | None) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return shown(value).encode("utf-8", "backslashreplace").decode("utf-8")


own = APIRouter()


@own.get("/healthz")
async def healthz(request: Request) -> dict[str, object]:
    """Answers as long as the service takes requests; `at` is the latest commit (seconds UTC)."""
    seen = request.app.state.desk.snapshot()
    return {
        "status": "ok",
        "cluster": seen.site.cluster,
        "version": seen.site.version,
        "at": seen.at,
        "started_at": seen.started_at,
    }


@own.post("/agent/{node}", status_code=204)
async def wake(request: Request, node: NodeName, io: str = "") -> None:
    """A node's agent has news: of the step of key `io` that it wrote, else in the journal.

    Only hastens what is looked at anyway, so that it may come from anybody here.
    """
    desk: Desk = request.app.state.desk
    if io:
        desk.wake_io(io)
        return
    if node not in desk.snapshot().nodes:
        raise Unknown(f"no node {node!r}")
    desk.wake(node)
    desk.bells.ring(node)
