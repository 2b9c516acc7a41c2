"""Offers as data: instance types, what they give, and their prices in columns, cheapest first."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accounting.tres import GresCounts
from broker.model.offer import Market, Offer
from broker.model.rates import PUBLISHED, Rates
from broker.optimize.gpus import NOT_CUDA

MARKET_WORDS: Mapping[Market, tuple[str, ...]] = {
    Market.ON_DEMAND: ("ondemand", "on-demand"),
    Market.SPOT: ("spot",),
}
OPT_IN = "opt-in"


@dataclass(frozen=True, slots=True)
class Shape:
    """What an instance type gives, the same in every region."""

    name: str
    family: str
    arch: str
    cpus: int
    """vCPUs."""
    mem_mib: int
    gpu: str = ""
    """Accelerator, as `gpus.gpu_key` spells it."""
    gpu_name: str = ""
    gpus: int = 0
    """Devices seen in the machine; a fraction of a GPU is one device."""
    gpu_mem_mib: int = 0
    tmp_mib: int = 0
    gres: GresCounts = ()
    words: tuple[str, ...] = ()
    """What `--constraint` can name of it, as shown."""
    features: frozenset[str] = frozenset()
    """`words` in lower case, for asking."""
    fraction: float = 1.0

    @property
    def cuda(self) -> bool:
        """Whether it has what a request for any GPU means."""
        return self.gpus > 0 and self.features.isdisjoint(NOT_CUDA)


@dataclass(frozen=True, slots=True)
class Region:
    name: str
    opt_in: bool = False
    zones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    as_of: str
    name: str = ""
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class Prices:
    """The price lines of one market, grouped by shape, cheapest first within each."""

    start: Sequence[int]
    """First line of each shape; one more at the end."""
    price: Sequence[int]
    """Micro-dollars per hour."""
    band: Sequence[int]
    region: Sequence[int]
    zones: Sequence[int]
    source: Sequence[int]
    order: tuple[int, ...] = ()
    """Shapes that have a price, by their cheapest."""


def prices(counts: Iterable[int], columns: Mapping[str, Iterable[int]]) -> Prices:
    """Packs columns whose lines stand in order of shape and price."""
    start = array("l", [0])
    for count in counts:
        start.append(start[-1] + count)
    price = array("q", columns["price"])
    priced = [n for n in range(len(start) - 1) if start[n] < start[n + 1]]
    return Prices(
        start=start,
        price=price,
        band=array("B", columns["band"]),
        region=array("H", columns["region"]),
        zones=array("H", columns["zones"]),
        source=array("H", columns["source"]),
        order=tuple(sorted(priced, key=lambda n: (price[start[n]], n))),
    )


def by_gpu(shapes: Sequence[Shape]) -> dict[str, tuple[int, ...]]:
    """The index `Catalog.by_gpu` of these shapes."""
    numbers: dict[str, tuple[int, ...]] = {}
    for number, shape in enumerate(shapes):
        for key in [shape.gpu, ""] if shape.cuda else [shape.gpu]:
            if shape.gpus:
                numbers[key] = (*numbers.get(key, ()), number)
    return numbers


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything one provider sells, for `rank`; iterating gives it as single offers."""

    provider: str
    shapes: tuple[Shape, ...]
    regions: tuple[Region, ...]
    zone_sets: tuple[tuple[str, ...], ...]
    sources: tuple[Source, ...]
    prices: Mapping[Market, Prices]
    by_gpu: Mapping[str, tuple[int, ...]]
    """Numbers of the shapes that have an accelerator, by its key; "" is any CUDA GPU."""
    bands: tuple[str, ...] = ("",)
    """Share of spot machines taken back in a month, by number; the last is "unknown"."""
    unpriced: tuple[int, ...] = ()
    """Per shape a bit for each region that offers it at an unknown price: not bought."""
    rates: Rates = PUBLISHED
    """Of what is billed beside machines."""
    given: Mapping[tuple[Market, int], Offer] = field(default_factory=dict)
    """The offers this was made of, where it was made of offers."""

    def __iter__(self) -> Iterator[Offer]:
        for market, row, number in self.lines():
            for zones in self.lots(market, self.zone_sets[self.prices[market].zones[row]]):
                yield self.offer(market, row, shape=number, zones=zones)

    def lines(self) -> Iterator[tuple[Market, int, int]]:
        """Each price line as market, row and number of its shape."""
        for market, lines in self.prices.items():
            for number in range(len(self.shapes)):
                for row in range(lines.start[number], lines.start[number + 1]):
                    yield market, row, number

    def lots(self, market: Market, zones: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """Zones as they are sold: spot each on its own, on-demand all in one offer."""
        if market is Market.ON_DEMAND or not zones:
            return (zones,)
        return [(zone,) for zone in zones]

    def offer(self, market: Market, row: int, *, shape: int, zones: tuple[str, ...]) -> Offer:
        """The price line as an Offer in the zones named."""
        if (given := self.given.get((market, row))) is not None:
            return given if given.zones == zones else _narrowed(given, zones)
        of, lines = self.shapes[shape], self.prices[market]
        region, source = self.regions[lines.region[row]], self.sources[lines.source[row]]
        place = (region.name, *zones, *MARKET_WORDS[market])
        return Offer(
            provider=self.provider,
            region=region.name,
            zones=zones,
            instance_type=of.name,
            market=market,
            micro_usd_per_hour=lines.price[row],
            cpus=of.cpus,
            mem_mib=of.mem_mib,
            gres=of.gres,
            arch=of.arch,
            family=of.family,
            features=(*of.words, *place, OPT_IN) if region.opt_in else (*of.words, *place),
            as_of=source.as_of,
            estimate=source.estimate,
            tmp_mib=of.tmp_mib,
            band=self.bands[lines.band[row]] if lines.band[row] else "",
            on_demand_micro_usd=self._on_demand(shape, lines.region[row], market),
        )

    def _on_demand(self, shape: int, region: int, market: Market) -> int:
        """What a spot offer's type costs there on demand; 0 where nobody told, or it is none."""
        if market is not Market.SPOT:
            return 0
        lines = self.prices[Market.ON_DEMAND]
        rows = range(lines.start[shape], lines.start[shape + 1])
        return max((lines.price[row] for row in rows if lines.region[row] == region), default=0)

    def shape(self, name: str) -> Shape | None:
        """The instance type of that name."""
        return next((shape for shape in self.shapes if shape.name == name.lower()), None)

    def least_price(self, name: str, market: Market = Market.ON_DEMAND) -> int | None:
        """Micro-dollars per hour of that type where it is cheapest; None if nobody told a price."""
        lines = self.prices[market]
        rows = [lines.start[n] for n in lines.order if self.shapes[n].name == name.lower()]
        return min((lines.price[row] for row in rows), default=None)

    def gpu_names(self) -> tuple[str, ...]:
        """Accelerators that some type has, as AWS and SkyPilot write them, sorted."""
        return tuple(sorted({shape.gpu_name for shape in self.shapes if shape.gpu_name}))

    def vocabulary(self) -> frozenset[str]:
        """Every feature that a constraint can name, in lower case."""
        words = {word for shape in self.shapes for word in shape.features}
        return frozenset(words) | self.place_words()

    def place_words(self) -> frozenset[str]:
        """The features that depend on where and how a type is bought."""
        zones = {zone for group in self.zone_sets for zone in group}
        markets = {word for words in MARKET_WORDS.values() for word in words}
        return frozenset(zones | markets | {region.name for region in self.regions} | {OPT_IN})


def _narrowed(offer: Offer, zones: tuple[str, ...]) -> Offer:
    gone = set(offer.zones) - set(zones)
    features = tuple(word for word in offer.features if word not in gone)
    return replace(offer, zones=zones, features=features)
