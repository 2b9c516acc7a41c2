"""Why an offer stands where it stands, in words for `spz why`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.model.build import Volume
from broker.model.offer import BuyPolicy, Market, Offer
from broker.model.rates import Rates
from broker.optimize.ages import old, told
from broker.optimize.catalog import Shape
from broker.optimize.cooldown import Cooling
from broker.optimize.costs import DISKS, days
from broker.optimize.query import FABRIC, Query, boot_weight


class Found(NamedTuple):
    """A price line that serves; sorts as it ranks, the same in every process."""

    liked: int
    """What it counts as: its cost, and more where it lacks what is preferred."""
    cost: int
    price: int
    estimate: bool
    band: int
    region: int
    shape: int
    market: int
    query: int
    row: int
    zones: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer that serves, its expected cost, and the refusal that speaks against it."""

    found: Found
    offer: Offer
    cooling: Cooling | None = None


def reason(candidate: Candidate, asked: tuple[Query, ...], *, first: Candidate, place: int) -> str:
    """One line: how the offer compares with the first, and what was liked better than it."""
    query = asked[candidate.found.query]
    if candidate.cooling is not None:
        return f"behind the others: {_refusal(candidate.cooling)}"
    told = _compared(candidate, first, query) if place else _best(candidate.found, query)
    if query.need.ordered and len(asked) > 1:
        return f"choice {candidate.found.query + 1} of {len(asked)}: {told}"
    return told


def _best(found: Found, query: Query) -> str:
    if query.policy.prefer == "time":
        return "starts soonest"
    if query.premium and FABRIC in query.catalog.shapes[found.shape].features:
        return f"least expected cost, where EFA may cost {query.premium}% more"
    return "least expected cost"


def _compared(candidate: Candidate, first: Candidate, query: Query) -> str:
    found, best = candidate.found, first.found
    shapes = query.catalog.shapes
    if query.policy.prefer == "time":
        later = query.policy.boot_seconds * (
            boot_weight(shapes[found.shape]) - boot_weight(shapes[best.shape])
        )
        if later > 0:
            return f"starts {later} s later than the first"
    more = found.cost - best.cost
    if more == 0:
        return f"costs as much as the first; {_tie(found, best)}"
    way = "more" if more > 0 else "less"
    share = f" ({abs(more) / best.cost:.1%})" if best.cost else ""
    return f"{abs(more) / 1_000_000:.6f} USD {way} than the first{share}"


def _tie(found: Found, best: Found) -> str:
    """What decided between two offers of the same cost."""
    decided = (
        ("its price by the hour is higher", found.price != best.price),
        ("its price is an estimate", found.estimate != best.estimate),
        ("it is taken back more often", found.band != best.band),
        ("its region is later in the alphabet", found.region != best.region),
        ("its type is later in the alphabet", found.shape != best.shape),
        ("on-demand goes first", found.market != best.market),
    )
    return next((told for told, so in decided if so), "its zone is later in the alphabet")


def _refusal(cooling: Cooling) -> str:
    if not cooling.was_tried:
        return cooling.message
    said = f" ({cooling.message})" if cooling.message else ""
    times = "" if cooling.strikes == 1 else f" {cooling.strikes} times"
    return f"{cooling.key[0]} refused{times} for {cooling.refusal}{said}"


def notes(candidate: Candidate, query: Query, now: int) -> Iterator[str]:
    """What a buyer should know beside the price."""
    found, offer = candidate.found, candidate.offer
    shape = query.catalog.shapes[found.shape]
    if told := price_told(offer, now, old_days=query.policy.old_days):
        yield told
    if beside := old_rates(query.policy, offer.region, query.catalog.rates, now=now):
        yield beside
    if offer.market is Market.SPOT and found.band:
        yield f"taken back in a month: {query.catalog.bands[found.band]}"
        if lost := query.seconds(boot_weight(shape), found.band) - query.seconds(
            boot_weight(shape)
        ):
            yield f"expected to lose {lost} s of work to that"
    if moved := query.moved[found.region]:
        yield f"bringing {query.need.data_gib} GiB of data there: {moved / 1_000_000:.2f} USD"
    if not offer.zones:
        yield "zones not known"
    if query.need.nodes > 1 and FABRIC in shape.features:
        yield "all nodes in one zone and placement group, with EFA"
    yield from _gpu_notes(shape, query.gpus)


def old_figures(query: Query, candidate: Candidate, now: int) -> str:
    """What is said of its price where that is old, else of the rates beside it."""
    policy, offer = query.policy, candidate.offer
    return old(offer.as_of, now, old_days=policy.old_days) or old_rates(
        policy, offer.region, query.catalog.rates, now=now
    )


def old_rates(policy: BuyPolicy, region: str, known: Rates, *, now: int) -> str:
    """What is said of the rates of volumes and addresses that count there, where they are old."""
    if not policy.root_gib and not policy.public_address:
        return ""
    day = days(policy, region, known)
    return old(day, now, old_days=policy.old_days, what="rates of volumes and addresses")


def old_volume(volume: Volume, region: str, known: Rates, *, now: int) -> str:
    """What is said of a volume's rate where that is old."""
    rate = known.of(DISKS[volume.kind].gib, region)
    return old(rate.as_of, now, what="rate of volumes")


def price_told(offer: Offer, now: int, *, old_days: int) -> str:
    """When the price was true, whether that is long ago, and whether it is a guess."""
    if not offer.as_of:
        return ""
    guess = "estimated from the average saving known, " if offer.estimate else ""
    return guess + told(offer.as_of, now, old_days=old_days)


def _gpu_notes(shape: Shape, gpus: int) -> Iterator[str]:
    if shape.fraction < 1 and gpus:
        yield f"{shape.fraction:g} of a {shape.gpu_name}, {shape.gpu_mem_mib} MiB"
    if shape.gpus > gpus > 0:
        yield f"has {shape.gpus} {shape.gpu_name}, {gpus} asked for"
