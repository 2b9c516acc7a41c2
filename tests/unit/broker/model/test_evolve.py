"""A changed copy of a frozen record."""

from dataclasses import FrozenInstanceError, dataclass, fields, replace

import pytest

from broker.model.evolve import evolved, finish, made
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


def test_a_field_may_have_any_name() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        kind: int = 1
        new: int = 2
        old: int = 3
        make: int = 4
        twin: int = 5

    assert evolved(Odd(), kind=6, old=7) == Odd(6, 2, 7)
    assert finish(evolved(Odd()), new=8, make=9, twin=10) == Odd(1, 8, 3, 9, 10)


def test_a_type_that_stands_on_another_is_made_and_copied_as_well() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Whole:
        one: int = 1

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Part(Whole):
        two: int = 2

    part = made(Part, one=5)
    assert (part, type(part)) == (Part(one=5), Part)
    assert evolved(part, two=3) == Part(one=5, two=3)
    with pytest.raises(FrozenInstanceError):
        part.two = 4  # type: ignore[misc]


def test_a_type_that_does_more_when_it_is_made_is_refused_by_name() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        one: int = 1

        def __post_init__(self) -> None:
            assert self.one

    with pytest.raises(TypeError, match="Checked cannot be copied"):
        evolved(Checked())
