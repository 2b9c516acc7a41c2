"""A purge is killed at any moment: with its archives all is there as it was, and once."""

import multiprocessing
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.change import NO_CHANGE
from accounting.ids import JobId
from broker.model import events as ev
from broker.model.ids import StepId
from broker.model.job import Step, StepState
from broker.ports import HistoryQuery
from gateway.store.sql import open_store
from tests.contract.records import START, ended

pytestmark = [pytest.mark.kill, pytest.mark.timeout(120)]
PAGES, PAGE = 5, 20
KINDS = ("job", "step", "txn")
AT_FILES = (".part", ".jsonl", ".jsonl")
"""What is seen in the folder when SIGKILL comes: soon after that, or later in its page."""


class Clock:
    def now(self) -> int:
        return START


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    file = request.param == "file"
    return str(tmp_path / "state.db") if file else request.getfixturevalue("postgres_url")


@pytest.mark.parametrize("kind", KINDS)
def test_a_purge_that_is_killed_loses_nothing(place: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    filled(place)
    before = told(place)
    ends = [killed(place, kind, folder, suffix) for suffix in AT_FILES]
    assert -signal.SIGKILL in ends
    purging(place, kind, folder)
    assert told(place) != before
    for _ in range(2):
        loaded(place, sorted(folder.glob("*.jsonl")))
        assert told(place) == before


def filled(place: str) -> None:
    step = Step(id=StepId("0"), name="x", state=StepState.COMPLETED, started=START, ended=START)
    numbers = range(1, PAGES * PAGE + 1)
    store = open_store(place, clock=Clock())
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([replace(ended(n, START + n), steps=(step,)) for n in numbers])
        tx.append([(n, ev.Released(job=JobId(n), at=START)) for n in numbers])
        made = [
            ev.BookChanged(at=START + n, actor=0, by=f"u{n}", action="x", change=NO_CHANGE)
            for n in numbers
        ]
        tx.append([(PAGES * PAGE + n, one) for n, one in enumerate(made, 1)])
    store.close()


def told(place: str) -> tuple[object, ...]:
    """All that the store says of jobs, what happened to them, and transactions."""
    store = open_store(place, clock=Clock())
    jobs = list(store.history.jobs(HistoryQuery()))
    facts = [store.history.events(JobId(n)) for n in range(1, PAGES * PAGE + 1)]
    book = list(store.book_changes())
    store.close()
    return jobs, facts, book


def loaded(place: str, archives: Sequence[Path]) -> None:
    store = open_store(place, clock=Clock())
    for archive in archives:
        store.load_archive(archive)
    store.close()


def purging(place: str, kind: str, folder: Path) -> None:
    store = open_store(place, clock=Clock())
    before = START + 2 * PAGES * PAGE
    store.purge(kind, before, archive=folder, cluster="site", page=PAGE)
    store.close()


def killed(place: str, kind: str, folder: Path, suffix: str) -> int | None:
    """How the process ended: killed once there was a file more with that end."""
    known = set(folder.iterdir())
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=purging, args=(place, kind, folder))
    process.start()
    while process.is_alive() and not any(
        path.suffix == suffix for path in set(folder.iterdir()) - known
    ):
        time.sleep(0.0002)
    process.kill()
    process.join(60)
    return process.exitcode
