"""Figures read from EC2 laid over a catalogue's document; what was not read keeps its own day."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.model.offer import Market
from broker.model.rates import Rate
from broker.optimize.bundled import FORMAT

Document = dict[str, Any]
TypeRow = Mapping[str, Any]
"""A type's cells, by the columns of the document's table of types."""
LIVE = {Market.ON_DEMAND: "price-list", Market.SPOT: "spot-history"}


@dataclass(frozen=True, slots=True)
class RegionFigures:
    """What one region said; prices in micro-dollars an hour, zones by id."""

    region: str
    opt_in: bool
    zones: tuple[str, ...]
    offered: Mapping[str, tuple[str, ...]]
    """Zones that offer a type."""
    types: Mapping[str, TypeRow]
    on_demand: Mapping[str, int] | None
    """By type; None where the price list gave no answer."""
    spot: Mapping[tuple[str, str], int]
    """By type and zone."""
    rates: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of what is billed beside machines, by item and where something is sent to ("" anywhere)."""


class Line(NamedTuple):
    """A price line, ordered as the lines of a type stand."""

    price: int
    estimate: int
    band: int
    region: str
    zones: tuple[str, ...]
    source: tuple[str, str, int]


Lines = dict[str, list[Line]]
"""By type."""


@dataclass(slots=True)
class Table:
    """A document taken apart; `regions` are in its order, with their zones."""

    types: dict[str, TypeRow]
    lines: dict[Market, Lines]
    regions: dict[str, tuple[bool, list[str]]]
    unpriced: dict[str, set[str]]
    bands: list[str]
    rates: list[Rate] = field(default_factory=list)
    unknown: int = field(init=False)

    def __post_init__(self) -> None:
        self.unknown = len(self.bands) - 1


def refreshed(base: Document, read: Iterable[RegionFigures], day: str) -> Document:
    """The document with everything that was read, of the day; other regions stay as they were."""
    table = _unpacked(base)
    for figures in read:
        _lay_over(table, figures, day)
    return packed(table)


def _lay_over(table: Table, figures: RegionFigures, day: str) -> None:
    region = figures.region
    read = [
        Rate(item, region, to, price, day, LIVE[Market.ON_DEMAND])
        for (item, to), price in figures.rates.items()
    ]
    keys = {rate[:3] for rate in read}
    table.rates = sorted([*(rate for rate in table.rates if rate[:3] not in keys), *read])
    table.regions[region] = figures.opt_in, sorted(figures.zones)
    for name, row in figures.types.items():
        table.types.setdefault(name, row)
    ratios, bands = _advice(table, region)
    for name in table.types:
        zones = figures.offered.get(name, ())
        full = _on_demand(table, figures, name, day=day)
        _set(table.lines[Market.ON_DEMAND], name, region, fresh=[full] if full else [])
        _note_unpriced(table, name, region, unknown=bool(zones) and full is None)
        band = bands.get(name, table.unknown)
        quoted = [
            Line(figures.spot[name, zone], 0, band, region, (zone,), _source(Market.SPOT, day))
            for zone in zones
            if (name, zone) in figures.spot
        ]
        told = {line.zones[0] for line in quoted}
        rest = tuple(zone for zone in zones if zone not in told)
        guess = _guess(full, ratios.get(name), rest, band=band)
        _set(table.lines[Market.SPOT], name, region, fresh=[*quoted, *guess])


def _on_demand(table: Table, figures: RegionFigures, name: str, *, day: str) -> Line | None:
    """The price of what is offered: as it was read, or where nothing was, as it was known."""
    zones = figures.offered.get(name, ())
    if not zones:
        return None
    if figures.on_demand is None:
        known = table.lines[Market.ON_DEMAND].get(name, ())
        line = next((one for one in known if one.region == figures.region), None)
        return line._replace(zones=zones) if line else None
    price = figures.on_demand.get(name)
    source = _source(Market.ON_DEMAND, day)
    return None if price is None else Line(price, 0, 0, figures.region, zones, source)


def _source(market: Market, day: str) -> tuple[str, str, int]:
    return day, LIVE[market], 0


def _advice(
    table: Table, region: str
) -> tuple[dict[str, tuple[float, tuple[str, str, int]]], dict[str, int]]:
    """Spot's share of the full price as the advisor estimated it, and how often it is taken."""
    full = {
        name: line.price
        for name, lines in table.lines[Market.ON_DEMAND].items()
        for line in lines
        if line.region == region
    }
    ratios, bands = {}, {}
    spot = table.lines[Market.SPOT].items()
    for name, line in ((name, line) for name, lines in spot for line in lines):
        if line.region == region:
            bands[name] = line.band
            if line.estimate and full.get(name):
                ratios[name] = line.price / full[name], line.source
    return ratios, bands


def _guess(
    full: Line | None,
    ratio: tuple[float, tuple[str, str, int]] | None,
    zones: tuple[str, ...],
    *,
    band: int,
) -> list[Line]:
    if full is None or ratio is None or not zones:
        return []
    share, source = ratio
    return [Line(int(full.price * share), 1, band, full.region, zones, source)]


def _set(lines: Lines, name: str, region: str, *, fresh: list[Line]) -> None:
    lines[name] = [line for line in lines.get(name, ()) if line.region != region] + fresh


def _note_unpriced(table: Table, name: str, region: str, *, unknown: bool) -> None:
    of_type = table.unpriced.setdefault(name, set())
    of_type.add(region) if unknown else of_type.discard(region)


# --- the document


def _unpacked(document: Document) -> Table:
    columns = document["types"]
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    names = [row["name"] for row in rows]
    regions = {name: (bool(opt_in), list(zones)) for name, opt_in, zones in document["regions"]}
    return Table(
        types=dict(zip(names, rows, strict=True)),
        lines={market: _lines(document, market, names) for market in Market},
        regions=regions,
        unpriced={
            name: {region for n, region in enumerate(regions) if mask >> n & 1}
            for name, mask in zip(names, document["unpriced"], strict=True)
        },
        bands=list(document["bands"]),
        rates=[Rate(*row) for row in document.get("rates", ())],
    )


def _lines(document: Document, market: Market, names: Sequence[str]) -> Lines:
    columns = document[market]
    rows = zip(
        *(columns[key] for key in ("price", "band", "region", "zones", "source")), strict=True
    )
    found: Lines = {}
    for name, count in zip(names, columns["count"], strict=True):
        found[name] = [_line(document, next(rows)) for _ in range(count)]
    return found


def _line(document: Document, row: tuple[int, ...]) -> Line:
    price, band, region, zones, source = row
    day, name, guess = document["sources"][source]
    return Line(
        price,
        int(guess),
        band,
        document["regions"][region][0],
        tuple(document["zones"][zones]),
        (day, name, int(guess)),
    )


class _Numbers:
    """Distinct values of a column, numbered in the order met."""

    def __init__(self, values: Iterable[object] = ()) -> None:
        self.known: dict[object, int] = {value: n for n, value in enumerate(values)}

    def of(self, value: object) -> int:
        return self.known.setdefault(value, len(self.known))


def packed(table: Table) -> Document:
    """As it is written down: columns, lines of a type side by side, the cheapest first."""
    regions, zones, sources = _Numbers(table.regions), _Numbers(), _Numbers()
    names = sorted(table.types)
    rows = [table.types[name] for name in names]

    def columns(market: Market) -> Document:
        groups = [sorted(table.lines[market].get(name, ())) for name in names]
        ordered = [line for group in groups for line in group]
        return {
            "count": [len(group) for group in groups],
            "price": [line.price for line in ordered],
            "band": [line.band for line in ordered],
            "region": [regions.of(line.region) for line in ordered],
            "zones": [zones.of(line.zones) for line in ordered],
            "source": [sources.of(line.source) for line in ordered],
        }

    markets = {market.value: columns(market) for market in Market}
    return {
        "format": FORMAT,
        "types": {key: [row[key] for row in rows] for key in rows[0]},
        "unpriced": [_mask(table.unpriced.get(name, set()), table.regions) for name in names],
        **markets,
        "regions": [[name, opt_in, there] for name, (opt_in, there) in table.regions.items()],
        "zones": [list(group) for group in _values(zones)],
        "sources": [list(source) for source in _values(sources)],
        "bands": table.bands,
        "rates": [list(rate) for rate in table.rates],
    }


def _values(numbers: _Numbers) -> Iterator[tuple[object, ...]]:
    return (value for value in numbers.known if isinstance(value, tuple))


def _mask(regions: set[str], order: Iterable[str]) -> int:
    return sum(1 << number for number, name in enumerate(order) if name in regions)
