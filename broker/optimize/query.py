"""A need, one of its alternatives and a policy, made ready to be asked of shapes and price lines.

The tests are a table, so that `rank` may ask all and `explain` may say which one failed. What a
policy leaves out by default is let in again where the request names it: `-C spot`, `-C t3`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from broker.model import constraint
from broker.model.build import USUAL
from broker.model.constraint import Expression
from broker.model.offer import Alternative, BuyPolicy, Market, Need, Offer
from broker.model.site import Elastic
from broker.optimize.catalog import MARKET_WORDS, OPT_IN, Catalog, Region, Shape
from broker.optimize.costs import beside, lost_seconds
from broker.optimize.gpus import matching

MINIMUM_SECONDS = 60
"""EC2 bills at least this much of each start."""
FABRIC = "efa"
ANYWHERE = Alternative()
PLAIN_BOOT, ACCELERATOR_BOOT, METAL_BOOT = BOOT_WEIGHTS = (1, 2, 10)
"""How much longer than a plain machine one with drivers to load, or bare metal, takes to boot."""


@dataclass(frozen=True, slots=True)
class Query:
    """Everything a test looks at; sets are in lower case, empty means any."""

    catalog: Catalog
    need: Need
    policy: BuyPolicy
    where: Alternative
    gpu_keys: frozenset[str] | None
    """None: any GPU."""
    gpus: int
    expression: Expression | None
    named: frozenset[str]
    """Features, places and types that the request or the policy names."""
    placed: frozenset[str]
    """Zones asked for, and what the constraint names that depends on where a type is bought."""
    own: frozenset[str]
    """Features that the partition gives to all of its machines."""
    markets: tuple[Market, ...]
    regions: tuple[str, ...]
    """For each region of the catalogue why it is left out; "" where it is not."""
    within: Mapping[Market, tuple[bool, ...]]
    """Whether each region is let in and may have places that the constraint and the zones allow."""
    max_price: int | None
    """Micro-dollars per hour and machine."""
    beside: tuple[int, ...]
    """For each region micro-dollars per hour and machine for what is billed beside its price."""
    least_beside: int
    premium: int
    """Percent by which types without EFA count dearer than they are."""
    moved: tuple[int, ...]
    """Micro-dollars for bringing the data to each region of the catalogue."""

    def order(self, market: Market) -> Iterable[int]:
        """Numbers of the shapes that may fit, those first that have the cheapest line."""
        lines, shapes, least = self.catalog.prices[market], self.catalog.shapes, self.need.cpus
        if not self.gpus:  # those that are large enough stand far behind: this is a cheap look
            return (number for number in lines.order if shapes[number].cpus >= least)
        keys = [""] if self.gpu_keys is None else self.gpu_keys
        numbers = {n for key in keys for n in self.catalog.by_gpu.get(key, ())}
        priced = (n for n in numbers if lines.start[n] < lines.start[n + 1])
        return sorted(priced, key=lambda n: (lines.price[lines.start[n]], n))

    def fits(self, shape: Shape) -> bool:
        """Whether the type gives what is asked, wherever it is bought."""
        for test in _TESTS:  # noqa: SIM110 - a generator here costs a third of a ranking
            if not test(self, shape):
                return False
        return True

    def zones(self, shape: Shape, market: Market, row: int) -> tuple[str, ...] | None:
        """Zones of a price line that are acceptable; None when none is, () when none is known."""
        if not self.within[market][self.catalog.prices[market].region[row]]:
            return None
        return self.accepted(shape, market, row)

    def accepted(self, shape: Shape, market: Market, row: int) -> tuple[str, ...] | None:
        """The same without regard to the region."""
        lines = self.catalog.prices[market]
        zones = self.catalog.zone_sets[lines.zones[row]]
        if not self.placed:
            return zones
        common = shape.features | self.own | self._words(market, lines.region[row])
        if not zones:
            return () if self._accepts(common, "") else None
        return tuple(zone for zone in zones if self._accepts(common, zone)) or None

    def _words(self, market: Market, region: int) -> frozenset[str]:
        of = self.catalog.regions[region]
        return frozenset((of.name, *MARKET_WORDS[market], *((OPT_IN,) if of.opt_in else ())))

    def _accepts(self, common: frozenset[str], zone: str) -> bool:
        if self.where.zones and zone not in self.where.zones:
            return False
        return self.expression is None or constraint.holds(self.expression, common | {zone})

    def seconds(self, weight: int, band: int = 0) -> int:
        """What is paid for each machine: boot, run, what lacks to the minimum, what is lost."""
        paid = max(MINIMUM_SECONDS, self.need.run_seconds + self.policy.boot_seconds * weight)
        return paid + lost_seconds(self.catalog.bands[band], paid, self.need.nodes)

    def affords(self, price: int) -> bool:
        """Whether a machine may cost so many micro-dollars an hour."""
        return self.max_price is None or price <= self.max_price

    def cost(self, price: int, seconds: int, region: int) -> int:
        """Micro-dollars for all machines, a started one counting whole."""
        return -(-(price + self.beside[region]) * seconds * self.need.nodes // 3600)

    def least(self, price: int, seconds: int) -> int:
        """The same where what is beside it costs least."""
        return -(-(price + self.least_beside) * seconds * self.need.nodes // 3600)

    def liked(self, shape: Shape, cost: int) -> int:
        """What a cost counts as where EFA is worth something: several nodes, or asked for."""
        if not self.premium or FABRIC in shape.features:
            return cost
        return cost + cost * self.premium // 100


def boot_weight(shape: Shape) -> int:
    if "metal" in shape.features:
        return METAL_BOOT
    return ACCELERATOR_BOOT if shape.gpus else PLAIN_BOOT


def warm_seconds(offer: Offer, elastic: Elastic) -> int:
    """How long an idle machine is kept: as the partition says, else as long as a start costs.

    Who keeps it so long never pays more than twice what knowing the future would cost.
    """
    if elastic.idle_seconds is not None:
        return elastic.idle_seconds
    weight = METAL_BOOT if "metal" in offer.features else PLAIN_BOOT
    if dict(offer.gres).get("gpu"):
        weight = max(weight, ACCELERATOR_BOOT)
    return elastic.buy.boot_seconds * weight


def schedulable_mib(mem_mib: int, policy: BuyPolicy) -> int:
    """Memory of a machine that jobs may ask for, in MiB."""
    return mem_mib * policy.memory_share_percent // 100


def queries(need: Need, catalog: Catalog, policy: BuyPolicy) -> tuple[Query, ...]:
    """One query for each alternative of the need. Raises BadOption for a constraint in error."""
    expression = constraint.of_need(need.constraint)
    return tuple(
        _query(need, catalog, where=where, policy=policy, expression=expression)
        for where in need.alternatives or (ANYWHERE,)
    )


def _query(
    need: Need,
    catalog: Catalog,
    *,
    where: Alternative,
    policy: BuyPolicy,
    expression: Expression | None,
) -> Query:
    asked = constraint.names(expression) | _listed(where)
    named = asked | _lower(policy.regions, policy.instance_types, policy.families)
    gpu_type, gpus = where.gpu or (need.gpu_type, need.gpus)
    names = tuple(of.name for of in catalog.regions)
    moves = need.data_gib and need.data_region
    besides = beside(policy, names, catalog.rates, build=need.build)
    left_out = tuple(
        _left_out(of, need, where, policy=policy, named=named) for of in catalog.regions
    )
    own = frozenset(policy.features)
    caps = (where.max_micro_usd_per_hour, policy.max_micro_usd_per_hour)
    return Query(
        catalog=catalog,
        need=need,
        policy=policy,
        where=where,
        gpu_keys=matching(gpu_type, catalog.shapes) if gpu_type else None,
        gpus=gpus,
        expression=expression,
        named=named,
        placed=_placed(catalog, where, expression),
        own=own,
        markets=where.markets or _markets(policy, named),
        regions=left_out,
        within=_within(catalog, where, expression, left_out=left_out, own=own),
        max_price=min((cap for cap in caps if cap is not None), default=None),
        beside=besides,
        least_beside=min(besides, default=0),
        premium=policy.efa_percent if need.nodes > 1 or (need.build or USUAL).fabric else 0,
        moved=tuple(
            catalog.rates.moving(need.data_gib, need.data_region, name) if moves else 0
            for name in names
        ),
    )


def _lower(*groups: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word.lower() for group in groups for word in group)


def _listed(where: Alternative) -> frozenset[str]:
    markets = tuple(market.value for market in where.markets)
    return _lower(where.regions, where.zones, where.instance_types, where.families, markets)


def _placed(catalog: Catalog, where: Alternative, expression: Expression | None) -> frozenset[str]:
    if expression is None:
        return frozenset(where.zones)
    return constraint.names(expression) & catalog.place_words() | frozenset(where.zones)


def _within(
    catalog: Catalog,
    where: Alternative,
    expression: Expression | None,
    *,
    left_out: tuple[str, ...],
    own: frozenset[str],
) -> Mapping[Market, tuple[bool, ...]]:
    """A first, generous look, with types taken as whatever the constraint wants."""
    placed = {name for region in catalog.regions for name in (region.name, *region.zones)}
    free = constraint.names(expression) - placed - _lower(*MARKET_WORDS.values()) | own

    def lets_in(region: Region, market: Market) -> bool:
        if where.zones and set(region.zones).isdisjoint(where.zones):
            return False
        known = free | _place(region) | {*MARKET_WORDS[market]}
        return expression is None or constraint.holds(expression, known)

    return {
        market: tuple(
            not out and lets_in(region, market)
            for region, out in zip(catalog.regions, left_out, strict=True)
        )
        for market in Market
    }


def _place(region: Region) -> frozenset[str]:
    return frozenset((region.name, *region.zones))


def _markets(policy: BuyPolicy, named: frozenset[str]) -> tuple[Market, ...]:
    spot = policy.spot or not named.isdisjoint(MARKET_WORDS[Market.SPOT])
    return tuple(Market) if spot else (Market.ON_DEMAND,)


def _left_out(
    region: Region, need: Need, where: Alternative, *, policy: BuyPolicy, named: frozenset[str]
) -> str:
    if policy.regions and region.name not in policy.regions:
        return "not a region of the partition"
    if where.regions and region.name not in where.regions:
        return "not a region asked for"
    if need.build is not None and not need.build.serves(region.name):
        return "no image is named for it"
    let_in = policy.opt_in_regions or not named.isdisjoint((region.name, OPT_IN, *region.zones))
    return "" if let_in or not region.opt_in else "an opt-in region"


def _has_gpus(query: Query, shape: Shape) -> bool:
    if not query.gpus:
        return True
    if query.gpu_keys is not None and shape.gpu not in query.gpu_keys:
        return False
    return shape.gpus >= query.gpus and (query.gpu_keys is not None or shape.cuda)


def _has_cpus(query: Query, shape: Shape) -> bool:
    exactly = query.need.cpus_exactly
    return shape.cpus >= query.need.cpus and exactly in {None, shape.cpus}


def _has_memory(query: Query, shape: Shape) -> bool:
    return schedulable_mib(shape.mem_mib, query.policy) >= query.need.mem_mib


def _has_disk(query: Query, shape: Shape) -> bool:
    return shape.tmp_mib >= query.need.tmp_mib


def _is_asked_for(query: Query, shape: Shape) -> bool:
    return _among(shape, query.where.instance_types, query.where.families)


def _is_of_partition(query: Query, shape: Shape) -> bool:
    return _among(shape, query.policy.instance_types, query.policy.families)


def _among(shape: Shape, types: tuple[str, ...], families: tuple[str, ...]) -> bool:
    if not types and not families:
        return True
    return shape.name in types or shape.family in families


def _can_have_features(query: Query, shape: Shape) -> bool:
    """Whether the constraint can hold somewhere: places and markets are taken as true."""
    if query.expression is None:
        return True
    return constraint.holds(query.expression, shape.features | query.own | query.placed)


def _named(query: Query, shape: Shape, word: str) -> bool:
    return not query.named.isdisjoint((shape.name, shape.family, word))


def _has_arch(query: Query, shape: Shape) -> bool:
    return shape.arch == query.policy.arch or _named(query, shape, shape.arch)


def _is_steady(query: Query, shape: Shape) -> bool:
    word = "burstable"
    return word not in shape.features or query.policy.burstable or _named(query, shape, word)


def _is_whole(query: Query, shape: Shape) -> bool:
    word = "gpu-fraction"
    return word not in shape.features or query.policy.gpu_fractions or _named(query, shape, word)


SHAPE_TESTS: tuple[tuple[str, Callable[[Query, Shape], bool]], ...] = (
    ("gpus", _has_gpus),
    ("cpus", _has_cpus),
    ("memory", _has_memory),
    ("local disk", _has_disk),
    ("instance type", _is_asked_for),
    ("instance types of the partition", _is_of_partition),
    ("constraint", _can_have_features),
    ("architecture", _has_arch),
    ("burstable types", _is_steady),
    ("fractions of a GPU", _is_whole),
)
_TESTS = tuple(test for _, test in SHAPE_TESTS)
