"""A catalogue of plain offers, for providers that have no table of their own."""

from collections.abc import Iterable, Sequence

from broker.model.offer import Market, Offer
from broker.optimize.catalog import (
    MARKET_WORDS,
    OPT_IN,
    Catalog,
    Prices,
    Region,
    Shape,
    Source,
    by_gpu,
    prices,
)
from broker.optimize.costs import likelihood
from broker.optimize.gpus import gpu_key

_Line = tuple[int, bool, str, tuple[str, ...]]


def shelve(offers: Iterable[Offer]) -> Catalog:
    """The offers as a Catalog; one that is a Catalog already is given back as it is."""
    if isinstance(offers, Catalog):
        return offers
    stock = [(_shape(offer), offer) for offer in offers]
    shapes = sorted({shape for shape, _ in stock}, key=_by_name)
    numbers = {shape: number for number, shape in enumerate(shapes)}
    opt_in = {offer.region for _, offer in stock if OPT_IN in offer.features}
    zones: dict[str, tuple[str, ...]] = {}
    for _, offer in stock:
        zones[offer.region] = tuple(sorted({*zones.get(offer.region, ()), *offer.zones}))
    shelf = _Shelf(
        shapes=len(shapes),
        regions=sorted(zones),
        zone_sets=sorted({offer.zones for _, offer in stock}),
        sources=sorted({(offer.as_of, offer.estimate) for _, offer in stock}),
        bands=["", *sorted({offer.band for _, offer in stock} - {""}, key=likelihood)],
    )
    lines = {market: _lines(stock, numbers, market) for market in Market}
    return Catalog(
        provider=stock[0][1].provider if stock else "",
        shapes=tuple(shapes),
        regions=tuple(Region(name, name in opt_in, zones[name]) for name in shelf.regions),
        zone_sets=tuple(shelf.zone_sets),
        sources=tuple(Source(as_of, "", estimate) for as_of, estimate in shelf.sources),
        prices={market: shelf.prices(rows) for market, rows in lines.items()},
        by_gpu=by_gpu(shapes),
        bands=tuple(shelf.bands),
        given={
            (market, row): offer
            for market, rows in lines.items()
            for row, (_, offer) in enumerate(rows)
        },
    )


class _Shelf:
    """Where each distinct value stands in its column's list."""

    def __init__(
        self,
        *,
        shapes: int,
        regions: list[str],
        zone_sets: list[tuple[str, ...]],
        sources: list[tuple[str, bool]],
        bands: list[str],
    ) -> None:
        self.shapes = shapes
        self.regions = regions
        self.zone_sets = zone_sets
        self.sources = sources
        self.bands = bands

    def prices(self, rows: Sequence[tuple[int, Offer]]) -> Prices:
        region = {name: number for number, name in enumerate(self.regions)}
        zones = {group: number for number, group in enumerate(self.zone_sets)}
        source = {value: number for number, value in enumerate(self.sources)}
        band = {name: number for number, name in enumerate(self.bands)}
        counts = [0] * self.shapes
        for number, _ in rows:
            counts[number] += 1
        return prices(
            counts,
            {
                "price": [offer.micro_usd_per_hour for _, offer in rows],
                "band": [band[offer.band] for _, offer in rows],
                "region": [region[offer.region] for _, offer in rows],
                "zones": [zones[offer.zones] for _, offer in rows],
                "source": [source[offer.as_of, offer.estimate] for _, offer in rows],
            },
        )


def _lines(
    stock: Iterable[tuple[Shape, Offer]], numbers: dict[Shape, int], market: Market
) -> list[tuple[int, Offer]]:
    rows = [(numbers[shape], offer) for shape, offer in stock if offer.market is market]
    return sorted(rows, key=lambda row: (row[0], _line(row[1])))


def _line(offer: Offer) -> _Line:
    return offer.micro_usd_per_hour, offer.estimate, offer.region, offer.zones


def _by_name(shape: Shape) -> tuple[object, ...]:
    return shape.name, shape.cpus, shape.mem_mib, shape.gres, shape.words


def _shape(offer: Offer) -> Shape:
    market = (word for words in MARKET_WORDS.values() for word in words)
    placed = {offer.region, *offer.zones, *market, OPT_IN}
    own = (offer.family, offer.instance_type, offer.arch, *offer.features)
    words = tuple(dict.fromkeys(word for word in own if word and word not in placed))
    gpus = dict(offer.gres)
    name = next((name[4:] for name in gpus if name.startswith("gpu:")), "")
    return Shape(
        name=offer.instance_type,
        family=offer.family,
        arch=offer.arch,
        cpus=offer.cpus,
        mem_mib=offer.mem_mib,
        gpu=gpu_key(name) if name else "",
        gpu_name=name,
        gpus=gpus.get("gpu", 0),
        tmp_mib=offer.tmp_mib,
        gres=offer.gres,
        words=words,
        features=frozenset(word.lower() for word in words),
    )
