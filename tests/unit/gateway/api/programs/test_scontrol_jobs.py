"""scontrol notify, top, wait_job and updates of steps."""

import pytest

from accounting.ids import JobId
from broker.model.commands import AddStep, Notify, ToTop, UpdateStep
from broker.model.job import JobFlag, Owner
from broker.model.spec import ArraySpec, StepSpec
from gateway.api.programs import scontrol, scontrol_jobs
from gateway.api.programs.scontrol_update import update
from gateway.api.wire import Answer
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, START, Office
from tests.unit.gateway.api.programs.test_scontrol import show

RUN = scontrol.program(show, {**scontrol.VERBS, **scontrol_jobs.VERBS, "update": update})


@pytest.fixture
def office() -> Office:
    return Office()


def say(office: Office, *words: str, by: Owner = ALICE) -> Answer:
    return office.run(RUN, *words, name="scontrol", by=by)


def test_the_words_of_notify_are_one_text(office: Office) -> None:
    job = running(office)
    answer = say(office, "notify", str(job), "hello", "world")
    assert (answer.err, answer.code) == ("", 0)
    asked = office.asked[-1]
    assert isinstance(asked, Notify)
    assert asked.text == "hello world"
    assert [notice.text for notice in office.job(job).notices] == ["hello world"]


def running(office: Office) -> JobId:
    job = office.submit(hold=False)
    office.change(job, flags=JobFlag.NONE)
    return job


@pytest.mark.parametrize(
    ("words", "by", "err"),
    [
        (("notify",), ALICE, "too few arguments for keyword:notify\n"),
        (("notify", "JOB"), ALICE, "too few arguments for keyword:notify\n"),
        (("notify", "99", "x"), ALICE, "job notify failure: Invalid job id specified\n"),
        (("notify", "JOB", "x"), ALICE, "job notify failure: Job is pending execution\n"),
        (("top",), ALICE, "too few arguments for keyword:top\n"),
        (("top", "JOB"), BOB, "Invalid user id for job 7\n"),
        (("wait_job", "99"), ALICE, "scontrol: Problem running job 99\n"),
        (("wait_job", "x"), ALICE, "Invalid job_id x"),
        (("update", "StepId=7.0", "TimeLimit=5"), ALICE, "Invalid job id specified for step 7.0\n"),
        (("update", "StepId=7", "TimeLimit=5"), ALICE, "Invalid job id specified for step 7\n"),
        (("update", "StepId=7.0"), ALICE, "No changes specified\n"),
    ],
)
def test_what_cannot_be_is_told(
    office: Office, words: tuple[str, ...], by: Owner, err: str
) -> None:
    job = office.submit(begin=START + 3600, hold=False)
    answer = say(office, *(word.replace("JOB", str(job)) for word in words), by=by)
    assert (answer.err, answer.code) == (err, 1)


def test_top_puts_jobs_before_ones_own_others(office: Office) -> None:
    first, second, third = (office.submit(begin=START + 3600, hold=False) for _ in range(3))
    assert say(office, "top", f"{third},{second}").code == 0
    assert isinstance(office.asked[-1], ToTop)
    order = sorted((first, second, third), key=lambda job: -office.job(job).priority)
    assert order == [third, second, first]


def test_waiting_for_a_job_ends_when_its_nodes_are_up(office: Office) -> None:
    assert say(office, "wait_job", str(running(office))).err == (
        "scontrol: Nodes are ready for job 7\n"
    )
    waiting = say(office, "wait_job", str(office.submit(begin=START + 3600, hold=False)))
    assert waiting.err == "scontrol: Waiting for nodes to boot\n"
    assert waiting.rest is not None
    waiting.rest.close()  # type: ignore[attr-defined]


def test_a_steps_limit_is_changed_by_its_id(office: Office) -> None:
    job = running(office)
    spec = StepSpec(name="more")
    office.ask(AddStep(job=office.job(job).id, by=ALICE, step=spec, request="s")).result()
    answer = say(office, "update", f"StepId={job}.0", "TimeLimit=5", by=ROOT)
    assert (answer.err, answer.code) == ("", 0)
    asked = office.asked[-1]
    assert isinstance(asked, UpdateStep)
    assert asked.time_limit == 300


def test_tasks_of_an_array_that_differ_are_told_one_kind_a_line(office: Office) -> None:
    array = office.submit(hold=False, array=ArraySpec(tasks=(1, 2), limit=1))
    (element,) = (job for job in office.engine.snapshot.jobs.values() if job.started)
    answer = say(office, "update", f"job={array}", "Partition=debug")
    assert element.id != array
    assert (answer.err, answer.code) == (
        f"{array}_2: No error\n{array}_1: Job is no longer pending execution\n",
        1,
    )
