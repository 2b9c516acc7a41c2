"""Scripts that are told of managed jobs' states: SkyPilot's words, in order, whatever they do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import events as ev
from broker.model.ids import Digest
from broker.model.job import ExitCode, Job, JobState, Owner
from broker.model.spec import Managed, StepSpec
from gateway.observe.callbacks import Callbacks, statuses
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench

SCRIPT, ENV = Digest("script"), Digest("env")
BLOBS = {SCRIPT: b"notify me", ENV: b"TOKEN=x\0"}


@pytest.fixture
def job() -> Job:
    bench = Bench(DECLARED)
    steps = (StepSpec(name="run", environment=ENV),)
    asked = Managed(callback=SCRIPT, number=2, root=7)
    return bench.world.jobs[bench.submit(ALICE, batch=None, steps=steps, managed=asked)]


def ended(job: Job, state: JobState) -> ev.Ended:
    return ev.Ended(job=job.id, at=2, state=state, reason="None", exit=ExitCode(0, 0))


def test_states_are_told_in_skypilots_words(job: Job) -> None:
    again = replace(job, restarts=1)
    over = [
        replace(job, state=state, shares=())
        for state in (JobState.COMPLETED, JobState.CANCELLED, JobState.NODE_FAIL)
    ]
    table: list[tuple[Any, Job, list[str]]] = [
        (ev.Queued(job=job.id, at=1, record=job), job, ["SUBMITTED"]),
        (ev.Started(job=job.id, at=1), job, ["STARTED"]),
        (ev.Started(job=job.id, at=1), again, ["RECOVERED"]),
        (ev.Requeued(job=job.id, at=1), again, ["RECOVERING"]),
        (ended(job, JobState.CANCELLED), job, ["CANCELLING"]),
        (ended(job, JobState.FAILED), job, []),
        *(
            (ev.Released(job=job.id, at=1), one, [word])
            for one, word in zip(over, ("SUCCEEDED", "CANCELLED", "FAILED"), strict=True)
        ),
        (ev.Released(job=job.id, at=1), again, []),
    ]
    for fact, now, words in table:
        assert list(statuses(fact, now)) == words, fact


class Noted:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Mapping[str, str], str]] = []
        self.warned: list[str] = []

    def __call__(
        self, owner: Owner, script: str, *, variables: Mapping[str, str], log: str
    ) -> None:
        self.calls.append((owner.user, script, variables, log))
        if len(self.calls) == 1:
            raise OSError("no shell")

    def warning(self, event: str, **fields: object) -> None:
        self.warned.append(f"{event}: {fields['error']}")


def test_each_is_called_in_order_also_after_one_that_failed(job: Job) -> None:
    noted = Noted()
    unpack = lambda data: {"TOKEN": data.decode()[6:7]}  # noqa: E731
    told = Callbacks(BLOBS.__getitem__, unpack, run=noted, log=noted)
    facts = [ev.Queued(job=job.id, at=1, record=job), ev.Started(job=job.id, at=1)]
    told.tell([*facts, ev.Started(job=JobId(99), at=1)], {job.id: job})
    told.close()
    assert [call[2]["JOB_STATUS"] for call in noted.calls] == ["SUBMITTED", "STARTED"]
    user, script, variables, log = noted.calls[0]
    assert (user, script) == ("alice", "notify me")
    assert {key: variables[key] for key in ("TOKEN", "JOB_ID", "TASK_ID")} == {
        "TOKEN": "x",
        "JOB_ID": "7",
        "TASK_ID": "2",
    }
    assert log.endswith("/sky_logs/managed_job_event/jobs-callback-7-2.log")
    assert noted.warned == ["callback.failed: no shell"]
