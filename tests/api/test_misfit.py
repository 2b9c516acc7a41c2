"""Requests whose values do not fit: told as what does not fit, whatever the value is."""

import json

import httpx
import pytest

from gateway.api.app import build_app
from gateway.api.budgets import budgets
from tests.api.asking import ask
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.query.desk import desk_of, snapshot

ODD = (
    *("NaN", "Infinity", "-Infinity", "1e400", "1e308", "-5", '"x"', '"\\ud800"', "[NaN]"),
    *("1000000001", "9" * 400, "true_", '{"a": NaN}', "1e-7", "0.1234567"),
)


def post(content: str) -> httpx.Response:
    app = build_app(desk_of(snapshot([])), {}, log=Log(), routers=[budgets()])
    kind = {"Content-Type": "application/json"}
    return ask(app, "POST", "/v1/budgets", content=content, headers=kind)


@pytest.mark.parametrize("amount", ODD, ids=lambda text: text[:20])
def test_dollars_that_are_none_are_told_so(amount: str) -> None:
    answer = post(f'{{"scope": "account", "name": "a", "usd": {amount}}}')
    (found,) = answer.json()["detail"]
    assert answer.status_code == 422
    assert found["msg"]
    assert len(answer.content) < 500


@pytest.mark.parametrize("name", ["", "a b", "a\x1b[2J", "a\nb", "a" * 257])
def test_a_budget_of_a_name_that_nothing_has_is_refused(name: str) -> None:
    answer = post(json.dumps({"scope": "user", "name": name, "usd": 1}))
    (found,) = answer.json()["detail"]
    assert (answer.status_code, found["loc"][-1]) == (422, "name")
