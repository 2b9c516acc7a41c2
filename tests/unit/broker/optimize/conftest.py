"""The bundled table, whole and cut down to what a test can search by hand."""

import json
import pkgutil
import zlib
from typing import Any

import pytest

from broker.optimize.bundled import bundled, catalog_of
from broker.optimize.catalog import Catalog

FAMILIES = (
    "c6a",
    "c7g",
    "t3",
    "m7i",
    "m5d",
    "g4dn",
    "g5",
    "g5g",
    "g6f",
    "p5",
    "p4d",
    "p4de",
    "p5e",
)
SIZES = ("xlarge", "4xlarge", "24xlarge", "48xlarge", "metal-24xl")
COLUMNS = ("price", "band", "region", "zones", "source")


def unpacked() -> dict[str, Any]:
    data = pkgutil.get_data("broker.optimize", "data/ec2.json.z")
    assert data is not None
    document: dict[str, Any] = json.loads(zlib.decompress(data))
    return document


def cut(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the types of FAMILIES and SIZES alone."""
    names = [name.split(".") for name in document["types"]["name"]]
    keep = [family in FAMILIES and size in SIZES for family, size in names]
    kept = {key: _kept(column, keep) for key, column in document["types"].items()}
    markets = {market: _kept_lines(document[market], keep) for market in ("on-demand", "spot")}
    return {**document, **markets, "types": kept, "unpriced": _kept(document["unpriced"], keep)}


def _kept(column: list[Any], keep: list[bool]) -> list[Any]:
    return [value for value, is_kept in zip(column, keep, strict=True) if is_kept]


def _kept_lines(lines: dict[str, list[int]], keep: list[bool]) -> dict[str, list[int]]:
    rows = [is_kept for is_kept, n in zip(keep, lines["count"], strict=True) for _ in range(n)]
    columns = {name: _kept(lines[name], rows) for name in COLUMNS}
    return {"count": _kept(lines["count"], keep), **columns}


@pytest.fixture(scope="session")
def whole() -> Catalog:
    return bundled()


@pytest.fixture(scope="session")
def small() -> Catalog:
    return catalog_of(cut(unpacked()), "local")
