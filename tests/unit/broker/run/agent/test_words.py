"""Lines in a job's output are Slurm's, to the letter."""

import re

import pytest

from broker.run.agent import words

NOW = 1_800_000_000.247


def test_a_line_begins_with_the_moment_to_the_millisecond() -> None:
    assert re.fullmatch(
        rb"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.247\] error: x\n", words.error(b"x", NOW)
    )


@pytest.mark.parametrize(
    ("cause", "end"),
    [
        ("cancelled", "DUE to SIGNAL Terminated ***"),
        ("time_limit", "DUE TO TIME LIMIT ***"),
        ("requeued", "DUE TO JOB REQUEUE ***"),
        ("preempted", "DUE TO PREEMPTION ***"),
        ("taken_back", "DUE TO PREEMPTION ***"),
        ("node_fail", "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"),
    ],
)
def test_an_end_is_told_with_its_reason(cause: str, end: str) -> None:
    line = words.cancelled("JOB 1", "ec2-1", why=words.because(cause), now=NOW).decode()
    moment = words.moment(NOW)
    assert line.split("error: ")[1] == f"*** JOB 1 ON ec2-1 CANCELLED AT {moment} {end}\n"
