"""A job as its user names it: by id, or as an element of an array."""

from typing import Any, cast

import pytest

from broker.model.errors import Unknown
from gateway.sdk.client import Client
from gateway.sdk.launching import job_number


class Told:
    """A service that lists two jobs, one of them over."""

    def get(self, route: str, **_: object) -> Any:
        past = [{"id": 14, "slurm_id": "12_3"}] if route == "/v1/managed" else []
        return {"jobs": [{"id": 12, "slurm_id": "12_5"}, *past]}


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("12_5", 12), ("12_3", 14), ("dev", None), ("12_", None)]
)
def test_a_job_is_found_by_what_slurm_calls_it(text: str, number: int | None) -> None:
    assert job_number(cast("Client", Told()), text) == number


def test_an_element_that_there_is_not_is_unknown() -> None:
    with pytest.raises(Unknown, match="no job 12_9"):
        job_number(cast("Client", Told()), "12_9")
