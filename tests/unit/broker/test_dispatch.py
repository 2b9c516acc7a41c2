"""What is asked of no job, and what is seen, is decided by tables; mypy cannot see them whole."""

from collections.abc import Mapping
from typing import Any, get_args

import pytest

from broker.decide.dispatch import OF_JOBS, OF_REPORTS, OF_THE_SITE, OfJobs, OfTheSite
from broker.model.reports import OfNodes


@pytest.mark.parametrize(
    ("table", "messages"), [(OF_THE_SITE, OfTheSite), (OF_JOBS, OfJobs), (OF_REPORTS, OfNodes)]
)
def test_every_message_has_its_row(table: Mapping[type, object], messages: Any) -> None:
    assert table.keys() == set(get_args(messages))
