"""Routes for operators: health, what providers hold against what is known, backups."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from fastapi import APIRouter, Request
from pydantic import BaseModel

from broker.model.boots import BuyAgain
from broker.model.errors import Busy, Refused
from broker.model.leftover import Leftover
from broker.model.offer import Machine
from broker.optimize.ages import old
from broker.ports import Provider
from broker.provision.reconcile import Difference, difference, nodes_of
from gateway.api.asking import AsciiJson, desk_of, operator
from gateway.api.desk import Desk
from gateway.api.job_views import Json, node_view

Backup = Callable[[Path], None]
LATELY = 120
"""Seconds in which a provider may not show yet what was bought."""


@runtime_checkable
class Regional(Protocol):
    """A provider with regions, where things of ours may be beside the machines it tells of."""

    def search(self) -> list[str]:
        """Takes up what was forgotten in any region; those where that was. Raises OSError."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """What nothing uses any more. Raises OSError."""
        ...

    def let_go(self, things: Sequence[Leftover]) -> Sequence[Leftover]:
        """Those of them that are gone; one that is used after all stays."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a provider holds against what is known, and what its machines left behind."""

    machines: Difference
    things: Sequence[Leftover] = ()
    gone: Sequence[Leftover] = ()


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
        """What providers hold that nobody knows or uses, and what is known that they do not hold.

        With `everywhere` in all regions, also those where this service never bought anything.
        """
        await operator(request)
        desk = desk_of(request)
        return _told(await _looked(desk, providers, everywhere=everywhere), desk.now())

    @routes.post("/sweep")
    async def sweep(request: Request, everywhere: bool = False) -> Json:
        """The same, and lets go of what nobody knows or uses."""
        await operator(request)
        desk = desk_of(request)
        found = await _looked(desk, providers, everywhere=everywhere)
        for name, one in found.items():
            found[name] = await desk.read(_let_go, providers[name], one)
        return _told(found, desk.now())

    @routes.get("/protected")
    async def protected(request: Request) -> Json:
        """Kinds of machines of which the last did not come up, and until when none is bought."""
        await operator(request)
        return {"kinds": [asdict(one) for one in desk_of(request).snapshot().boots.values()]}

    @routes.post("/protected/end")
    async def trust(request: Request, kind: str | None = None) -> Json:
        """They are bought again: of one kind, or of all; says which. Raises Unknown."""
        owner = await operator(request)
        return {"kinds": await desk_of(request).ask(BuyAgain(by=owner, name=kind))}

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


def _let_go(provider: Provider, found: Found) -> Found:
    provider.terminate(found.machines.stray)
    if not isinstance(provider, Regional):
        return found
    return replace(found, gone=provider.let_go(found.things))


async def _looked(
    desk: Desk, providers: Mapping[str, Provider], *, everywhere: bool
) -> dict[str, Found]:
    """By provider. Raises Busy where one does not answer."""
    try:
        return {
            name: await _found(desk, provider, everywhere=everywhere)
            for name, provider in providers.items()
        }
    except OSError as error:
        raise Busy(str(error), hint="`spz check` looks at the provider") from error


async def _found(desk: Desk, provider: Provider, *, everywhere: bool) -> Found:
    """What it holds is asked first: what is bought meanwhile is known by then."""
    things: Sequence[Leftover] = ()
    if isinstance(provider, Regional):
        if everywhere:
            await desk.read(provider.search)
        things = await desk.read(provider.leftovers)
    machines = await desk.read(provider.machines)
    nodes = nodes_of(desk.snapshot(), provider.name)
    return Found(difference(nodes, machines, lately=desk.now() - LATELY), things)


def _told(found: Mapping[str, Found], now: int) -> Json:
    return {
        "providers": [
            {
                "provider": name,
                "stray": [_machine(machine, now) for machine in one.machines.stray],
                "lost": [lost.node for lost in one.machines.lost],
                "leftovers": [{**asdict(left), "gone": left in one.gone} for left in one.things],
            }
            for name, one in found.items()
        ]
    }


def _machine(machine: Machine, now: int) -> Json:
    return {
        "id": machine.id,
        "node": machine.node,
        "instance_type": machine.instance_type,
        "region": machine.region,
        "launched_at": machine.launched_at,
        "micro_usd_per_hour": machine.micro_usd_per_hour,
        "old_price": old(machine.price_of, now) or None,
    }
