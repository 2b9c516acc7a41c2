"""Figures that were refreshed, over HTTP: who may bring them, what counts from then."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Partition
from broker.optimize.bundled import bundled
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from gateway.api.app import build_app
from gateway.api.launches import Market
from gateway.api.offers import offers
from tests.api.asking import ask
from tests.unit.gateway.api.office import SITE, Office
from tests.unit.gateway.api.test_text import Log


@pytest.mark.parametrize(("uid", "status"), [(0, 200), (2001, 403)])
def test_rates_and_words_of_a_refreshed_catalogue_count_at_once(uid: int, status: int) -> None:
    office, fresh = Office(replace(SITE, offered_features=frozenset())), bundled("local")
    market = cast("Market", office.engine.market)
    routes = offers(market, lambda provider: fresh, lambda: {"2027-01-01"})
    app = build_app(office.desk, {}, log=Log(), routers=[routes])
    office.clock.at += 1
    answer = ask(app, "POST", "/v1/catalog/reload", uid=uid)
    assert answer.status_code == status, answer.text
    site = office.engine.site
    assert (site.rates is fresh.rates) is (status == 200)
    assert ("m7i.large" in (site.offered_features or ())) is (status == 200)
    if status == 200:
        assert answer.json() == {"days": ["2027-01-01"]}


POLICY = BuyPolicy(provider="local", boot_seconds=30)
BUYING = replace(
    SITE, partitions=(Partition("ec2", default=True, elastic=Elastic("ec2-", 8, buy=POLICY)),)
)
ASKED = {"request": "a" * 16, "cwd": "/", "home": "/", "logs": "/"}


def told(task: str, **asked: str) -> Any:
    """What is answered for a task's resources."""
    office, catalog = Office(BUYING), bundled("local")
    routes = offers(Quotes({"local": catalog}, Cooldown()), lambda provider: catalog, set)
    app = build_app(office.desk, {}, log=Log(), routers=[routes])
    return ask(app, "POST", "/v1/offers", json={**ASKED, "task": task, **asked})


@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ("c7i&us-west-2", lambda one: one["instance_type"].startswith("c7i.")),
        ("c7i,us-west-2", lambda one: one["region"] == "us-west-2"),
        ("spot&m7i", lambda one: one["market"] == "spot"),
        ("m7g&arm64", lambda one: one["instance_type"].startswith("m7g.")),
    ],
)
def test_offers_are_those_that_a_constraint_holds_for(
    constraint: str, holds: Callable[[Any], bool]
) -> None:
    found = told("resources: {cpus: 4+}", constraint=constraint).json()["offers"]
    assert found and all(map(holds, found))


def test_offers_are_in_the_order_that_is_preferred() -> None:
    """Machines with drivers to load boot longer than others, whatever they cost."""

    def families(wish: str) -> list[str]:
        answer = told("resources: {cpus: 4+}", prefer=wish, constraint="us-east-1&(g4dn|c7a)")
        types = [one["instance_type"] for one in answer.json()["offers"]]
        return [name.partition(".")[0] for name in types if "metal" not in name]

    assert families("time") != families("cost")
    assert families("time") == sorted(families("time"))
    assert set(families("g4dn")) == {"g4dn"}


@pytest.mark.parametrize("option", ["constraint", "prefer"])
def test_features_that_cannot_be_read_are_refused(option: str) -> None:
    assert told("resources: {cpus: 4+}", **{option: "a&&b"}).status_code == 400
