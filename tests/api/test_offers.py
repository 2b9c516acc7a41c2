"""Figures that were refreshed, over HTTP: who may bring them, what counts from then."""

from dataclasses import replace
from typing import cast

import pytest

from broker.optimize.bundled import bundled
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
