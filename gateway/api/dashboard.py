"""The route by which a user of this host gets into the pages."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from gateway.api.asking import AsciiJson, caller, desk_of
from gateway.api.loopback import HOST, Loopback
from gateway.api.zone import is_zone

Ticket = Callable[[int, str], str]
"""Lets a uid in once; the zone is that in which times are told."""


class EnterRequest(BaseModel, extra="forbid"):
    """The page to begin with, and what TZ says where the user is."""

    page: str = Field("", max_length=64, pattern=r"^[a-z]*$")
    zone: str = Field("", max_length=256)


def dashboard(loopback: Loopback, ticket: Ticket) -> APIRouter:
    routes = APIRouter(prefix="/v1", default_response_class=AsciiJson)

    @routes.post("/dashboard")
    async def enter(request: Request, asked: EnterRequest) -> dict[str, Any]:
        """An address that lets the caller in once; the listener is there from now on."""
        owner = await caller(request)
        port = await loopback.port()
        made = ticket(owner.uid, asked.zone if is_zone(asked.zone) else "")
        page = f"?page={asked.page}" if asked.page else ""
        return {
            "url": f"http://{HOST}:{port}/enter/{made}{page}",
            "port": port,
            "host": desk_of(request).host,
        }

    return routes
