"""Why nothing fits: which condition emptied the list, and what comes nearest."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from broker.model.offer import BuyPolicy, Market, Need, Offer
from broker.optimize.catalog import Shape
from broker.optimize.gpus import gpu_key
from broker.optimize.query import SHAPE_TESTS, Query, queries
from broker.optimize.shelf import shelve

NEAREST = 3
ORDER = ("known price", *(name for name, _ in SHAPE_TESTS), "market", "region", "place", "price")
"""The conditions as they are told, each after those before it."""


@dataclass(frozen=True, slots=True)
class Near:
    """An offer that lacks little, and the conditions that it does not meet."""

    offer: Offer
    fails: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a need has no offer; texts for people, the rest for programs."""

    emptied_by: str
    """The condition of ORDER after which no instance type was left, such as `memory`."""
    asked: str
    """What that condition asks, such as `4096 MiB of memory`."""
    left: tuple[tuple[str, int], ...]
    """Instance types left after each condition in turn."""
    nearest: tuple[Near, ...]
    suggestions: tuple[str, ...] = ()
    """Accelerators to try, where no type has the one that was asked for."""
    unpriced: tuple[str, ...] = ()
    """Types that would do and are offered where they may be bought, at a price nobody told."""

    @property
    def message(self) -> str:
        """One line for the user: the thing, the value, the way out."""
        told = f"no instance type offers {self.asked}"
        if self.suggestions:
            return f"{told}; try one of: {', '.join(self.suggestions)}"
        if 0 < len(self.unpriced) <= NEAREST:
            told += f"; {', '.join(self.unpriced)} would, but at an unknown price"
        if not self.nearest:
            return told
        return f"{told}; nearest: {'; '.join(_described(near) for near in self.nearest)}"


def explain(need: Need, offers: Iterable[Offer], target: BuyPolicy) -> Explanation | None:
    """Why `rank` finds nothing, told of the first alternative; None if there is an offer."""
    told = [_explained(query) for query in queries(need, shelve(offers), target)]
    return None if None in told else told[0]


@dataclass(frozen=True, slots=True)
class _Line:
    """A price line and every condition that it fails."""

    market: Market
    row: int
    shape: int
    fails: tuple[str, ...]


def _explained(query: Query) -> Explanation | None:
    of_shapes = [_shape_fails(query, shape) for shape in query.catalog.shapes]
    lines = [
        _Line(
            market,
            row,
            shape,
            of_shapes[shape] + tuple(_line_fails(query, market, row, shape=shape)),
        )
        for market, row, shape in query.catalog.lines()
    ]
    if any(not line.fails for line in lines):
        return None
    left = _left(lines)
    emptied_by = next(name for name, count in left if count == 0)
    return Explanation(
        emptied_by=emptied_by,
        asked=ASKED[emptied_by](query),
        left=left,
        nearest=tuple(_nearest(query, lines)),
        suggestions=_suggestions(query),
        unpriced=tuple(_unpriced(query, of_shapes)),
    )


def _shape_fails(query: Query, shape: Shape) -> tuple[str, ...]:
    return tuple(name for name, test in SHAPE_TESTS if not test(query, shape))


def _line_fails(query: Query, market: Market, row: int, *, shape: int) -> Iterator[str]:
    lines = query.catalog.prices[market]
    if market not in query.markets:
        yield "market"
    if query.regions[lines.region[row]]:
        yield "region"
    if query.accepted(query.catalog.shapes[shape], market, row) is None:
        yield "place"
    if not query.affords(lines.price[row]):
        yield "price"


def _left(lines: Iterable[_Line]) -> tuple[tuple[str, int], ...]:
    """How many types get past each condition with at least one line."""
    depth: dict[int, int] = {}
    for line in lines:
        passed = min(ORDER.index(name) for name in line.fails)
        depth[line.shape] = max(passed, depth.get(line.shape, 0))
    return tuple(
        (name, sum(passed > number for passed in depth.values()))
        for number, name in enumerate(ORDER)
    )


def _nearest(query: Query, lines: Iterable[_Line]) -> Iterator[Near]:
    """The lines that come closest, of each type the cheapest; all fail alike."""
    ordered = sorted(lines, key=lambda line: _distance(query, line))
    seen: set[int] = set()
    for line in ordered:
        alike = line.fails == ordered[0].fails
        stray = line.fails[0] == "gpus" and not _meant(query, query.catalog.shapes[line.shape])
        if alike and line.shape not in seen and len(seen) < (1 if stray else NEAREST):
            seen.add(line.shape)
            zones = query.catalog.zone_sets[query.catalog.prices[line.market].zones[line.row]]
            offer = query.catalog.offer(line.market, line.row, shape=line.shape, zones=zones)
            yield Near(offer, line.fails)


def _distance(query: Query, line: _Line) -> tuple[tuple[int, ...], int, int, int]:
    """How far a line is from serving: conditions told last are the easiest to give up."""
    first = line.fails[0]
    close = CLOSENESS.get(first, _equally_close)(query, query.catalog.shapes[line.shape])
    price = query.catalog.prices[line.market].price[line.row]
    return (len(line.fails), -ORDER.index(first), *close), price, line.shape, line.row


def _meant(query: Query, shape: Shape) -> bool:
    return shape.cuda if query.gpu_keys is None else shape.gpu in query.gpu_keys


def _equally_close(_query: Query, _shape: Shape) -> tuple[int, ...]:
    return ()


CLOSENESS: dict[str, Callable[[Query, Shape], tuple[int, ...]]] = {
    "gpus": lambda query, of: (not _meant(query, of), -of.gpus),
    "cpus": lambda query, of: (abs((query.need.cpus_exactly or query.need.cpus) - of.cpus),),
    "memory": lambda _, of: (-of.mem_mib,),
    "local disk": lambda _, of: (-of.tmp_mib,),
}
ASKED: dict[str, Callable[[Query], str]] = {
    "known price": lambda _: "anything at a known price",
    "gpus": lambda query: f"{query.gpus} {_gpu_type(query) or 'GPUs of any type'} in one node",
    "cpus": lambda query: f"{_cpus(query.need)} cpus with all else that is asked",
    "memory": lambda query: f"{query.need.mem_mib} MiB of memory with all else that is asked",
    "local disk": lambda query: f"{query.need.tmp_mib} MiB of local disk with the rest asked",
    "instance type": lambda query: (
        f"this as {_one_of(query.where.instance_types, query.where.families)}"
    ),
    "instance types of the partition": lambda query: (
        f"this among the partition's {_one_of(query.policy.instance_types, query.policy.families)}"
    ),
    "constraint": lambda query: f"this with the features {query.need.constraint}",
    "architecture": lambda query: f"this on {query.policy.arch}",
    "burstable types": lambda _: "this without being burstable (the partition leaves those out)",
    "fractions of a GPU": lambda _: "this with a whole GPU (the partition leaves fractions out)",
    "market": lambda query: f"this {' or '.join(query.markets)}",
    "region": lambda query: f"this in {_regions(query)}",
    "place": lambda query: f"this in {_place(query)} (zones go by id, such as use1-az4)",
    "price": lambda query: f"this for {_usd(query.max_price or 0)} USD an hour or less",
}


def _gpu_type(query: Query) -> str:
    gpu_type, _ = query.where.gpu or (query.need.gpu_type, 0)
    return gpu_type or ""


def _cpus(need: Need) -> str:
    return str(need.cpus) if need.cpus_exactly is None else f"exactly {need.cpus_exactly}"


def _one_of(*groups: tuple[str, ...]) -> str:
    return " or ".join(name for group in groups for name in group)


def _regions(query: Query) -> str:
    named = query.where.regions or query.policy.regions
    return _one_of(named) if named else "regions that need no opting in"


def _place(query: Query) -> str:
    return query.need.constraint or _one_of(query.where.zones)


def _usd(micro_usd: int) -> str:
    return f"{micro_usd / 1_000_000:.6f}".rstrip("0").rstrip(".")


def _described(near: Near) -> str:
    offer = near.offer
    gpus = "".join(f", {n} {name[4:]}" for name, n in offer.gres if name.startswith("gpu:"))
    return (
        f"{offer.instance_type} ({offer.cpus} cpus, {offer.mem_mib} MiB{gpus}) in {offer.region}, "
        f"{offer.market}, {_usd(offer.micro_usd_per_hour)} USD an hour, "
        f"fails {', '.join(near.fails)}"
    )


def _suggestions(query: Query) -> tuple[str, ...]:
    """Names of accelerators like the unknown one asked for, or all; () where it is known."""
    names = {gpu_key(name): name for name in query.catalog.gpu_names()}
    if not query.gpus or query.gpu_keys is None or not query.gpu_keys.isdisjoint(names):
        return ()
    close = get_close_matches(gpu_key(_gpu_type(query)), names, n=NEAREST, cutoff=0.5)
    return tuple(names[key] for key in close) or tuple(names.values())


def _unpriced(query: Query, of_shapes: list[tuple[str, ...]]) -> Iterator[str]:
    allowed = sum(1 << number for number, why in enumerate(query.regions) if not why)
    for shape, fails, mask in zip(
        query.catalog.shapes, of_shapes, query.catalog.unpriced, strict=False
    ):
        if mask & allowed and not fails:
            yield shape.name
