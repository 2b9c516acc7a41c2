"""Stores in files whose writer can be made to fail."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from broker.model.job import Job
from gateway.store.place import connect, place
from gateway.store.schema import make_ready
from gateway.store.sql import SqlStore
from tests.contract.records import START

Open = Callable[..., SqlStore]


class Standing:
    def now(self) -> int:
        return START


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def open_with(file: Path) -> Iterator[Open]:
    """Opens the file; the pragmas given are the writer's."""
    opened: list[SqlStore] = []

    def opening(*pragmas: str) -> SqlStore:
        where = place(str(file))
        engines = connect(where)
        make_ready(engines[0], where)
        engines[0].dispose()

        @event.listens_for(engines[0], "connect")
        def _set(connection: Any, _: object) -> None:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}").close()

        opened.append(SqlStore(where, engines, clock=Standing()))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


def save(store: SqlStore, *jobs: Job) -> None:
    with store.transaction(epoch=1) as tx:
        tx.save_jobs(jobs)
