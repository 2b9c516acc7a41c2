"""When a step is warned before its end."""

# ruff: noqa: E501 - a row stays on one line

import time
from typing import Any

import pytest

from broker.run.agent.clock import Clock, Told
from broker.run.agent.loop import Loop


class Step:
    """A supervisor as its clock sees it."""

    cause, outcome = "", None

    def __init__(self, step: dict[str, Any], started: float) -> None:
        self.step = step
        self.started: float | None = started
        self.loop = Loop()

    def is_batch(self) -> bool:
        return False

    def out_of_time(self) -> None:
        self.cause = "time_limit"

    def signal(self, number: int, scope: str) -> None:
        self.step["signalled"] = number, scope


def told(own: bool) -> dict[str, Any]:
    return {"signal": 10, "before": 30, "batch": False, "own": own}


# fmt: off
MOMENTS: dict[str, tuple[dict[str, Any], float | None]] = {
    "the job's end":                   ({"warn": told(False), "job_ends": 2000}, 1970),
    "the job's, whatever the step's":  ({"warn": told(False), "job_ends": 2000, "time_limit": 100}, 1970),
    "a limit where the job has none":  ({"warn": told(False), "time_limit": 100}, 1070),
    "the step's own":                  ({"warn": told(True), "job_ends": 2000, "time_limit": 100}, 1070),
    "its job's where that is sooner":  ({"warn": told(True), "job_ends": 1050, "time_limit": 100}, 1020),
    "its job's where it has none":     ({"warn": told(True), "job_ends": 2000}, 1970),
    "no end":                          ({"warn": told(True)}, None),
    "no wish":                         ({"job_ends": 2000}, None),
}
# fmt: on


@pytest.mark.parametrize("what", MOMENTS)
def test_a_warning_counts_back_from_the_end_that_it_is_about(what: str) -> None:
    step, moment = MOMENTS[what]
    assert Clock(Step(step, 1000)).warning() == moment


@pytest.mark.parametrize(
    ("off", "told"), [(0, 0), (3, 0), (-3, 0), (3600, 3600), (-3600, -3600), (1e9, 1e9)]
)
def test_instants_for_the_journal_are_the_services_where_the_clock_is_far_off(
    off: float, told: float
) -> None:
    clock = Told()
    assert abs(clock.now() - time.time()) < 1, "nobody said anything yet"
    clock.hear({"do": "ping"})
    assert clock.since is None
    clock.hear({"do": "start", "now": time.time() + off})
    assert abs(clock.now() - time.time() - told) < 1


@pytest.mark.parametrize("jump", [-3600, 3600])
@pytest.mark.parametrize("whole", [True, False])
def test_a_changed_limit_counts_right_after_the_nodes_clock_jumped(jump: int, whole: bool) -> None:
    """By the clock as it went when the step began; the service's instants come as what is left."""
    step = Step(
        {"warn": told(False), "job_ends": time.time() + 100, "time_limit": 100}, time.time()
    )
    clock = Clock(step)
    clock.steady -= jump  # as if the node's clock had jumped since
    assert step.started is not None
    step.started -= jump
    order = {"serial": 1, "whole": whole, "paused": False, "job_left": 500.0, "time_limit": 500.0}
    clock.obey(order)
    due = {name: at - time.monotonic() for name, (at, _act) in step.loop.due.items()}
    if whole:
        assert (round(due["limit"]), round(due["warn"])) == (100, 470)
    else:
        assert round(due["limit"]) == 500
