"""spz catalog refresh: figures of EC2's regions, read in parallel and kept below the home."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import UTC, datetime

from broker.model.errors import Refused, SpzError
from broker.optimize.bundled import catalog_of
from broker.optimize.catalog import Region
from broker.optimize.figures import RegionFigures, refreshed
from gateway.account import buying_regions, enabled_regions, figures_reader
from gateway.config.catalogs import Shelf
from gateway.config.load import read
from gateway.config.settings import Config
from gateway.sdk.client import Json
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values

AT_A_TIME = 8
"""Regions that are asked together."""


def refresh(given: Values, counter: Counter) -> int:
    """Reads types, offerings and prices of regions; exits 1 if one did not answer."""
    config, shelf = read(counter.paths), Shelf(counter.paths.home)
    base = shelf.document()
    known = frozenset(base["types"]["name"])
    there = known_regions(config, base, lambda: enabled_regions(config))
    regions = given["words"] or buying_regions(config, there)
    now = datetime.fromtimestamp(time.time(), UTC)
    reader = figures_reader(config, known=known, now=now.isoformat(timespec="seconds"))
    found, failed = read_all(regions, reader, counter.say)
    if not found:
        raise Refused("no region answered: the figures stay as they were", hint="`spz check`")
    document = refreshed(base, found, now.date().isoformat())
    catalog_of(document, "ec2")  # what cannot be read again is not kept
    counter.paths.home.mkdir(parents=True, exist_ok=True)
    shelf.save(document)
    told = {
        "file": str(shelf.file),
        "day": now.date().isoformat(),
        "regions": [_summary(one) for one in found],
        "failed": failed,
        "taken_up": _taken_up(counter),
    }
    counter.show(told, given, lambda: _refreshed_text(told))
    return 1 if failed else 0


def known_regions(
    config: Config, document: Json, enabled: Callable[[], frozenset[str]]
) -> list[Region]:
    """A catalogue's; where some that need opting in may be wanted, without those not enabled."""
    listed = [Region(name, bool(opt_in)) for name, opt_in, _ in document["regions"]]
    if not any(part.elastic and part.elastic.opt_in_regions for part in config.partitions):
        return listed
    there = enabled()
    return [one for one in listed if not one.opt_in or one.name in there]


def read_all(
    regions: Sequence[str], reader: Callable[[str], RegionFigures], say: Callable[[str], None]
) -> tuple[list[RegionFigures], list[Json]]:
    """Several regions at a time; a line of progress for each as it is done."""
    found: dict[str, RegionFigures] = {}
    failed: list[Json] = []
    began = time.monotonic()
    with ThreadPoolExecutor(min(AT_A_TIME, len(regions))) as pool:
        asked: dict[Future[RegionFigures], str] = {pool.submit(reader, r): r for r in regions}
        for done, future in enumerate(as_completed(asked), 1):
            region = asked[future]
            error = future.exception()
            if isinstance(error, SpzError | OSError):
                said = str(error).splitlines()[0]
                failed.append({"region": region, "error": said})
                text = f"failed: {said}"
            else:
                found[region] = future.result()
                text = _summary_text(_summary(found[region]))
            say(f"[{done}/{len(regions)}] {region}: {text} ({time.monotonic() - began:.1f} s)")
    return [found[region] for region in regions if region in found], failed


def _summary(one: RegionFigures) -> Json:
    return {
        "region": one.region,
        "zones": len(one.zones),
        "types": len(one.offered),
        "new_types": len(one.types),
        "on_demand": None if one.on_demand is None else len(one.on_demand),
        "spot": len(one.spot),
        "rates": len(one.rates),
    }


def _summary_text(told: Json) -> str:
    full = told["on_demand"]
    prices = "no answer of the price list" if full is None else f"{full} on-demand prices"
    rest = f"{told['spot']} spot prices, {told['rates']} rates beside"
    return f"{told['types']} types in {told['zones']} zones, {prices}, {rest}"


def _taken_up(counter: Counter) -> bool:
    """Whether a service that runs uses the new figures now; without one the next start does."""
    try:
        counter.service.post("/v1/catalog/reload")
    except SpzError as error:
        counter.say(f"note: the service has not taken them up ({error.message})")
        return False
    return True


def _refreshed_text(told: Json) -> str:
    failed = "".join(f"\nnot read: {one['region']}: {one['error']}" for one in told["failed"])
    return f"{len(told['regions'])} regions of {told['day']} in {told['file']}{failed}"
