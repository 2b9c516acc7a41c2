"""One process that services are forked from, and one service for what does not disturb others."""

from collections.abc import Iterator

import pytest

from tests.e2e.service import Preloaded, Service, service


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    made = Preloaded()
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(preloaded: Preloaded) -> Iterator[Service]:
    with service(preloaded) as made:
        yield made
