"""Routes that tell what could be bought: offers for a request, accelerators, a fresh catalogue."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from broker.model.commands import TakeFigures
from broker.model.errors import BadOption, Refused
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import TaskSpec
from broker.optimize.accelerators import Accelerated, Priced, accelerated
from broker.optimize.ages import old, told
from broker.optimize.catalog import Catalog
from broker.optimize.gpus import nominal_gb
from broker.schedule.demand import demand, need_of
from broker.schedule.shapes import liked
from gateway.api.asking import AsciiJson, caller, desk_of, operator
from gateway.api.job_views import Json, offer_view
from gateway.api.launches import LaunchRequest, Market, one_task, origin
from gateway.api.reuse import EXPECTED_SECONDS
from gateway.translate.sbatch_resources import read_features
from gateway.translate.skypilot_task import translate

MOST = 50
CatalogOf = Callable[[str], Catalog]
"""What a provider sells, as it stands."""
EMBEDDED = "local"
"""A provider that every site has; figures are the same for each."""


class OffersRequest(LaunchRequest):
    """A task of which only the resources count."""

    partition: str | None = None
    seconds: int = EXPECTED_SECONDS
    """How long it is taken to run."""
    count: int = 20
    constraint: str | None = Field(default=None, min_length=1)
    """Features as `sbatch -C` takes them."""
    prefer: str | None = Field(default=None, min_length=1)
    """`cost`, `time`, or features, as `sbatch --prefer` takes them."""


class GpusQuery(BaseModel):
    """Which accelerators, and where."""

    name: str | None = None
    regions: str = ""
    """Names with commas; none: all that are not opt-in."""
    each: bool = False
    """The cheapest price of every region."""


def offers(market: Market, catalog: CatalogOf, reload: Callable[[], Iterable[str]]) -> APIRouter:
    """`reload` reads refreshed catalogues and says of what days their figures are."""
    routes = APIRouter(prefix="/v1", default_response_class=AsciiJson)

    @routes.post("/offers")
    async def ranked(request: Request, asked: OffersRequest) -> Json:
        """The best first, each with the reason for its place. Raises BadOption if there is none."""
        desk = desk_of(request)
        await caller(request)
        task = one_task(asked)
        spec = _held_to(
            asked, translate(task, origin(asked, desk.site, task), cluster="offers").spec
        )
        named = asked.partition or next(iter(spec.partitions or ()), None)
        partition, elastic = _elastic(desk.site, named)
        need = need_of(spec, demand(spec, partition), asked.seconds)
        quote, wish = market.at(desk.now()), asked.prefer and read_features(asked.prefer)
        found = liked(quote, need, elastic=elastic, wish=wish)
        if found.first is None:
            raise BadOption("resources", "", "no offer serves this request", hint=found.explain)
        shown = islice(found.rungs, min(asked.count, MOST))
        return {"partition": partition.name, "offers": list(map(offer_view, shown))}

    @routes.get("/gpus")
    async def gpus(request: Request, asked: Annotated[GpusQuery, Query()]) -> Json:
        """Types with accelerators, and the cheapest price of each market."""
        desk = desk_of(request)
        await caller(request)
        _, elastic = _elastic(desk.site, None)
        found = await desk.read(
            lambda: accelerated(
                catalog(elastic.buy.provider),
                name=asked.name,
                regions=filter(None, asked.regions.split(",")),
                each=asked.each,
            )
        )
        rows = [_gpu_row(one, desk.now(), elastic.buy.old_days) for one in found]
        return {"gpus": rows}

    @routes.post("/catalog/reload")
    async def again(request: Request) -> Json:
        """Takes up figures that were refreshed."""
        owner, desk = await operator(request), desk_of(request)
        days = await desk.read(reload)
        figures = catalog(EMBEDDED)
        words = figures.vocabulary()
        await desk.ask(TakeFigures(rates=figures.rates, words=words, by=owner))
        return {"days": sorted(days)}

    return routes


def _held_to(asked: OffersRequest, spec: TaskSpec) -> TaskSpec:
    """With the constraint that is asked for beside the task."""
    if asked.constraint is None:
        return spec
    own = spec.resources.model_copy(update={"constraint": read_features(asked.constraint)})
    return spec.model_copy(update={"resources": own})


def _elastic(site: Site, name: str | None) -> tuple[Partition, Elastic]:
    """The partition named, else the default one, else the first that buys. Raises Refused."""
    named = [p for p in site.partitions if p.name == name] if name else [*site.partitions]
    buying = [(not p.default, p, p.elastic) for p in named if p.elastic is not None]
    if not buying:
        raise Refused(f"partition {name or 'of any name'} buys no machines")
    _, partition, elastic = min(buying, key=lambda found: found[0])
    return partition, elastic


def _gpu_row(one: Accelerated, now: int, old_days: int) -> Json:
    return {
        "gpu": one.gpu,
        "count": one.gpus,
        "fraction": one.shape.fraction,
        "gpu_gb": nominal_gb(one.shape.gpu_mem_mib),
        "instance_type": one.shape.name,
        "cpus": one.shape.cpus,
        "mem_mib": one.shape.mem_mib,
        "prices": [_price_row(price, now, old_days) for price in one.prices],
    }


def _price_row(price: Priced, now: int, old_days: int) -> Mapping[str, Any]:
    return {
        "region": price.region,
        "market": price.market.value,
        "micro_usd_per_hour": price.micro_usd_per_hour,
        "as_of": price.as_of,
        "estimate": price.estimate,
        "told": told(price.as_of, now, old_days=old_days),
        "old_price": old(price.as_of, now, old_days=old_days) or None,
    }
