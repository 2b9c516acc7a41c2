"""Where machines may be bought, and what the whole site never goes beyond."""

from collections.abc import Mapping

from fastapi import APIRouter, Request

from broker.model.site import Elastic
from gateway.api.asking import AsciiJson, caller, desk_of
from gateway.api.job_views import Json


def infra(ceiling: Mapping[str, int | None]) -> APIRouter:
    """`ceiling` has machines, and micro-dollars an hour; None is no limit."""
    routes = APIRouter(prefix="/v1", default_response_class=AsciiJson)

    @routes.get("/infra")
    async def show(request: Request) -> Json:
        """What each partition that buys may buy, and where; the ceilings of all."""
        desk = desk_of(request)
        await caller(request)
        buying = [(one.name, one.elastic) for one in desk.site.partitions if one.elastic]
        found = [_buying(name, elastic) for name, elastic in buying]
        return {"partitions": found, "ceiling": ceiling}

    return routes


def _buying(name: str, elastic: Elastic) -> Json:
    buy = elastic.buy
    return {
        "name": name,
        "provider": buy.provider,
        "regions": list(buy.regions),
        "types": [*buy.instance_types, *buy.families],
        "spot": buy.spot,
        "max_nodes": elastic.max_nodes,
        "max_micro_usd_per_hour": buy.max_micro_usd_per_hour,
    }
