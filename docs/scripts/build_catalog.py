"""Builds the service's table of EC2 offers: `build_catalog.py DATA_DIRECTORY [OUTPUT]`.

Reads the five CSV files of the data directory (its README.md tells their columns) and writes one
zlib-compressed JSON document of columns, which `broker.optimize.bundled` loads. Rows of a type are
neighbours, cheapest first, so that the service need not sort.
"""

import csv
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "broker" / "optimize" / "data" / "ec2.json.z"
FORMAT = 1
ADVISOR = ("2025-06-28", "spot-advisor", 1)
BANDS = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")
BAND_UNKNOWN = len(BANDS) + 1
CPU_MAKERS = {"Intel": "intel", "AMD": "amd", "AWS": "graviton"}
GPU_MAKERS = {"NVIDIA": "nvidia", "AMD": "amd-gpu", "Habana": "gaudi"}
Row = dict[str, str]
Pair = tuple[str, str]


@dataclass
class Tables:
    """The CSV files, keyed."""

    types: list[Row]
    regions: list[Row]
    prices: list[Row]
    zones: dict[Pair, tuple[str, ...]]
    """Zones that offer a type in a region."""
    advice: dict[Pair, Row]
    on_demand: dict[Pair, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.on_demand = {pair(row): row for row in self.prices if row["market"] == "on-demand"}


@dataclass
class Names:
    """Distinct values of a column, numbered in the order met."""

    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def number(self, value: tuple[object, ...]) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


def pair(row: Row) -> Pair:
    return row["instance_type"], row["region"]


def rows_of(directory: Path, name: str) -> list[Row]:
    with (directory / f"ec2_{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read(directory: Path) -> Tables:
    return Tables(
        types=sorted(rows_of(directory, "instance_types"), key=lambda row: row["instance_type"]),
        regions=sorted(rows_of(directory, "regions"), key=lambda row: row["region"]),
        prices=rows_of(directory, "prices"),
        zones={pair(row): tuple(row["az_ids"].split()) for row in rows_of(directory, "offerings")},
        advice={pair(row): row for row in rows_of(directory, "spot_advisor")},
    )


def micro_usd(text: str) -> int:
    return int((Decimal(text) * 1_000_000).quantize(Decimal(1), ROUND_HALF_UP))


def accelerator_kind(row: Row) -> str:
    if row["accelerator_kind"] != "gpu":
        return row["accelerator_kind"]
    maker = row["accelerator_manufacturer"]
    return next((word for name, word in GPU_MAKERS.items() if name in maker), "other-gpu")


def words(row: Row) -> Iterator[str]:
    """What `--constraint` can name of a type, beside its name, family, architecture and GPU."""
    yield CPU_MAKERS[row["cpu_manufacturer"]]
    if row["accelerator_kind"]:
        yield accelerator_kind(row)
    if "." in row["accelerator_count"]:
        yield "gpu-fraction"
    flags = {
        "burstable": row["burstable"] == "true",
        "metal": row["bare_metal"] == "true",
        "efa": row["efa_supported"] == "true",
        "nvme": row["local_disk_nvme"] == "true",
    }
    yield from (word for word, is_so in flags.items() if is_so)


def tmp_mib(row: Row) -> int:
    return int(float(row["local_storage_gb"] or 0) * 1_000_000_000) >> 20


def type_columns(types: list[Row]) -> dict[str, list[object]]:
    sets = [" ".join(words(row)) for row in types]
    return {
        "name": [row["instance_type"] for row in types],
        "cpus": [int(row["vcpus"]) for row in types],
        "mem_mib": [int(row["memory_mib"]) for row in types],
        "arch": [row["arch"] for row in types],
        "gpu": [row["accelerator_name"] for row in types],
        "gpus": [float(row["accelerator_count"] or 0) for row in types],
        "gpu_mem_mib": [int(row["accelerator_memory_mib"] or 0) for row in types],
        "tmp_mib": [tmp_mib(row) for row in types],
        "words": list(sets),
    }


def band_of(tables: Tables, where: Pair) -> int:
    advice = tables.advice.get(where)
    return BANDS.index(advice["interruption_band"]) + 1 if advice else BAND_UNKNOWN


@dataclass(frozen=True, order=True)
class Line:
    """One price line, ordered as the service wants the lines of a type."""

    price: int
    estimate: int
    band: int
    region: str
    zones: tuple[str, ...]
    source: tuple[str, str, int]
    name: str


def on_demand_lines(tables: Tables) -> Iterator[Line]:
    """Prices of what is offered, or of what the listing of zones knows nothing about.

    The listing lacks some older types and the newest regions whole; there a price is the evidence.
    """
    types = {name for name, _ in tables.zones}
    regions = {region for _, region in tables.zones}
    for (name, region), row in tables.on_demand.items():
        zones = tables.zones.get((name, region), ())
        if zones or name not in types or region not in regions:
            source = (row["as_of"], row["source"], 0)
            yield Line(micro_usd(row["usd_per_hour"]), 0, 0, region, zones, source, name)


def quoted_lines(tables: Tables) -> Iterator[Line]:
    for row in tables.prices:
        if row["market"] == "spot":
            band = band_of(tables, pair(row))
            price = micro_usd(row["usd_per_hour"])
            source = (row["as_of"], row["source"], 0)
            zones = (row["az_id"],)
            yield Line(price, 0, band, row["region"], zones, source, row["instance_type"])


def estimated_lines(tables: Tables, quoted: set[tuple[str, str]]) -> Iterator[Line]:
    """On-demand less the advisor's saving, for zones that nobody quoted a spot price in."""
    for where, advice in tables.advice.items():
        name, region = where
        zones = tuple(zone for zone in tables.zones.get(where, ()) if (name, zone) not in quoted)
        if zones and where in tables.on_demand:
            full = micro_usd(tables.on_demand[where]["usd_per_hour"])
            price = full * (100 - int(advice["spot_saving_pct"])) // 100
            yield Line(price, 1, band_of(tables, where), region, zones, ADVISOR, name)


def line_columns(lines: Iterable[Line], types: list[Row], names: dict[str, Names]) -> object:
    by_type: dict[str, list[Line]] = {row["instance_type"]: [] for row in types}
    for line in lines:
        by_type[line.name].append(line)
    ordered = [line for group in by_type.values() for line in sorted(group)]
    return {
        "count": [len(group) for group in by_type.values()],
        "price": [line.price for line in ordered],
        "band": [line.band for line in ordered],
        "region": [names["regions"].number((line.region,)) for line in ordered],
        "zones": [names["zones"].number(line.zones) for line in ordered],
        "source": [names["sources"].number(line.source) for line in ordered],
    }


def unpriced(tables: Tables, regions: list[str]) -> list[int]:
    """For each type a bit per region that offers it at a price nobody told."""
    masks = dict.fromkeys((row["instance_type"] for row in tables.types), 0)
    for name, region in tables.zones.keys() - tables.on_demand.keys():
        masks[name] |= 1 << regions.index(region)
    return list(masks.values())


def region_zones(tables: Tables, row: Row) -> list[str]:
    """Zones of a region, Local Zones that have a spot price among them."""
    quoted = {price["az_id"] for price in tables.prices if price["region"] == row["region"]}
    return sorted({*row["az_ids"].split(), *quoted} - {""})


def document(tables: Tables) -> dict[str, object]:
    regions = [row["region"] for row in tables.regions]
    names = {"regions": Names(), "zones": Names(), "sources": Names()}
    for region in regions:
        names["regions"].number((region,))
    quotes = list(quoted_lines(tables))
    quoted = {(line.name, line.zones[0]) for line in quotes}
    spot = [*quotes, *estimated_lines(tables, quoted)]
    return {
        "format": FORMAT,
        "types": type_columns(tables.types),
        "unpriced": unpriced(tables, regions),
        "on-demand": line_columns(on_demand_lines(tables), tables.types, names),
        "spot": line_columns(spot, tables.types, names),
        "regions": [
            [row["region"], row["opt_in"] == "true", region_zones(tables, row)]
            for row in tables.regions
        ],
        "zones": [list(zones) for zones in names["zones"].numbers],
        "sources": [list(source) for source in names["sources"].numbers],
        "bands": ["", *BANDS, "unknown"],
    }


def main(arguments: list[str]) -> int:
    if len(arguments) not in {1, 2}:
        sys.stderr.write("usage: build_catalog.py DATA_DIRECTORY [OUTPUT]\n")
        return 2
    output = Path(arguments[1]) if len(arguments) == 2 else OUTPUT
    text = json.dumps(document(read(Path(arguments[0]))), separators=(",", ":"))
    output.write_bytes(zlib.compress(text.encode(), 9))
    sys.stdout.write(f"{output}: {output.stat().st_size} bytes, {len(text)} unpacked\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
