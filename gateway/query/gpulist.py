"""The table of accelerators and what they cost: SkyPilot's columns, and the days of its prices."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from gateway.query.dollars import usd
from gateway.query.listed import Json, Listed

GUESSED = "~ estimated from the average saving known of spot"
HEAD = (
    *("GPU", "QTY", "CLOUD", "INSTANCE_TYPE", "DEVICE_MEM", "vCPUs", "HOST_MEM"),
    *("HOURLY_PRICE", "HOURLY_SPOT_PRICE", "REGION", "SPOT_REGION"),
)


def gpus(rows: Sequence[Json]) -> Listed:
    """A line for each type, or for each region."""
    return Listed([*HEAD], [[*cells] for row in rows for cells in _gpu_cells(row)])


def price_notes(rows: Sequence[Json]) -> list[str]:
    """What is said below: that some are estimates, and of what days they are."""
    prices = [price for row in rows for price in row["prices"]]
    guessed = [GUESSED] if any(price["estimate"] for price in prices) else []
    return [*guessed, *_days(prices)]


def _gpu_cells(row: Json) -> Iterator[tuple[object, ...]]:
    """A line, or one for each region."""
    first = (
        row["gpu"],
        row["count"] if row["fraction"] == 1 else f"{row['fraction']:g}",
        "AWS",
        row["instance_type"],
        f"{row['gpu_gb']}GB" if row["gpu_gb"] else None,
        row["cpus"],
        f"{row['mem_mib'] / 1024:g}GB",
    )
    full, spot = ([p for p in row["prices"] if p["market"] == m] for m in ("on-demand", "spot"))
    for one, other in zip_longest(full, spot):
        regions = (price["region"] if price else None for price in (one, other))
        yield (*first, _hourly(one), _hourly(other), *regions)


def _hourly(price: Json | None) -> str | None:
    told = price_text(price)
    return None if told is None else f"$ {told}"


def price_text(price: Json | None) -> str | None:
    if price is None:
        return None
    return ("~" if price["estimate"] else "") + usd(price["micro_usd_per_hour"]).removeprefix("$")


def _days(prices: Sequence[Json]) -> list[str]:
    """Of what days the prices are; the oldest one's age speaks for all."""
    told = {price["as_of"]: price["told"] for price in prices if price["as_of"]}
    if not told:
        return []
    first, last = min(told), max(told)
    return [
        told[first] if first == last else f"{told[first]} (the oldest; the newest is of {last})"
    ]
