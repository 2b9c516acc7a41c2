"""Stores that tests share: one of each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store.sql import SqlStore, open_store
from tests.unit.gateway.store.conftest import Standing


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    file = request.param == "file"
    place = str(tmp_path / "state.db") if file else request.getfixturevalue("postgres_url")
    made = open_store(place, clock=Standing())
    yield made
    made.close()
