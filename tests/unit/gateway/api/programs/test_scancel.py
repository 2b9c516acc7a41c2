"""scancel as 25.11.7 answers: who, which, how, and with which exit status."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.commands import CancelAll, CancelStep, Signal
from broker.model.job import JobState, Share
from broker.model.spec import ArraySpec
from gateway.api.programs.scancel import run
from gateway.api.wire import LINE, Given
from tests.unit.gateway.api.office import ALICE, BOB, NODES, ROOT, SITE, Office


@pytest.fixture
def office() -> Office:
    return Office()


def test_jobs_are_cancelled_by_id_and_by_lists(office: Office) -> None:
    jobs = [office.submit() for _ in range(4)]
    answer = office.run(run, f"{jobs[0]},{jobs[1]}", str(jobs[3]))
    assert (answer.out, answer.err, answer.code) == ("", "", 0)
    assert [office.states()[job] for job in jobs] == [*["CANCELLED"] * 2, "PENDING", "CANCELLED"]


def test_the_quiet_ends(office: Office) -> None:
    done = office.submit()
    office.run(run, str(done))
    for argv in (["1"], ["-Q", "1"], [str(done)], ["--ctld", "1"], ["--cron", "1"]):
        answer = office.run(run, *argv)
        assert (answer.out, answer.err, answer.code) == ("", "", 0), argv


def test_verbose_tells_what_is_done_and_what_was_not(office: Office) -> None:
    job = office.submit()
    assert office.run(run, "-v", str(job)).err == f"scancel: Terminating job {job}\n"
    again = office.run(run, "-v", str(job))
    assert (again.err, again.code) == (
        f"scancel: Terminating job {job}\nscancel: error: Kill job error on job id {job}: "
        "Job/step already completing or completed\n",
        0,
    )


@pytest.mark.parametrize("argv", [["{}"], ["-u", "alice"]])
def test_another_users_job_stays(office: Office, argv: list[str]) -> None:
    job = office.submit()
    answer = office.run(run, *(word.format(job) for word in argv), by=BOB)
    text = f"scancel: error: Kill job error on job id {job}: Access/permission denied\n"
    assert (answer.err, answer.code) == (text, 210)
    assert office.states() == {job: "PENDING"}


def test_root_cancels_anybodys(office: Office) -> None:
    job = office.submit()
    assert office.run(run, str(job), by=ROOT).code == 0
    assert office.states() == {job: "CANCELLED"}


@pytest.mark.parametrize(
    ("word", "code", "left"),
    [
        ("{}_2", 0, (1, 3, 4)),
        ("{}_[1-3]", 0, (4,)),
        ("{}_[1,3]", 0, (2, 4)),
        ("{}_9", 0, (1, 2, 3, 4)),
        ("{}_x", 1, (1, 2, 3, 4)),
        ("{}_[1-", 1, (1, 2, 3, 4)),
    ],
)
def test_elements_of_an_array_are_cancelled_alone(
    office: Office, word: str, code: int, left: tuple[int, ...]
) -> None:
    job = office.submit(array=ArraySpec(tasks=(1, 2, 3, 4)))
    word = word.format(job)
    answer = office.run(run, word)
    assert answer.code == code
    assert answer.err == (f"scancel: error: Invalid job id {word}\n" if code else "")
    place = office.job(job).array
    assert place is not None
    assert place.waiting == left


def test_of_an_array_only_the_elements_that_a_filter_leaves_are_cancelled(office: Office) -> None:
    base = office.submit(array=ArraySpec(tasks=(1, 2)))
    place = office.job(base).array
    assert place is not None
    other = JobId(base + 1)
    share = Share(NODES[0].name, 0, Tres(cpu=1, node=1))
    for job, task in ((base, 2), (other, 1)):
        array = replace(place, task=task, waiting=())
        office.change(base, id=job, array=array, state=JobState.RUNNING, hold=None, shares=(share,))
    office.change(base, spec=office.job(base).spec.model_copy(update={"name": "last"}))
    assert office.run(run, "-n", "last").code == 0
    assert office.states() == {base: "COMPLETING", other: "RUNNING"}


@pytest.mark.parametrize("word", ["abc", "0", "-5", "4294967295", "1.x.y", "٣"])
def test_words_that_are_no_jobs_are_refused_before_anything_is_done(
    office: Office, word: str
) -> None:
    job = office.submit()
    answer = office.run(run, str(job), "--", word)
    assert (answer.err, answer.code) == (f"scancel: error: Invalid job id {word}\n", 1)
    assert office.states() == {job: "PENDING"}


@pytest.mark.parametrize(
    ("argv", "hit"),
    [
        (["-n", "aa"], {0}),
        (["--name=bb"], {1}),
        (["--jobname=bb"], {1}),
        (["-n", "zzz"], set()),
        (["-p", "debug"], {1}),
        (["-t", "PENDING", "-u", "alice"], {0, 1}),
        (["-t", "pd"], {0, 1}),
        (["-t", "RUNNING"], {2}),
        (["-t", "COMPLETED"], set()),
        (["-w", "ec2-[1-2]"], {2}),
        (["-w", "ec2-2"], set()),
        (["--me"], {0, 1, 2}),
        (["-u", "bob"], set()),
        (["--wckey=x"], set()),
        (["-q", "NORMAL", "-n", "aa"], {0}),
        (["-n", "AA"], set()),
        (["-n", "bb", "7", "8"], {1}),
    ],
)
def test_filters_choose_jobs(office: Office, argv: list[str], hit: set[int]) -> None:
    jobs = [
        office.submit(name="aa"),
        office.submit(name="bb", partitions=("debug",)),
        office.submit(name="runs", hold=False),
    ]
    before = office.states()
    for name in office.engine.world.nodes:
        assert name.startswith("ec2-")
    answer = office.run(run, *argv)
    assert (answer.err, answer.code) == ("", 0)
    changed = {n for n, job in enumerate(jobs) if office.states()[job] != before[job]}
    assert changed == hit


def test_filters_that_leave_no_job_are_told_where_more_is_to_be_said(office: Office) -> None:
    words = ("-n", "zzz", "--me", "-p", "ec2", "-t", "PD", "-A", "CHEM", "-q", "HIGH")
    assert office.run(run, *words).err == ""
    answer = office.run(run, "-v", *words)
    assert (answer.code, answer.err) == (
        0,
        "scancel: error: No active jobs match ALL job filters, including: "
        "account=chem job_name=zzz partition=ec2 qos=high state=PENDING user_name=2001 \n",
    )


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-u", "nosuch"], "scancel: error: Invalid user name: nosuch\n"),
        ([], "scancel: error: No job identification provided\n"),
        (["-s", "NOSUCH", "7"], "Unknown job signal: NOSUCH\n"),
        (["-s", "0", "7"], "Unknown job signal: 0\n"),
        (["--nosuch"], "scancel: unrecognized option '--nosuch'\nTry \"scancel --help\""),
        (["-t", "nosuch"], "Invalid job state specified: nosuch\nValid job states are PENDING, "),
        (["-M", "other", "7"], "scancel: error: 'other' can't be reached now"),
    ],
)
def test_what_cannot_be_read_is_told_with_exit_status_one(
    office: Office, argv: list[str], text: str
) -> None:
    job = office.submit()
    answer = office.run(run, *argv)
    assert answer.err.startswith(text)
    assert answer.code == 1
    assert office.states() == {job: "PENDING"}


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        ([], None),
        (["-s", "KILL"], None),
        (["-s", "9"], None),
        (["-f"], None),
        (["--hurry"], None),
        (["-s", "USR1"], (10, "steps")),
        (["-s", "TERM"], (15, "steps")),
        (["-b", "-s", "10"], (10, "batch")),
        (["-s", "usr1", "-b"], (10, "batch")),
        (["-b"], (9, "batch")),
        (["--full", "--signal=USR1"], (10, "full")),
    ],
)
def test_signals_go_where_they_are_meant_to(
    office: Office, argv: list[str], asked: tuple[int, str] | None
) -> None:
    job = office.submit()
    share = Share(NODES[0].name, 0, Tres(cpu=1, node=1))
    office.change(job, state=JobState.RUNNING, hold=None, shares=(share,))
    assert office.run(run, *argv, str(job)).code == 0
    (command,) = office.asked
    if asked is None:
        assert isinstance(command, CancelAll)
    else:
        assert isinstance(command, Signal)
        assert (command.number, command.scope) == asked


def test_a_signal_to_a_job_that_is_gone_is_an_error(office: Office) -> None:
    answer = office.run(run, "-s", "USR1", "1")
    assert (answer.err, answer.code) == (
        "scancel: error: Kill job error on job id 1: Invalid job id specified\n",
        1,
    )


LOST = "scancel: error: Kill job error on job id {}: Invalid job id specified\n"


@pytest.mark.parametrize(
    "argv", [["-s", "USR1"], ["-b"], ["-i"], ["-n", "aa"], ["-u", "alice"], ["-t", "PD"]]
)
def test_all_but_a_plain_end_tells_which_ids_are_gone_and_does_the_rest(
    office: Office, argv: list[str]
) -> None:
    gone, job = office.submit(name="aa"), office.submit(name="aa")
    office.run(run, str(gone))
    answer = office.run(run, *argv, "1", str(job), str(gone), "1_3", files={LINE: Given(b"y\n")})
    assert answer.err.startswith("".join(LOST.format(name) for name in ("1", gone, "1_3")))
    assert answer.code == (1 if "USR1" not in argv else 2024 & 0xFF)
    assert office.states()[job] == ("PENDING" if "USR1" in argv else "CANCELLED")
    quiet = office.run(run, "-Q", *argv, "1")
    assert (quiet.err, quiet.code) == ("", 1)


def test_a_step_of_a_job_that_is_gone_is_told_as_one(office: Office) -> None:
    answer = office.run(run, "1.0")
    text = "scancel: error: Kill job error on job step id 1.0: Invalid job id specified\n"
    assert (answer.err, answer.code) == (text, 1)


def test_an_id_that_a_filter_leaves_out_is_not_gone(office: Office) -> None:
    job = office.submit(name="aa")
    answer = office.run(run, "-v", "-n", "bb", str(job))
    assert answer.err.startswith("scancel: error: No active jobs match ALL job filters")
    assert answer.code == 0
    assert office.states() == {job: "PENDING"}


def test_nodes_that_cannot_be_read_are_no_jobs(office: Office) -> None:
    answer = office.run(run, "-v", "-w", "ec2-[1-")
    assert "including: nodelist=ec2-[1- \n" in answer.err
    assert answer.code == 0


@pytest.mark.parametrize("argv", [["-b"], ["-b", "-s", "KILL"]])
def test_what_waits_is_ended_though_only_its_script_was_meant(
    office: Office, argv: list[str]
) -> None:
    job = office.submit()
    answer = office.run(run, *argv, str(job))
    assert (answer.err, answer.code) == ("", 0)
    assert office.states() == {job: "CANCELLED"}


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-v"], "Terminating job 1"),
        (["-v", "-f"], "Terminating full job 1"),
        (["-Qvv"], "Terminating job 1"),
        (["-QQvv"], "Terminating job 1"),
        (["-Qv"], ""),
        (["-vQ"], ""),
        (["-QvQv"], ""),
    ],
)
def test_quiet_undoes_what_was_to_be_told(office: Office, argv: list[str], text: str) -> None:
    told = f"scancel: {text}\n" + LOST.format(1) if text else ""
    assert office.run(run, *argv, "1").err == told


def test_a_comment_of_an_operator_is_refused_to_users(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, "--admin-comment=why", str(job))
    assert (answer.err, answer.code) == ("scancel: error: Invalid user id\n", 218)
    assert office.states() == {job: "PENDING"}


def test_an_administrators_comment_stays_with_what_it_ends(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, "--admin-comment=why", str(job), by=ROOT)
    assert (answer.err, answer.code) == ("", 0)
    assert office.job(job).admin_comment == "why"
    assert office.states() == {job: "CANCELLED"}


def test_a_sibling_is_not_federated(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, "--sibling=x", str(job))
    text = f"scancel: error: Kill job error on job id {job}: Not a valid federated job\n"
    assert (answer.err, answer.code) == (text, 191)


def test_a_variable_that_is_no_switch_is_complained_of(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, str(job), environ={"SCANCEL_VERBOSE": "1"})
    assert answer.err == "scancel: error: Unrecognized SCANCEL_VERBOSE value: 1\n"
    assert office.states() == {job: "CANCELLED"}


def test_an_unknown_step_is_passed_over_and_the_job_stays(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, f"{job}.7")
    assert (answer.err, answer.code) == ("", 0)
    assert office.states() == {job: "PENDING"}


@pytest.mark.parametrize(
    ("argv", "kind", "number"),
    [((), CancelStep, None), (("-s", "USR1"), Signal, 10), (("-s", "KILL"), CancelStep, None)],
)
def test_a_step_is_ended_or_signalled_alone(
    office: Office, argv: tuple[str, ...], kind: type, number: int | None
) -> None:
    job = office.submit(hold=False)
    office.run(run, *argv, f"{job}.batch")
    (asked,) = office.asked
    assert isinstance(asked, kind)
    assert (getattr(asked, "step", None), getattr(asked, "number", None)) == ("batch", number)


def test_questions_are_asked_one_after_the_other(office: Office) -> None:
    jobs = [office.submit(), office.submit(), office.submit()]
    words = [str(job) for job in jobs]
    question = "Cancel job_id={} name=wrap partition=ec2 [y/n]? "
    first = office.run(run, "-i", *words)
    assert (first.out, first.ask) == (question.format(jobs[0]), LINE)
    second = office.run(run, "-i", *words, files={LINE: Given(b"n\n")})
    assert (second.out, second.ask) == (first.out + question.format(jobs[1]), LINE)
    assert office.asked == []
    last = office.run(run, "-i", *words, files={LINE: Given(b"n\nwhat\ny\nyes\n")})
    assert (last.ask, last.code) == (None, 0)
    assert [office.states()[job] for job in jobs] == ["PENDING", "CANCELLED", "CANCELLED"]


def test_no_answer_is_no(office: Office) -> None:
    job = office.submit()
    answer = office.run(run, "-i", str(job), files={LINE: Given(b"", 61)})
    assert (answer.ask, answer.code) == (None, 0)
    assert office.states() == {job: "PENDING"}


def test_the_service_of_one_user_names_its_owner() -> None:
    office = Office(replace(SITE, service_uid=ALICE.uid))
    job = office.submit()
    answer = office.run(run, str(job), by=BOB)
    assert answer.code == 210
    assert answer.err.startswith(
        f"scancel: error: Kill job error on job id {job}: Access/permission denied"
    )
    assert "alice" in answer.err


def test_version_and_usage(office: Office) -> None:
    assert office.run(run, "-V").out == "slurm 25.11.7\n"
    assert office.run(run, "--usage").out.startswith("Usage: scancel ")
