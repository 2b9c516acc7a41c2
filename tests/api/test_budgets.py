"""Budgets set over HTTP: what goes together, and what is refused by name."""

from typing import Any

import httpx
import pytest

from gateway.api.app import App, build_app
from gateway.api.budgets import budgets
from tests.api.asking import ask
from tests.unit.gateway.api.office import Office
from tests.unit.gateway.api.test_text import Log


class NothingSpent:
    def spent(self, **_: Any) -> dict[tuple[str, ...], int]:
        return {}


@pytest.fixture
def app() -> App:
    office = Office()
    office.desk.history = NothingSpent()  # type: ignore[assignment]
    return build_app(office.desk, {}, log=Log(), routers=[budgets()])


def put(app: App, **said: object) -> httpx.Response:
    return ask(app, "POST", "/v1/budgets", json={"scope": "user", "name": "bob", **said})


def test_amounts_are_kept_to_the_micro_dollar(app: App) -> None:
    (row,) = put(app, usd=1234.000001).json()["budgets"]
    assert row["micro_usd"] == 1_234_000_001


@pytest.mark.parametrize("action", ["hold", "warn", None])
@pytest.mark.parametrize("running", ["now", "notice"])
def test_only_a_budget_that_stops_ends_what_runs(
    app: App, action: str | None, running: str
) -> None:
    answer = put(app, usd=5, running=running, **({"action": action} if action else {}))
    assert answer.status_code == 400
    assert answer.json()["error"] | {"slurm_errno": 0} == {
        "kind": "BadOption",
        "message": "only a budget with --action stop ends what runs",
        "hint": "--action stop",
        "slurm_errno": 0,
        "option": "running",
        "value": running,
    }


def test_one_that_is_to_stop_nothing_any_more_forgets_how(app: App) -> None:
    (row,) = put(app, usd=5, action="stop", running="now").json()["budgets"]
    assert (row["action"], row["running"]) == ("stop", "now")
    (row,) = put(app, running="notice").json()["budgets"]
    assert (row["micro_usd"], row["running"]) == (5_000_000, "notice")
    (row,) = put(app, action="hold").json()["budgets"]
    assert (row["action"], row["running"]) == ("hold", "never")
