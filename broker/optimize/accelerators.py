"""Every accelerator that can be had: how many at a time, in which types, at what price where."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.model.offer import Market
from broker.optimize.catalog import Catalog, Shape
from broker.optimize.gpus import matching


@dataclass(frozen=True, slots=True)
class Priced:
    """The cheapest price of a type, in one region or in all."""

    region: str
    market: Market
    micro_usd_per_hour: int
    as_of: str
    estimate: bool


@dataclass(frozen=True, slots=True)
class Accelerated:
    """A type with accelerators and its prices, on demand and spot; none where nobody told one."""

    gpu: str
    gpus: int
    shape: Shape
    prices: tuple[Priced, ...]


def accelerated(
    catalog: Catalog, *, name: str | None = None, regions: Iterable[str] = (), each: bool = False
) -> list[Accelerated]:
    """Types with accelerators of that name (or all), the fewest first, then the smallest.

    Of each market the cheapest price in these regions (all but opt-in ones if none are named), or
    with `each` the cheapest of every region.
    """
    keys = matching(name, catalog.shapes) if name else None
    wanted = frozenset(regions) or {of.name for of in catalog.regions if not of.opt_in}
    found = [
        Accelerated(
            shape.gpu_name, shape.gpus, shape, tuple(_prices(catalog, number, wanted, each=each))
        )
        for number, shape in enumerate(catalog.shapes)
        if shape.gpus and (keys is None or shape.gpu in keys)
    ]
    return sorted((one for one in found if one.prices), key=_order)


def _order(one: Accelerated) -> tuple[str, int, float, int, str]:
    shape = one.shape
    return one.gpu.lower(), one.gpus, shape.fraction, shape.cpus, shape.name


def _prices(
    catalog: Catalog, number: int, wanted: Iterable[str], *, each: bool
) -> Iterator[Priced]:
    for market, lines in catalog.prices.items():
        told: set[str] = set()
        for row in range(lines.start[number], lines.start[number + 1]):
            region = catalog.regions[lines.region[row]].name
            if region not in wanted or region in told or (told and not each):
                continue
            told.add(region)
            source = catalog.sources[lines.source[row]]
            yield Priced(region, market, lines.price[row], source.as_of, source.estimate)
