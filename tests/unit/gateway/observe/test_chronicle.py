"""What happened to jobs and machines, as an operator reads it in the log."""

from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.ids import NodeName
from broker.model.job import ExitCode, JobState
from gateway.observe.chronicle import chronicle
from tests.unit.gateway.query.records import running

JOB: dict[str, Any] = {"job": JobId(7), "at": 1}
NODE: dict[str, Any] = {"node": NodeName("ec2-1"), "launch": 3, "at": 1}


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def debug(self, event: str, **fields: object) -> None:
        self.lines.append(("debug", event, fields))

    def info(self, event: str, **fields: object) -> None:
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: object) -> None:
        self.lines.append(("warning", event, fields))


LINES = [
    (
        ev.Ended(state=JobState.FAILED, reason="NonZeroExitCode", exit=ExitCode(7), by=5, **JOB),
        ("info", "job.ended", "job=7 state=FAILED exit=7:0 reason=NonZeroExitCode by=5"),
    ),
    (
        ev.Placed(partition="ec2", shares=running().shares, **JOB),
        ("info", "job.placed", "job=7 partition=ec2 nodes=ec2-1"),
    ),
    (nev.NodeBooted(**NODE), ("info", "node.up", "node=ec2-1 launch=3")),
    (
        nev.LaunchFailed(detail="no capacity", **NODE),
        ("warning", "node.launch_failed", "node=ec2-1 launch=3 detail=no capacity"),
    ),
    (
        nev.NodeDown(why="no answer", **NODE),
        ("warning", "node.down", "node=ec2-1 launch=3 why=no answer"),
    ),
]


@pytest.mark.parametrize(("fact", "line"), LINES)
def test_a_fact_is_one_line(fact: ev.Event, line: tuple[str, str, str]) -> None:
    log = Log()
    chronicle(log)([fact])
    ((level, event, fields),) = log.lines
    assert isinstance(fields, dict)
    assert (level, event, " ".join(f"{k}={v}" for k, v in fields.items())) == line


def test_what_hangs_on_the_users_words_is_not_in_it() -> None:
    log = Log()
    record = running()
    chronicle(log)([ev.Queued(record=record, **JOB)])
    assert log.lines == [], "a submission is told at debug only"
    chronicle(log, verbose=True)([ev.Queued(record=record, **JOB)])
    assert set(log.lines[0][2]) == {"job", "user", "account", "partition"}  # type: ignore[call-overload]


def test_bookkeeping_is_not_told() -> None:
    log = Log()
    chronicle(log)([nev.JournalRead(position=4, **NODE)])
    assert log.lines == []


def ended(job: int, by: int) -> ev.Ended:
    return ev.Ended(job=JobId(job), at=1, state=JobState.CANCELLED, reason="None", by=by)


def test_many_jobs_of_which_the_same_is_said_share_a_line() -> None:
    log = Log()
    chronicle(log)([*(ended(job, 5) for job in range(1000, 4000)), ended(7, 6)])
    told = {"state": "CANCELLED", "exit": "0:0", "reason": "None"}
    assert log.lines == [
        ("info", "job.ended", {"jobs": "1000-3999", **told, "by": 5}),
        ("info", "job.ended", {"job": 7, **told, "by": 6}),
    ]


def test_no_job_is_cut_off_a_long_list() -> None:
    log = Log()
    jobs = [job for job in range(100_000, 103_000) if job % 3]
    chronicle(log)([ended(job, 5) for job in jobs])
    lists = [str(fields["jobs"]) for _, _, fields in log.lines if isinstance(fields, dict)]
    assert max(map(len, lists)) <= 1500
    assert [job for text in lists for job in read_indexes(text)] == jobs


def read_indexes(text: str) -> list[int]:
    spans = [part.partition("-") for part in text.split(",")]
    return [n for low, _, high in spans for n in range(int(low), int(high or low) + 1)]
