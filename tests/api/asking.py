"""Requests to an application as somebody, without a socket."""

import asyncio
from typing import Any

import httpx

from gateway.api.app import App
from gateway.api.wire import Peer


def ask(app: App, method: str, route: str, *, uid: int = 0, **how: Any) -> httpx.Response:
    """The answer; `how` is what httpx takes: params, json, content, headers."""

    async def as_peer(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "peer": Peer(uid, uid)}, receive, send)

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(as_peer)
        async with httpx.AsyncClient(transport=transport, base_url="http://spz") as client:
            return await client.request(method, route, **how)

    return asyncio.run(request())
