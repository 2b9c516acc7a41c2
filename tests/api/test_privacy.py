"""PrivateData over HTTP: jobs, costs, budgets and figures are those that the caller may see."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounting.assoc import Account
from accounting.budget import Budget, Scope
from accounting.change import Change, changed
from accounting.ids import AccountName, UserName
from broker.model.job import Owner
from broker.model.site import Site, with_book
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from gateway.api.app import App, build_app
from gateway.api.budgets import budgets
from gateway.api.exports import exports
from gateway.api.jobs import router
from gateway.api.keeper import Keeper
from gateway.api.metrics import metrics
from gateway.api.money import money
from gateway.store.sql import open_store
from tests.api.asking import ask
from tests.api.test_cost import ENTRIES, MIDNIGHT
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, SITE, Office
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.store.conftest import Standing

BUDGETS = tuple(
    Budget(scope=scope, name=name, micro_usd=10**9)
    for scope, name in ((Scope.USER, "alice"), (Scope.ACCOUNT, "bio"), (Scope.QOS, "normal"))
)
BIO = Account(name=AccountName("bio"), coordinators=(UserName("bob"),))


def site(*private: str) -> Site:
    book = changed(SITE.book, Change(accounts=(BIO,), budgets=BUDGETS))
    return replace(with_book(SITE, book), private=frozenset(private))


class House:
    """Routes over a store with costs, and two jobs."""

    def __init__(self, path: Path, *private: str) -> None:
        self.store = open_store(str(path), clock=Standing())
        with self.store.transaction(epoch=1) as tx:
            tx.post(ENTRIES)
        office = Office(site(*private))
        self.jobs = {owner.user: office.submit(owner) for owner in (ALICE, BOB)}
        office.desk.history = self.store.history
        routes = router(
            market=Quotes({}, Cooldown()),
            providers={},
            backup=lambda _: None,
            keeper=Keeper(office.desk, Log()),
        )
        parts = [routes, money(), exports(), budgets(), metrics()]
        self.app: App = build_app(office.desk, {}, log=Log(), routers=parts)

    def get(self, route: str, who: Owner, **how: Any) -> Any:
        answer = ask(self.app, "GET", route, uid=who.uid, params=how)
        return answer.json() if answer.status_code == 200 else answer.status_code


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "state.db", "jobs", "usage")
    yield made
    made.store.close()


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "state.db")
    yield made
    made.store.close()


EVERYBODY = (ALICE, BOB, ROOT)


def test_jobs_of_others_are_not_there(closed: House, open_: House) -> None:
    seen = [{one["user"] for one in closed.get("/v1/jobs", by)["jobs"]} for by in EVERYBODY]
    assert seen == [{"alice"}, {"bob"}, {"alice", "bob"}]
    number = closed.jobs["alice"]
    for part in ("", "/why", "/events"):
        assert closed.get(f"/v1/jobs/{number}{part}", BOB) == 404
        assert open_.get(f"/v1/jobs/{number}{part}", BOB)["job" if part else "id"] == number


WINDOW = {"since": MIDNIGHT - 48 * 3600, "until": MIDNIGHT + 72 * 3600}
SPENT = (
    # by, who, micro-dollars
    ("account", ALICE, {"chem": 25, "bio": 4}),
    ("account", BOB, {"bio": 4, "chem": 2}),
    ("user", BOB, {"alice": 4, "bob": 2}),
    ("region", BOB, {"us-east-1": 4, "eu-west-1": 2}),
    ("account", ROOT, {"chem": 27, "bio": 4}),
)


@pytest.mark.parametrize(("by", "who", "spent"), SPENT)
def test_costs_are_ones_own_and_those_of_accounts_that_one_coordinates(
    closed: House, by: str, who: Owner, spent: dict[str, int]
) -> None:
    told = closed.get("/v1/cost", who, by=by, **WINDOW)
    assert {name: amount // 10**6 for name, amount in told["rows"]} == spent
    others = closed.get("/v1/cost", who, by=by, user="alice", account="nobodys", **WINDOW)
    hidden = {**told, "rows": [], "micro_usd": 0}
    assert others == (400 if who is ROOT else hidden), "who sees all hears that there is none"


def test_a_filter_of_the_ledger_tells_of_no_user_where_use_is_private(
    closed: House, open_: House
) -> None:
    def told(house: House, user: str) -> tuple[int, str]:
        answer = ask(house.app, "GET", "/v1/ledger", uid=BOB.uid, params={"user": user, **WINDOW})
        return answer.status_code, answer.text

    assert told(closed, "alice") == told(closed, "nobody") == (200, "")
    assert told(open_, "nobody")[0] == 400


@pytest.mark.parametrize(
    ("who", "names"), [(ALICE, {"alice"}), (BOB, {"bio"}), (ROOT, {"alice", "bio", "normal"})]
)
def test_budgets_are_those_of_what_one_may_know(
    closed: House, open_: House, who: Owner, names: set[str]
) -> None:
    assert {one["name"] for one in closed.get("/v1/budgets", who)["budgets"]} == names
    assert len(open_.get("/v1/budgets", who)["budgets"]) == len(BUDGETS)


def test_figures_tell_of_accounts_to_those_who_see_all_use(closed: House, open_: House) -> None:
    def told(house: House, by: Owner) -> bool:
        return (
            "# HELP skypurza_charged_usd_total"
            in ask(house.app, "GET", "/metrics", uid=by.uid).text
        )

    assert [told(closed, by) for by in EVERYBODY] == [False, False, True]
    assert [told(open_, by) for by in EVERYBODY] == [True, True, True]
