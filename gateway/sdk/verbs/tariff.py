"""spz catalog rates: what is billed beside machines, by region, with days and sources."""

import time
from collections.abc import Iterator, Sequence

from broker.model.rates import UNITS, Rate, Rates
from broker.optimize.ages import old
from gateway.config.catalogs import Shelf
from gateway.query.dollars import usd
from gateway.sdk.client import Json
from gateway.sdk.show import below, table
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values

HEAD = ("RATE", "REGION", "TO", "$", "FOR A", "OF", "SOURCE")
ALL = "all others"


def rates(given: Values, counter: Counter) -> int:
    """All that is known, or what counts in these regions."""
    known, now = Shelf(counter.paths.home).get("ec2").rates, int(time.time())
    rows = [_row(rate, now) for rate in _wanted(known, given["words"])]
    counter.show({"rates": rows}, given, lambda: _text(rows))
    return 0


def _wanted(known: Rates, regions: Sequence[str]) -> Iterator[Rate]:
    if not regions:
        yield from known
    for region in regions:
        for item in UNITS:
            yield known.of(item, region)
            yield from (one for one in known if (one.item, one.region) == (item, region) and one.to)


def _row(rate: Rate, now: int) -> Json:
    told = old(rate.as_of, now, what="rate")
    return {**rate._asdict(), "unit": UNITS[rate.item], "old_price": told or None}


def _text(rows: Sequence[Json]) -> str:
    return table(HEAD, map(_cells, rows)) + below(rows)


def _cells(row: Json) -> tuple[object, ...]:
    return (
        row["item"],
        row["region"] or ALL,
        row["to"],
        usd(row["micro_usd"]).removeprefix("$"),
        row["unit"],
        row["as_of"],
        row["source"],
    )
