"""Whether machines are gone is asked now and then, and at once where one cannot be reached."""

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from broker.model.commands import Cancel, FinishAllocation
from broker.model.job import JobState
from broker.model.offer import Machine
from gateway.api.holders import GRACE
from gateway.sweep import Sweep


class Answers:
    """A provider that holds nothing and counts who asks."""

    name = "ec2"

    def __init__(self, *, broken: bool = False) -> None:
        self.asked = 0
        self.broken = broken

    def machines(self) -> list[Machine]:
        self.asked += 1
        if self.broken:
            raise OSError("no answer")
        return []


class Said:
    def __init__(self) -> None:
        self.events: list[str] = []

    def warning(self, event: str, **_fields: object) -> None:
        self.events.append(event)


def sweep(provider: Any, log: Any, *, times: Iterator[int]) -> Sweep:
    heart: Any = SimpleNamespace(
        clock=SimpleNamespace(now=lambda: 0),
        engine=SimpleNamespace(
            snapshot=SimpleNamespace(
                nodes={}, jobs={}, site=SimpleNamespace(partitions=(), inactive_limit=0)
            )
        ),
    )
    nobody: Any = SimpleNamespace(abandoned=lambda _jobs, _now, *, patience: [])
    store: Any = SimpleNamespace(roll_up=lambda: 0, forget=lambda _before: None)
    made = Sweep(heart, {"ec2": provider}, [], store, log, nobody)
    made.clock = lambda: float(next(times))
    return made


@pytest.mark.parametrize(("step", "asked"), [(0, 1), (1, 2), (5, 10)])
def test_doubts_are_looked_into_at_once_and_no_oftener_than_every_five_seconds(
    step: int, asked: int
) -> None:
    provider = Answers()
    made = sweep(provider, Said(), times=count(100, step))
    for _ in range(10):
        made.doubt()
    assert provider.asked == asked


def test_a_doubt_that_cannot_be_looked_into_is_logged() -> None:
    log = Said()
    sweep(Answers(broken=True), log, times=count(100)).doubt()
    assert log.events == ["sweep.failed"]


def test_a_sweep_that_has_just_looked_leaves_nothing_to_doubt() -> None:
    provider = Answers()
    made = sweep(provider, Said(), times=count(100, 0))
    made()
    made.doubt()
    assert provider.asked == 1


LEFT = (
    # InactiveLimit, whether the job runs yet, how long is waited, how it ends
    (0, True, GRACE, Cancel),
    (30, True, 30, FinishAllocation),
    (30, False, 30, Cancel),
)


@pytest.mark.parametrize(("limit", "runs", "patience", "ends"), LEFT)
def test_an_allocation_that_was_left_ends_as_the_site_has_it(
    limit: int, runs: bool, patience: float, ends: type
) -> None:
    state = JobState.RUNNING if runs else JobState.PENDING
    job = SimpleNamespace(id=7, owner=None, state=state, spec=SimpleNamespace(allocator="salloc"))
    waited: list[float] = []
    asked: list[Any] = []

    def abandoned(jobs: Any, _now: float, *, patience: float) -> list[Any]:
        waited.append(patience)
        return list(jobs)

    made = sweep(Answers(), Said(), times=count(100))
    heart: Any = made.heart
    holders: Any = SimpleNamespace(abandoned=abandoned)
    heart.engine.snapshot.jobs = {7: job}
    heart.engine.snapshot.site.inactive_limit = limit
    heart.ask, made.holders = asked.append, holders
    made()
    assert waited == [patience]
    assert [type(one) for one in asked] == [ends]
