"""Routes about accounting plugins: how far each has come, and where it is to go on."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from gateway.api.asking import AsciiJson, desk_of, operator
from gateway.store.feed import Feeders

Json = dict[str, Any]


class PositionRequest(BaseModel, extra="forbid"):
    """Where a plugin goes on: after the entry of this number; None forgets one that is gone."""

    name: str = Field(min_length=1, max_length=256)
    position: int | None = Field(None, ge=0, lt=2**63)


def plugins(feeders: Feeders) -> APIRouter:
    routes = APIRouter(prefix="/v1/plugins", default_response_class=AsciiJson)

    async def standings(request: Request) -> Json:
        found = await desk_of(request).read(feeders.standings)
        return {"plugins": [asdict(one) for one in found]}

    @routes.get("")
    async def show(request: Request) -> Json:
        """Every consumer of the ledger, the sums of reports too; for administrators."""
        await operator(request)
        return await standings(request)

    @routes.post("")
    async def put(request: Request, asked: PositionRequest) -> Json:
        """For administrators. Raises Denied, Unknown, Refused, Conflict."""
        await operator(request)
        if asked.position is None:
            await desk_of(request).read(feeders.forget, asked.name)
        else:
            await desk_of(request).read(feeders.set, asked.name, asked.position)
        return await standings(request)

    return routes
