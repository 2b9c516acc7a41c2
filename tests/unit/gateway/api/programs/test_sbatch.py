"""sbatch from words to a job on disk, or to Slurm's refusal."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model.commands import Submit
from broker.model.job import ExitCode, Job, JobState
from broker.model.spec import ArraySpec, TaskSpec
from broker.ports import HistoryQuery
from gateway.api.programs.sbatch import Sbatch, until_over
from gateway.api.wire import Call, Given, Peer
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, SITE, Office, wait

run = Sbatch()


class Past:
    """A history of some records."""

    def __init__(self, *records: Job) -> None:
        self.records = records

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        return (j for j in self.records if j.id in query.jobs)


@pytest.fixture
def office() -> Office:
    office = Office()
    office.desk.history = Past()  # type: ignore[assignment]
    return office


def test_a_wrapped_command_becomes_a_job(office: Office) -> None:
    answer = office.run(run, "-H", "--wrap", "true", environ={"HOME": "/home/alice"})
    assert (answer.out, answer.err, answer.code) == ("Submitted batch job 7\n", "", 0)
    job = office.job(7)  # type: ignore[arg-type]
    assert (job.owner, job.spec.name, job.spec.cwd) == (ALICE, "wrap", "/home/alice")


def test_an_id_is_printed_as_scripts_want_it(office: Office) -> None:
    assert office.run(run, "--parsable", "--wrap", "true").out == "7\n"
    assert office.run(run, "-Q", "--parsable", "--wrap", "true").out == ""


def test_a_script_that_was_not_handed_in_is_asked_for(office: Office) -> None:
    first = office.run(run, "job.sh", "arg")
    assert (first.ask, office.asked) == ("job.sh", [])
    script = b"#!/bin/sh\n#SBATCH -J \xff\necho $1\n"
    answer = office.run(run, "job.sh", "arg", files={"job.sh": Given(script)})
    assert answer.out == "Submitted batch job 7\n"
    (asked,) = office.asked
    assert isinstance(asked, Submit)
    assert script in asked.blobs.values()


def test_what_is_submitted_again_within_the_second_shares_its_spec(office: Office) -> None:
    def spec(*argv: str, **more: Any) -> TaskSpec:
        job = office.run(run, "--parsable", *argv, **more).out
        return office.job(JobId(int(job))).spec

    first = spec("--wrap", "true")
    assert spec("--wrap", "true") is first
    others = [spec("--wrap", "false"), spec("--wrap", "true", environ={"A": "1"})]
    office.clock.at += 1
    others += [spec("--wrap", "true"), spec("--wrap", "true", by=BOB)]
    assert all(one is not first for one in others)


def test_standard_input_is_asked_for_without_a_script(office: Office) -> None:
    assert office.run(run).ask == "-"


def test_a_retried_request_is_the_same_job(office: Office) -> None:
    call = Call(
        program="sbatch",
        argv=("--wrap", "true"),
        peer=Peer(2001, 2001),
        request="r" * 32,
        cwd="/",
    )
    assert [wait(run(office.desk, call)).out for _ in range(2)] == ["Submitted batch job 7\n"] * 2
    assert len(office.states()) == 1


@pytest.mark.parametrize(
    ("argv", "err", "code"),
    [
        (["-t", "abc"], "sbatch: error: Invalid --time specification\n", 255),
        (
            ["-p", "nosuch"],
            "sbatch: error: invalid partition specified: nosuch\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
            1,
        ),
        (
            ["-n", "1", "--test-only", "-c", "99"],
            "allocation failure: Requested node configuration is not available\n",
            1,
        ),
    ],
)
def test_refusals_are_slurms(office: Office, argv: list[str], err: str, code: int) -> None:
    answer = office.run(run, *argv, "--wrap", "true")
    assert (answer.out, answer.err, answer.code) == ("", err, code)
    assert office.states() == {}


def test_a_test_says_when_and_where_and_leaves_nothing(office: Office) -> None:
    answer = office.run(run, "--test-only", "--wrap", "true", environ={"TZ": "UTC-1"})
    assert (answer.out, answer.code) == ("", 0)
    assert answer.err == (
        "sbatch: Job 7 to start at 2023-11-14T23:13:20 using 1 processors "
        "on nodes ec2-1 in partition ec2\n"
    )
    assert office.states() == {}


def test_a_folder_that_is_gone_is_told(office: Office) -> None:
    call = Call(program="sbatch", argv=(), peer=Peer(2001, 2001), request="r" * 32, cwd="")
    answer = wait(run(office.desk, call))
    assert (answer.err, answer.code) == (
        "sbatch: error: getcwd failed: No such file or directory\n",
        1,
    )


def test_a_users_own_service_refuses_others_by_its_owners_name() -> None:
    office = Office(replace(SITE, service_uid=ALICE.uid))
    answer = office.run(run, "--wrap", "true", by=BOB)
    assert answer.code == 1
    assert "Batch job submission failed: Access/permission denied" in answer.err
    assert "alice" in answer.err
    assert office.states() == {}
    assert office.run(run, "--wrap", "true", by=ALICE).code == 0


def test_root_submits_for_others(office: Office) -> None:
    assert office.run(run, "--uid", "bob", "--wrap", "true", by=ROOT).code == 0
    assert office.job(7).owner == BOB  # type: ignore[arg-type]


def test_the_group_of_the_moment_is_the_jobs(office: Office) -> None:
    call = Call(
        program="sbatch",
        argv=("--wrap", "true"),
        peer=Peer(2001, 4321),
        request="r" * 32,
        cwd="/",
    )
    assert wait(run(office.desk, call)).code == 0
    owner = office.job(7).owner  # type: ignore[arg-type]
    assert (owner.gid, owner.group) == (4321, "4321")


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [(ExitCode(0), 0), (ExitCode(3), 3), (ExitCode(0, 9), 1), (ExitCode(255), 255)],
)
def test_wait_ends_as_the_job_does(office: Office, exit_code: ExitCode, status: int) -> None:
    job = office.submit()
    pauses = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            office.change(job, state=JobState.FAILED, exit=exit_code)

    office.desk.pause = pause
    assert wait(until_over(office.desk, job)).code == status
    assert pauses == [0.05, 0.1, 0.2]


def test_wait_for_an_array_ends_with_the_highest_status(office: Office) -> None:
    array = office.submit(array=ArraySpec(tasks=(1, 2, 3)))
    for task, code in ((1, 2), (2, 5), (3, 1)):
        place = replace(office.job(array).array, task=task, waiting=())  # type: ignore[type-var]
        record = replace(office.job(array), id=array + task, array=place)
        office.engine.world.load([replace(record, state=JobState.FAILED, exit=ExitCode(code))], [])
    office.change(array, state=JobState.CANCELLED, array=office.job(array).array)
    assert wait(until_over(office.desk, array)).code == 5


def test_a_job_that_is_long_over_is_looked_up(office: Office) -> None:
    job = office.submit()
    record = replace(office.job(job), state=JobState.FAILED, exit=ExitCode(4))
    office.engine.world.load([], [])
    office.desk.snapshot = lambda: replace(office.engine.snapshot, jobs={})
    office.desk.history = Past(record)  # type: ignore[assignment]
    assert wait(until_over(office.desk, job)).code == 4
