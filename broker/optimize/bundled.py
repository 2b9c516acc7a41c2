"""The table of EC2 offers that comes with the package; `docs/scripts/build_catalog.py` writes it.

It is for ranking, planning and trying out with no account: every figure has its day, and what
was offered at a price that nobody told is not in it.
"""

import json
import math
import pkgutil
import zlib
from collections.abc import Mapping
from typing import Any

from accounting.tres import gres_counts
from broker.model.offer import Market
from broker.model.rates import PUBLISHED, Rate
from broker.optimize.catalog import Catalog, Region, Shape, Source, by_gpu, prices
from broker.optimize.gpus import gpu_key, gres_type

FORMAT = 1
FILE = "data/ec2.json.z"


def bundled(provider: str = "local") -> Catalog:
    """The package's EC2 figures as what `provider` sells."""
    return catalog_of(packaged(), provider)


def packaged() -> dict[str, Any]:
    """The package's table, unpacked."""
    data = pkgutil.get_data(__package__, FILE)
    if data is None:
        raise FileNotFoundError(f"{FILE} is missing from {__package__}: install the package again")
    document: dict[str, Any] = json.loads(zlib.decompress(data))
    return document


def catalog_of(document: Mapping[str, Any], provider: str) -> Catalog:
    """The catalogue of an unpacked table. Raises ValueError for a table of another format."""
    if document.get("format") != FORMAT:
        raise ValueError(
            f"catalogue format {document.get('format')!r}: this version reads {FORMAT}"
        )
    shapes = _shapes(document["types"])
    return Catalog(
        provider=provider,
        shapes=shapes,
        regions=tuple(Region(name, opt, tuple(zones)) for name, opt, zones in document["regions"]),
        zone_sets=tuple(tuple(zones) for zones in document["zones"]),
        sources=tuple(Source(day, name, bool(guess)) for day, name, guess in document["sources"]),
        prices={market: prices(document[market]["count"], document[market]) for market in Market},
        by_gpu=by_gpu(shapes),
        bands=tuple(document["bands"]),
        unpriced=tuple(document["unpriced"]),
        rates=PUBLISHED.with_rows(Rate(*row) for row in document.get("rates", ())),
    )


def _shapes(columns: Mapping[str, list[Any]]) -> tuple[Shape, ...]:
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    return tuple(_shape(dict(zip(names, row, strict=True))) for row in rows)


def _shape(row: Mapping[str, Any]) -> Shape:
    family = row["name"].split(".")[0]
    kind = gres_type(row["gpu"])
    words = tuple(w for w in (family, row["name"], row["arch"], kind, *row["words"].split()) if w)
    devices = math.ceil(row["gpus"])
    return Shape(
        name=row["name"],
        family=family,
        arch=row["arch"],
        cpus=row["cpus"],
        mem_mib=row["mem_mib"],
        gpu=gpu_key(row["gpu"]),
        gpu_name=row["gpu"],
        gpus=devices,
        gpu_mem_mib=row["gpu_mem_mib"],
        tmp_mib=row["tmp_mib"],
        gres=gres_counts({f"gpu:{kind}": devices} if kind else {}),
        words=words,
        features=frozenset(words),
        fraction=row["gpus"] if 0 < row["gpus"] < 1 else 1.0,
    )
