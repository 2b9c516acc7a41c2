"""Slurm's last words about a step."""

import pytest

from broker.model.ids import StepId
from broker.model.job import ExitCode, Step
from broker.model.spec import StepSpec
from gateway.api.programs.salloc import exit_status
from gateway.api.programs.srun import place_in
from gateway.api.programs.stepping import ends_of, grouped, tasks_text

OK, FIVE, KILLED = ExitCode(), ExitCode(5), ExitCode(0, 9)


def test_equal_ends_are_told_in_one_line_codes_before_signals() -> None:
    ends = {0: KILLED, 1: FIVE, 2: OK, 3: FIVE}
    assert list(grouped(ends, memory=False)) == [
        ("Exited with exit code 5", [1, 3]),
        ("Killed", [0]),
    ]
    assert [how for how, _ in grouped({0: KILLED}, memory=True)] == ["Out Of Memory"]


@pytest.mark.parametrize(
    ("ranks", "text"), [([0], "task 0"), ([0, 1], "tasks 0-1"), ([1, 3, 4], "tasks 1,3-4")]
)
def test_tasks_are_named_in_brief(ranks: list[int], text: str) -> None:
    assert tasks_text(ranks) == text


def test_a_death_by_signal_is_shown_as_a_shell_does() -> None:
    assert [end.status for end in (OK, FIVE, KILLED)] == [0, 5, 137]


def test_tasks_end_as_their_step_where_nothing_else_is_known() -> None:
    step = Step(id=StepId("0"), name="a", spec=StepSpec(name="a", tasks=2), exit=FIVE)
    assert ends_of(step) == {0: FIVE, 1: FIVE}


@pytest.mark.parametrize(
    ("how", "code"),
    [("exit 3", 3), ("signal 9", 0), ("signal 2", 0), ("signal 11", 1), ("missing", 1)],
)
def test_sallocs_status_is_its_commands_but_for_what_a_user_did(how: str, code: int) -> None:
    assert exit_status(how) == code


def test_a_place_names_the_step_and_how_far_it_was_read() -> None:
    assert place_in("12.3@456") == (StepId("3"), (456,))
    assert place_in("12.3@456,0,7") == (StepId("3"), (456, 0, 7))
    assert place_in("12") == (None, ())
    assert place_in("") == (None, ())
