"""Routes for operators: health, what providers hold against what is known, backups."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from fastapi import APIRouter, Request
from pydantic import BaseModel

from broker.model.errors import Busy, Refused
from broker.model.offer import Machine
from broker.ports import Provider
from broker.provision.reconcile import Difference, difference, nodes_of
from gateway.api.asking import AsciiJson, desk_of, operator
from gateway.api.desk import Desk
from gateway.api.job_views import Json, node_view

Backup = Callable[[Path], None]
LATELY = 120
"""Seconds in which a provider may not show yet what was bought."""


@runtime_checkable
class Searching(Protocol):
    """A provider with regions, in some of which it may have forgotten machines of ours."""

    def search(self) -> list[str]:
        """Takes up what it finds; the regions where that was. Raises OSError."""
        ...


class BackupRequest(BaseModel):
    """Where the copy goes: a path on the service's host."""

    path: str


def errands(providers: Mapping[str, Provider], backup: Backup) -> APIRouter:
    """`backup` copies the store to a path that does not exist yet, and may block."""
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.get("/health")
    async def health(request: Request) -> Json:
        """That it works, who it is, and how much there is of everything."""
        return {**_health(desk_of(request)), "providers": sorted(providers)}

    @routes.get("/sweep")
    async def look(request: Request, everywhere: bool = False) -> Json:
        """What providers hold that nobody knows, and what is known that they do not hold.

        With `everywhere` in all regions, also those where this service never bought anything.
        """
        await operator(request)
        return _told(await _looked(desk_of(request), providers, everywhere=everywhere))

    @routes.post("/sweep")
    async def sweep(request: Request, everywhere: bool = False) -> Json:
        """The same, and lets go of what nobody knows."""
        await operator(request)
        found = await _looked(desk_of(request), providers, everywhere=everywhere)
        for name, one in found.items():
            await desk_of(request).read(providers[name].terminate, one.stray)
        return _told(found)

    @routes.post("/db/backup")
    async def copy(request: Request, asked: BackupRequest) -> Json:
        """Copies the store, as of one moment, to a file on the service's host."""
        await operator(request)
        path = _fresh(asked.path)
        await desk_of(request).read(backup, path)
        return {"path": str(path), "bytes": path.stat().st_size}

    return routes


def _fresh(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise Refused(f"{text}: not an absolute path")
    if path.exists():
        raise Refused(f"{text} is there already", hint="name a new file")
    return path


def _health(desk: Desk) -> Json:
    seen = desk.snapshot()
    live = [job for job in seen.jobs.values() if not job.over]
    return {
        "status": "ok",
        "cluster": seen.site.cluster,
        "version": seen.site.version,
        "pid": os.getpid(),
        "at": seen.at,
        "started_at": seen.started_at,
        "jobs_live": len(live),
        "jobs_running": sum(1 for job in live if job.shares),
        "nodes": [node_view(node, seen) for node in seen.nodes.values()],
    }


async def _looked(
    desk: Desk, providers: Mapping[str, Provider], *, everywhere: bool
) -> dict[str, Difference]:
    """Raises Busy where a provider does not answer."""
    try:
        for provider in providers.values() if everywhere else ():
            if isinstance(provider, Searching):
                await desk.read(provider.search)
        return await _differences(desk, providers)
    except OSError as error:
        raise Busy(str(error), hint="`spz check` looks at the provider") from error


async def _differences(desk: Desk, providers: Mapping[str, Provider]) -> dict[str, Difference]:
    """By provider. What they hold is asked first: what is bought meanwhile is known by then."""
    found = {}
    for name, provider in providers.items():
        machines = await desk.read(provider.machines)
        nodes = nodes_of(desk.snapshot(), name)
        found[name] = difference(nodes, machines, lately=desk.now() - LATELY)
    return found


def _told(found: Mapping[str, Difference]) -> Json:
    return {
        "providers": [
            {
                "provider": name,
                "stray": [_machine(machine) for machine in one.stray],
                "lost": [lost.node for lost in one.lost],
            }
            for name, one in found.items()
        ]
    }


def _machine(machine: Machine) -> Json:
    return {
        "id": machine.id,
        "node": machine.node,
        "instance_type": machine.instance_type,
        "region": machine.region,
        "launched_at": machine.launched_at,
        "micro_usd_per_hour": machine.micro_usd_per_hour,
    }
