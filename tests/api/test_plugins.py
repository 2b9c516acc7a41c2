"""Accounting plugins listed, set and forgotten over HTTP; for administrators."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from gateway.api.app import App, build_app
from gateway.api.plugins import plugins
from gateway.store.feed import Feeders
from gateway.store.sql import open_store
from tests.api.asking import ask
from tests.contract.test_store_feed import Kept, post
from tests.unit.gateway.api.office import Office
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.store.conftest import Standing


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    store = open_store(str(tmp_path / "state.db"), clock=Standing())
    post(store, 1, 4)
    store.keep_position("old", 1)
    feeders = Feeders(store, [Kept(name="books")], structlog.get_logger())
    yield build_app(Office().desk, {}, log=Log(), routers=[plugins(feeders)])
    store.close()


ROUTE = "/v1/plugins"


def test_positions_are_listed_and_a_plugin_that_is_gone_is_forgotten(app: App) -> None:
    rows = ask(app, "GET", ROUTE).json()["plugins"]
    assert [(row["name"], row["position"], row["behind"]) for row in rows] == [
        ("books", 0, 4),
        ("old", 1, 3),
    ]
    left = ask(app, "POST", ROUTE, json={"name": "old"}).json()["plugins"]
    assert [row["name"] for row in left] == ["books"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"name": "nobody", "position": 0}, 404, "installed: books"),
        ({"name": "books", "position": 5}, 400, "0 to 4"),
        ({"name": "books"}, 400, "uninstall it first"),
        ({"name": "books", "position": -1}, 422, "greater than or equal"),
        ({"name": "books", "positon": 1}, 422, "Extra inputs"),
    ],
)
def test_what_cannot_be_set_is_refused(
    app: App, body: dict[str, Any], status: int, said: str
) -> None:
    answer = ask(app, "POST", ROUTE, json=body)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


def test_they_are_for_administrators(app: App) -> None:
    assert ask(app, "GET", ROUTE, uid=2001).status_code == 403
    assert ask(app, "POST", ROUTE, uid=2001, json={"name": "old"}).status_code == 403
