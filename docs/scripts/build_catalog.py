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

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.model.offer import Market
from broker.optimize.figures import Document, Line, Lines, Table, TypeRow, packed

OUTPUT = Path(__file__).parents[2] / "broker" / "optimize" / "data" / "ec2.json.z"
ADVISOR = ("2025-06-28", "spot-advisor", 1)
BANDS = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")
BAND_UNKNOWN = len(BANDS) + 1
CPU_MAKERS = {"Intel": "intel", "AMD": "amd", "AWS": "graviton"}
GPU_MAKERS = {"NVIDIA": "nvidia", "AMD": "amd-gpu", "Habana": "gaudi"}
Row = dict[str, str]
Pair = tuple[str, str]
Named = tuple[str, Line]
"""A price line with its type."""


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


def type_row(row: Row) -> TypeRow:
    return {
        "name": row["instance_type"],
        "cpus": int(row["vcpus"]),
        "mem_mib": int(row["memory_mib"]),
        "arch": row["arch"],
        "gpu": row["accelerator_name"],
        "gpus": float(row["accelerator_count"] or 0),
        "gpu_mem_mib": int(row["accelerator_memory_mib"] or 0),
        "tmp_mib": tmp_mib(row),
        "words": " ".join(words(row)),
    }


def band_of(tables: Tables, where: Pair) -> int:
    advice = tables.advice.get(where)
    return BANDS.index(advice["interruption_band"]) + 1 if advice else BAND_UNKNOWN


def on_demand_lines(tables: Tables) -> Iterator[Named]:
    """Prices of what is offered, or of what the listing of zones knows nothing about.

    The listing lacks some older types and the newest regions whole; there a price is the evidence.
    """
    types = {name for name, _ in tables.zones}
    regions = {region for _, region in tables.zones}
    for (name, region), row in tables.on_demand.items():
        zones = tables.zones.get((name, region), ())
        if zones or name not in types or region not in regions:
            source = (row["as_of"], row["source"], 0)
            yield name, Line(micro_usd(row["usd_per_hour"]), 0, 0, region, zones, source)


def quoted_lines(tables: Tables) -> Iterator[Named]:
    for row in tables.prices:
        if row["market"] == "spot":
            band = band_of(tables, pair(row))
            price = micro_usd(row["usd_per_hour"])
            source = (row["as_of"], row["source"], 0)
            zones = (row["az_id"],)
            yield row["instance_type"], Line(price, 0, band, row["region"], zones, source)


def estimated_lines(tables: Tables, quoted: set[tuple[str, str]]) -> Iterator[Named]:
    """On-demand less the advisor's saving, for zones that nobody quoted a spot price in."""
    for where, advice in tables.advice.items():
        name, region = where
        zones = tuple(zone for zone in tables.zones.get(where, ()) if (name, zone) not in quoted)
        if zones and where in tables.on_demand:
            full = micro_usd(tables.on_demand[where]["usd_per_hour"])
            price = full * (100 - int(advice["spot_saving_pct"])) // 100
            yield name, Line(price, 1, band_of(tables, where), region, zones, ADVISOR)


def by_type(named: Iterable[Named]) -> Lines:
    found: Lines = {}
    for name, line in named:
        found.setdefault(name, []).append(line)
    return found


def unpriced(tables: Tables) -> dict[str, set[str]]:
    """For each type the regions that offer it at a price nobody told."""
    found: dict[str, set[str]] = {}
    for name, region in tables.zones.keys() - tables.on_demand.keys():
        found.setdefault(name, set()).add(region)
    return found


def region_zones(tables: Tables, row: Row) -> list[str]:
    """Zones of a region, Local Zones that have a spot price among them."""
    quoted = {price["az_id"] for price in tables.prices if price["region"] == row["region"]}
    return sorted({*row["az_ids"].split(), *quoted} - {""})


def document(tables: Tables) -> Document:
    quotes = list(quoted_lines(tables))
    quoted = {(name, line.zones[0]) for name, line in quotes}
    table = Table(
        types={row["instance_type"]: type_row(row) for row in tables.types},
        lines={
            Market.ON_DEMAND: by_type(on_demand_lines(tables)),
            Market.SPOT: by_type([*quotes, *estimated_lines(tables, quoted)]),
        },
        regions={
            row["region"]: (row["opt_in"] == "true", region_zones(tables, row))
            for row in tables.regions
        },
        unpriced=unpriced(tables),
        bands=["", *BANDS, "unknown"],
    )
    return packed(table)


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
