"""Which mails follow from what, and Slurm's subjects of them."""

# ruff: noqa: E501 - a row stays on one line

import pytest

from accounting.ids import JobId
from broker.decide.mail import mails
from broker.model import commands as cmd
from broker.model.facts import JobFact
from broker.model.inbox import Message
from broker.model.spec import ArraySpec
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench


class Told(Bench):
    """Keeps the subjects of all mails; instants are seconds after each other."""

    def __init__(self) -> None:
        super().__init__(DECLARED)
        self.subjects: list[str] = []

    def step(self, *messages: Message, full: bool = True, seconds: int = 0) -> list[object]:
        replies = super().step(*messages, full=full, seconds=seconds)
        for _, fact in self.world.facts:
            job = self.world.jobs.get(fact.job) if isinstance(fact, JobFact) else None
            if job is not None:
                alike = self.world.array_jobs(job.array.base) if job.array else []
                self.subjects += [mail.subject for mail in mails(fact, job, alike)]
        return replies

    def begin(self, job: JobId) -> None:
        self.journal("n1", {"kind": "started", "key": f"{self.world.jobs[job].key}/batch"})

    def end(self, job: JobId, **record: object) -> None:
        key = f"{self.world.jobs[job].key}/batch"
        whole = {"kind": "exited", "key": key, "code": 0, "signal": 0, "cause": "exit", **record}
        self.journal("n1", whole)


@pytest.fixture
def bench() -> Told:
    return Told()


ENDS = [
    (("BEGIN",), {}, ["Began, Queued time 00:00:00"]),
    (("END",), {}, ["Ended, Run time 00:00:05, COMPLETED, ExitCode 0"]),
    (("FAIL",), {}, []),
    (("FAIL",), {"code": 3}, ["Failed, Run time 00:00:05, FAILED, ExitCode 3"]),
    (("END",), {"code": 3}, ["Ended, Run time 00:00:05, FAILED, ExitCode 3"]),
    (("END", "FAIL"), {"code": 3}, ["Failed, Run time 00:00:05, FAILED, ExitCode 3"]),
    (
        ("TIME_LIMIT", "FAIL"),
        {"signal": 15, "cause": "time_limit"},
        [
            "Reached time limit, Run time 00:00:05",
            "Failed, Run time 00:00:05, TIMEOUT, ExitCode 0",
        ],
    ),
    (("NONE",), {}, []),
    ((), {}, []),
]


@pytest.mark.parametrize(("asked", "record", "told"), ENDS)
def test_a_job_tells_of_what_was_asked_for(
    bench: Told, asked: tuple[str, ...], record: dict[str, object], told: list[str]
) -> None:
    job = bench.submit(mail_types=asked)
    bench.begin(job)
    bench.step(seconds=5)
    bench.end(job, **record)
    assert bench.subjects == [f"Slurm Job_id={job} Name=job {one}" for one in told]


def test_a_requeue_is_told(bench: Told) -> None:
    job = bench.submit(mail_types=("REQUEUE",))
    bench.begin(job)
    bench.step(seconds=5)
    bench.step(cmd.Requeue(target=cmd.Target(job), by=ALICE))
    assert bench.subjects == [f"Slurm Job_id={job} Name=job Requeued, Run time 00:00:05"]


def test_each_part_of_the_limit_is_told_once(bench: Told) -> None:
    job = bench.submit(mail_types=("TIME_LIMIT_50", "TIME_LIMIT_90"), time_limit=100)
    bench.begin(job)
    for _ in range(12):
        bench.step(seconds=8)
    assert bench.subjects == [
        f"Slurm Job_id={job} Name=job Reached 50% of time limit, Run time 00:00:56",
        f"Slurm Job_id={job} Name=job Reached 90% of time limit, Run time 00:01:36",
    ]


@pytest.mark.parametrize(
    ("each", "told"),
    [(False, ["Summary Job_id=1_*"]), (True, ["Task Job_id=1_0", "Task Job_id=1_1"])],
)
def test_an_array_is_told_of_as_a_whole_unless_tasks_were_asked_for(
    bench: Told, each: bool, told: list[str]
) -> None:
    asked = ("END", "ARRAY_TASKS") if each else ("END",)
    base = bench.submit(array=ArraySpec(tasks=(0, 1)), mail_types=asked)
    for job in bench.world.array_jobs(base):
        bench.begin(job.id)
    for job in bench.world.array_jobs(base):
        bench.end(job.id)
    assert len(bench.subjects) == len(told)
    for start in told:
        assert any(one.startswith(f"Slurm Array {start} ") for one in bench.subjects)


def test_an_array_has_begun_with_its_first_task_though_others_have_their_nodes(
    bench: Told,
) -> None:
    base = bench.submit(array=ArraySpec(tasks=(0, 1)), mail_types=("BEGIN",))
    for job in bench.world.array_jobs(base):
        bench.begin(job.id)
    (subject,) = bench.subjects
    assert subject.startswith(f"Slurm Array Summary Job_id={base}_* ")
    assert " Began" in subject


# fmt: off
SUMMARIES = [
    # exits of the tasks in turn, what is asked for, how the mail ends
    (({"code": 0}, {"code": 0}), ("END",), "Ended, Run time 00:00:00, COMPLETED, ExitCode [0-0]"),
    (({"code": 3}, {"code": 0}), ("END",), "Ended, Run time 00:00:00, Mixed, ExitCode [0-3]"),
    (({"code": 3}, {"code": 0}), ("FAIL",), "Failed, Run time 00:00:00, Mixed, ExitCode [0-3]"),
    (({"code": 3}, {"code": 5}), ("END", "FAIL"), "Failed, Run time 00:00:00, FAILED, ExitCode [3-5]"),
    (({"code": 0, "signal": 9}, {"code": 0}), ("END",), "Ended, Run time 00:00:00, Mixed, MaxSignal [9]"),
    (({"code": 0, "signal": 9}, {"code": 2}), ("END",), "Ended, Run time 00:00:00, Mixed, MaxExitCode [2]"),
]
# fmt: on


@pytest.mark.parametrize(("exits", "asked", "told"), SUMMARIES)
def test_the_mail_about_an_array_sums_up_how_its_tasks_ended(
    bench: Told, exits: tuple[dict[str, object], ...], asked: tuple[str, ...], told: str
) -> None:
    base = bench.submit(array=ArraySpec(tasks=(0, 1)), mail_types=asked)
    for job in bench.world.array_jobs(base):
        bench.begin(job.id)
    tasks = sorted(bench.world.array_jobs(base), key=lambda job: job.array.task)  # type: ignore
    for job, record in zip(tasks, exits, strict=True):
        bench.end(job.id, **record)
    (subject,) = bench.subjects
    assert subject.endswith(f" {told}")
