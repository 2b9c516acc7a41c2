"""A changed copy of a frozen record."""

from dataclasses import fields, replace

import pytest

from broker.model.evolve import evolved
from broker.model.job import Job
from tests.unit.gateway.query.records import pending, running


@pytest.mark.parametrize("job", [pending(), running()])
def test_a_changed_copy_is_what_replace_makes(job: Job) -> None:
    assert evolved(job) == job
    assert evolved(job, ended=5, reason="x") == replace(job, ended=5, reason="x")


def test_every_field_of_a_job_is_carried_over() -> None:
    assert {field.name for field in fields(Job)} == set(Job.__slots__)
    assert not hasattr(Job, "__post_init__")


def test_a_field_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="endde"):
        evolved(pending(), endde=5)
