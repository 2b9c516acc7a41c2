"""sacct as Open XDMoD's slurm helper asks it, read by the rules of its shredder (11.0)."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from accounting.tres import Tres, gres_counts
from broker.model.job import ArrayPlace, Job, JobState, Run
from gateway.api.programs.sacct import Sacct
from tests.unit.gateway.query.desk import Past, ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import NOON, ended, pending, running, spec

COLUMNS = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid",
    "submit", "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus",
    "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit", "nodelist", "jobname",
)  # fmt: skip
OPTIONS = ("--allusers", "--parsable2", "--noheader", "--allocations", "--duplicates")
WINDOW = ("--starttime", "1970-01-02T00:00:00", "--endtime", "2026-12-02T00:00:00")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
LENGTH = re.compile(r"((\d+-)?\d+:)?\d+:\d+")
STATES = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "PREEMPTED", "TIMEOUT",
    "OUT_OF_MEMORY", "DEADLINE", "REVOKED",
}  # fmt: skip
PASSED_OVER = {"PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED"}
INDEXES = re.compile(r"\d+|\[\d+(-\d+)?(,\d+(-\d+)?)*\]")


def asked(*jobs: Job, past: Past | None = None, zone: str = "UTC") -> list[str]:
    words = ("sacct", *OPTIONS, "--clusters", "oracle", "--format", ",".join(COLUMNS), *WINDOW)
    answer = ask(Sacct(), desk_of(snapshot(jobs), past), words, environ={"TZ": zone})
    assert (answer.err, answer.code) == ("", 0)
    return text(answer.out).splitlines()


def shredded(lines: list[str]) -> Iterator[dict[str, str]]:
    """What the shredder takes; what it cannot read fails."""
    for line in lines:
        values = line.split("|", len(COLUMNS) - 1)
        assert len(values) == len(COLUMNS), line
        row = dict(zip(COLUMNS, values, strict=True))
        state = row["state"].upper().split(" ")[0]
        assert state in STATES | PASSED_OVER, line
        if row["end"] == "Unknown" or row["nodelist"] == "None assigned" or state in PASSED_OVER:
            continue
        yield _checked(row)


def _checked(row: dict[str, str]) -> dict[str, str]:
    for key in ("submit", "eligible", "start", "end"):
        assert MOMENT.fullmatch(row[key]), (key, row)
    assert LENGTH.fullmatch(row["elapsed"]), row
    assert row["timelimit"] in {"UNLIMITED", "Partition_Limit"} or LENGTH.fullmatch(
        row["timelimit"]
    )
    for key in ("jobidraw", "gid", "uid", "nnodes", "ncpus", "reqcpus"):
        assert row[key].isdigit(), (key, row)
    job, underscore, index = row["jobid"].partition("_")
    assert job.isdigit() and (not underscore or INDEXES.fullmatch(index)), row
    assert all("=" in one for one in row["alloctres"].split(",")), row
    return row


GPU = Tres(cpu=2, mem_mib=2048, node=1, gres=gres_counts({"gpu:a10g": 2}))
ENDED = (
    ended(1),
    ended(2, JobState.FAILED),
    ended(3, JobState.CANCELLED, ended_by=2001),
    ended(4, JobState.TIMEOUT),
    ended(5, JobState.NODE_FAIL),
    ended(6, JobState.OUT_OF_MEMORY),
    ended(7, JobState.PREEMPTED),
    ended(8, alloc=GPU),
    ended(9, spec=spec(name="a|b c|ä")),
    ended(10, array=ArrayPlace(base=10, task=3)),
    ended(12, started=NOON - 90_000, submitted=NOON - 90_100, eligible=NOON - 90_100),
)


def test_every_ended_job_is_taken_and_none_that_goes_on() -> None:
    found = list(shredded(asked(*ENDED, running(20), pending(21))))
    assert len(found) == len(ENDED)
    assert {row["cluster"] for row in found} == {"oracle"}
    by_id = {row["jobidraw"]: row for row in found}
    assert by_id["8"]["alloctres"].endswith("gres/gpu:a10g=2,gres/gpu=2,mem=2G,node=1")
    assert by_id["9"]["jobname"] == "a|b c|ä"
    assert by_id["10"]["jobid"] == "10_3"
    assert by_id["12"]["elapsed"] == "1-00:59:50"


def test_attempts_that_were_followed_by_another_are_passed_over() -> None:
    before = Run(replace(running(1, ended=NOON - 20)))
    lines = asked(past=Past([ended(1, restarts=1)], former={1: [before]}))
    assert [line.split("|")[16] for line in lines] == ["REQUEUED", "COMPLETED"]
    assert len(list(shredded(lines))) == 1


@pytest.mark.parametrize(("zone", "end"), [("UTC", "11:59:50"), ("Asia/Tokyo", "20:59:50")])
def test_times_are_of_the_zone_that_is_asked_for_and_the_helper_asks_for_utc(
    zone: str, end: str
) -> None:
    (line,) = asked(ended(1), zone=zone)
    assert line.split("|")[13].endswith(end)
