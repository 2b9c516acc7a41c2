"""The same ranking by looking at every offer: slow, plain, and written apart from the real one."""

import math
from dataclasses import dataclass, replace

from broker.model.constraint import Both, Counted, Expression, Feature, Same, parse
from broker.model.offer import Alternative, BuyPolicy, Market, Need, Offer

NO_CUDA = {"amd-gpu", "gaudi", "neuron", "inference", "fpga", "media"}


@dataclass(frozen=True)
class Fit:
    liking: int
    seconds: int
    cost: int
    offer: Offer

    @property
    def sold(self) -> tuple[str, str, str, tuple[str, ...]]:
        return self.offer.instance_type, self.offer.region, self.offer.market, self.offer.zones


def search(need: Need, offers: list[Offer], policy: BuyPolicy) -> list[Fit]:
    """Every offer that serves, best first; equal ones by price, guess, region, type, zones."""
    expression = parse(need.constraint) if need.constraint else None
    told: set[tuple[str, str, str, str]] = set()
    fits: list[Fit] = []
    for liking, where in enumerate(need.alternatives or (Alternative(),)):
        for offer in offers:
            if not _serves(offer, need, where, policy):
                continue
            zones = _zones(offer, expression, where)
            sold = (offer.instance_type, offer.region, offer.market.value)
            fresh = {zone for zone in zones if (*sold, zone) not in told}
            told |= {(*sold, zone) for zone in fresh}
            if fresh:
                place = tuple(zone for zone in offer.zones if zone in fresh)
                fits.append(_fit(replace(offer, zones=place), need, policy, liking))
    return sorted(fits, key=lambda fit: _key(fit, need, policy))


def _key(fit: Fit, need: Need, policy: BuyPolicy) -> tuple[object, ...]:
    offer = fit.offer
    liking = fit.liking if need.ordered else 0
    time = fit.seconds if policy.prefer == "time" else 0
    price = (fit.cost, offer.micro_usd_per_hour, offer.estimate, BANDS.index(offer.band))
    place = (offer.region, offer.instance_type, offer.market, fit.liking, offer.zones)
    return liking, time, *price, *place


def _fit(offer: Offer, need: Need, policy: BuyPolicy, liking: int) -> Fit:
    boot = policy.boot_seconds
    if "metal" in offer.features:
        boot *= 10
    elif dict(offer.gres).get("gpu"):
        boot *= 2
    paid = max(60, need.run_seconds + boot)
    paid += _lost(offer.band, paid, need.nodes)
    hourly = offer.micro_usd_per_hour + policy.root_gib * 80_000 // 730
    hourly += 5_000 if policy.public_address else 0
    cost, rest = divmod(hourly * paid * need.nodes, 3600)
    return Fit(liking, boot, cost + bool(rest) + _moved(need, offer.region), offer)


BANDS = ["", "<5%", "5-10%", "10-15%", "15-20%", ">20%", "unknown"]
MONTHLY = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
FROM = {"eu-west-1": 20_000, "af-south-1": 147_000, "us-east-1": 20_000}


def _lost(band: str, paid: int, nodes: int) -> int:
    if not band:
        return 0
    survival = (1 - MONTHLY.get(band, 0.125)) ** (nodes * paid / (730 * 3600))
    return math.ceil((1 - survival) * paid / 2)


def _moved(need: Need, region: str) -> int:
    if not need.data_gib or region == need.data_region:
        return 0
    near = {need.data_region, region} == {"us-east-1", "us-east-2"}
    return need.data_gib * (10_000 if near else FROM[need.data_region])


def _zones(offer: Offer, expression: Expression | None, where: Alternative) -> set[str]:
    """Zones of the offer that the constraint and the alternative accept; {""} where unknown."""
    others = set(offer.features) - set(offer.zones)
    return {
        zone
        for zone in offer.zones or ("",)
        if (not where.zones or zone in where.zones) and _true(expression, others | {zone})
    }


def _true(expression: Expression | None, words: set[str]) -> bool:
    if expression is None:
        return True
    if isinstance(expression, Feature):
        return expression.name in words
    if isinstance(expression, Counted | Same):
        return _true(expression.of, words)
    sides = (_true(expression.left, words), _true(expression.right, words))
    return all(sides) if isinstance(expression, Both) else any(sides)


def _words(expression: Expression | None) -> set[str]:
    if expression is None:
        return set()
    if isinstance(expression, Feature):
        return {expression.name}
    if isinstance(expression, Counted | Same):
        return _words(expression.of)
    return _words(expression.left) | _words(expression.right)


def _serves(offer: Offer, need: Need, where: Alternative, policy: BuyPolicy) -> bool:
    return (
        _gives(offer, need, where, policy)
        and _is_asked_for(offer, where)
        and _is_of_partition(offer, policy)
        and not _is_left_out(offer, need, where, policy)
    )


def _gives(offer: Offer, need: Need, where: Alternative, policy: BuyPolicy) -> bool:
    gpu_type, gpus = where.gpu or (need.gpu_type, need.gpus)
    has = dict(offer.gres).get(f"gpu:{gpu_type.lower()}" if gpu_type else "gpu", 0)
    if gpus and not gpu_type and NO_CUDA & set(offer.features):
        has = 0
    return (
        has >= gpus
        and offer.cpus >= need.cpus
        and need.cpus_exactly in {None, offer.cpus}
        and offer.mem_mib * policy.memory_share_percent // 100 >= need.mem_mib
        and offer.tmp_mib >= need.tmp_mib
    )


def _is_asked_for(offer: Offer, where: Alternative) -> bool:
    cap = where.max_micro_usd_per_hour
    return (
        (not where.regions or offer.region in where.regions)
        and (not where.markets or offer.market in where.markets)
        and _is_one_of(offer, where.instance_types, where.families)
        and (cap is None or offer.micro_usd_per_hour <= cap)
    )


def _is_of_partition(offer: Offer, policy: BuyPolicy) -> bool:
    cap = policy.max_micro_usd_per_hour
    return (
        (not policy.regions or offer.region in policy.regions)
        and _is_one_of(offer, policy.instance_types, policy.families)
        and (cap is None or offer.micro_usd_per_hour <= cap)
    )


def _is_one_of(offer: Offer, types: tuple[str, ...], families: tuple[str, ...]) -> bool:
    return not (types or families) or offer.instance_type in types or offer.family in families


def _is_left_out(offer: Offer, need: Need, where: Alternative, policy: BuyPolicy) -> bool:
    """What the partition leaves out unless the request names it."""
    named = _words(parse(need.constraint)) if need.constraint else set()
    named |= {*where.regions, *where.zones, *where.instance_types, *where.families}
    named |= {*policy.regions, *policy.instance_types, *policy.families}
    named |= {market.value for market in where.markets}
    of_type = {offer.instance_type, offer.family}
    features = set(offer.features)
    rules = (
        (offer.arch != policy.arch, of_type | {offer.arch}),
        ("burstable" in features and not policy.burstable, of_type | {"burstable"}),
        ("gpu-fraction" in features and not policy.gpu_fractions, of_type | {"gpu-fraction"}),
        (offer.market is Market.SPOT and not policy.spot, {"spot"}),
    )
    if any(is_so and not named & excuse for is_so, excuse in rules):
        return True
    zones_named = any(_region_of(zone) == _region_of_name(offer.region) for zone in named)
    opt_in = "opt-in" in features and not policy.opt_in_regions
    return opt_in and not zones_named and not named & {offer.region, "opt-in"}


def _region_of(zone: str) -> str:
    return zone.split("-az", maxsplit=1)[0] if "-az" in zone else ""


def _region_of_name(region: str) -> str:
    """`afs1` of `af-south-1`: how zone ids begin."""
    area, direction, number = region.split("-")
    short = {"northeast": "ne", "southeast": "se", "northwest": "nw", "southwest": "sw"}
    return f"{area}{short.get(direction, direction[0])}{number}"
