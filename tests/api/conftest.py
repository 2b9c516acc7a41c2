"""The application that tests of routes speak with."""

import pytest

from tests.api.house import House


@pytest.fixture
def house() -> House:
    return House()
