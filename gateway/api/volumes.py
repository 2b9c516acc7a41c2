"""Routes about volumes: which there are, making and deleting them."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from broker.decide.rules import QuoteFor
from broker.model.errors import BadOption, BadSpec
from broker.model.site import Site
from broker.model.spec import Resources, TaskSpec, Where
from broker.model.volume import ApplyVolume, DeleteVolume, NamedVolume, VolumeState, users_of
from broker.optimize.costs import hourly
from broker.optimize.reasons import old_volume
from broker.world import Snapshot
from gateway.api.asking import AsciiJson, caller, desk_of, viewer_of, writer
from gateway.api.job_views import Json
from gateway.api.launches import Market, need_in
from gateway.translate.volumes import TYPES, WantedVolume, read_volume


class VolumeRequest(BaseModel, extra="forbid"):
    """A volume's file, and what the command line says beside it."""

    text: str = "{}"
    overrides: dict[str, Any] = {}


def volumes(market: Market) -> APIRouter:
    routes = APIRouter(prefix="/v1/volumes", default_response_class=AsciiJson)

    @routes.get("")
    async def show(request: Request, all_users: bool = False) -> Json:
        """Those of the caller, or of everybody."""
        owner, seen = await caller(request), desk_of(request).snapshot()
        everybodys = all_users and (await viewer_of(request)).may("jobs")
        found = [one for one in seen.volumes.values() if everybodys or one.owner.uid == owner.uid]
        return {"volumes": [view(one, seen) for one in found], "at": seen.at}

    @routes.post("")
    async def apply(request: Request, asked: VolumeRequest) -> Json:
        """Makes it where there is none of that name. Raises BadSpec, Denied, Conflict."""
        desk, owner = desk_of(request), await writer(request)
        wanted = read_volume(asked.text, asked.overrides)
        region, zone = await desk.read(_place, wanted, desk.site, market.at(desk.now()))
        command = ApplyVolume(
            by=owner,
            name=wanted.name,
            gib=wanted.gib,
            tier=wanted.tier,
            labels=wanted.labels,
            provider=_provider(desk.site),
            region=region,
            zone=zone,
        )
        await desk.ask(command)
        return {"name": wanted.name, "notes": list(wanted.notes)}

    @routes.post("/{name}/delete")
    async def delete(request: Request, name: str, purge: bool = False) -> Json:
        """Raises Unknown, Denied, Conflict."""
        desk, owner = desk_of(request), await writer(request)
        await desk.ask(DeleteVolume(by=owner, name=name, purge=purge))
        return {"name": name}

    return routes


def _provider(site: Site) -> str:
    """Whose machines the usual partition buys. Raises BadOption where it buys none."""
    partition = site.default_partition
    if partition is None or partition.elastic is None:
        raise BadOption("partition", "", "no machines are bought here, so no volumes are attached")
    return partition.elastic.buy.provider


def _place(wanted: WantedVolume, site: Site, quote: QuoteFor) -> tuple[str, str]:
    """Region and zone: as asked, what is left open where machines are cheapest. Raises BadSpec."""
    _provider(site)
    partition = site.default_partition
    assert partition is not None
    assert partition.elastic is not None
    here = Where(region=wanted.region, zone=wanted.zone)
    spec = TaskSpec(name=wanted.name, resources=Resources(any_of=(here,)))
    best = quote(need_in(spec, partition), partition.elastic).first
    if best is None:
        where = "/".join(filter(None, (wanted.region, wanted.zone)))
        told = f"infra: no machines are to be had in {where or 'any region'}"
        raise BadSpec("infra", where, told, hint="`spz gpus list` and `spz offers` tell where")
    return best.offer.region, wanted.zone or best.offer.zones[0]


def view(one: NamedVolume, seen: Snapshot) -> Json:
    """With SkyPilot's words for its state."""
    users = [seen.jobs[job] for job in users_of(one.name, seen.jobs.values())]
    used = one.host is not None or any(job.shares for job in users)
    ready = one.state is VolumeState.READY
    return {
        "name": one.name,
        "type": TYPES[0],
        "cloud": "aws",
        "region": one.region,
        "zone": one.zone,
        "size": one.gib,
        "disk_tier": one.tier,
        "user_name": one.owner.user,
        "uid": one.owner.uid,
        "launched_at": one.asked_at,
        "last_attached_at": one.used_at,
        "status": ("IN_USE" if used else "READY") if ready else STATUS[one.state],
        "usedby_clusters": [job.spec.cluster or f"job {job.id}" for job in users],
        "name_on_cloud": one.id or None,
        "error_message": one.told or None,
        "micro_usd_per_hour": hourly(one.disk, one.region, seen.site.rates),
        "old_price": old_volume(one.disk, one.region, seen.site.rates, now=seen.at) or None,
    }


STATUS = {
    VolumeState.CREATING: "CREATING",
    VolumeState.FAILED: "NOT_READY",
    VolumeState.DELETING: "DELETING",
}
