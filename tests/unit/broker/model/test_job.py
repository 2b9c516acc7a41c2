"""What a job's record says of its time."""

from dataclasses import replace

import pytest

from broker.model.job import JobFlag
from tests.unit.gateway.query.records import pending, running

BEGAN = 1000
RUNS = replace(running(), started=BEGAN, suspended_at=None, suspended_for=0)


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ({}, 500),
        ({"started": None}, 0),
        ({"flags": frozenset({JobFlag.CONFIGURING})}, 0),
        ({"suspended_for": 200}, 300),
        ({"suspended_at": BEGAN + 100}, 100),
        ({"suspended_at": BEGAN + 300, "suspended_for": 200}, 100),
        ({"started": BEGAN + 600}, 0),
    ],
)
def test_its_limit_counts_the_time_in_which_it_could_run(
    change: dict[str, object], seconds: int
) -> None:
    assert replace(RUNS, **change).ran(BEGAN + 500) == seconds  # type: ignore[arg-type]


def test_what_waits_has_not_run() -> None:
    assert pending().ran(BEGAN) == 0
