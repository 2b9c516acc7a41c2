"""Effects are performed at most once at a time, and again with pauses where they failed."""

import queue

import pytest

from broker.model import effects as ef
from broker.model.commands import Report, Terminated
from broker.model.ids import NodeName
from broker.workers import FIRST_PAUSE, LONGEST_PAUSE, Outside, Tries, Workers

NAME = NodeName("ec2-1")
TERMINATE = ef.Terminate(NAME, 1, None, "1/1")


def test_what_is_under_way_is_not_begun_again() -> None:
    tries = Tries()
    assert tries.claim([TERMINATE], 0.0) == [TERMINATE]
    assert tries.claim([TERMINATE], 1.0) == []
    assert tries.wait(1.0) is None


@pytest.mark.parametrize(
    ("seen", "failed", "again"), [(True, False, False), (False, False, True), (False, True, True)]
)
def test_what_came_to_nothing_is_tried_again_after_a_pause(
    seen: bool, failed: bool, again: bool
) -> None:
    tries = Tries()
    tries.claim([TERMINATE], 0.0)
    tries.note(TERMINATE, 0.0, seen=seen, failed=failed)
    assert tries.wait(0.0) == (FIRST_PAUSE if again else None)
    assert tries.claim([TERMINATE], FIRST_PAUSE / 2) == []
    assert bool(tries.claim([TERMINATE], FIRST_PAUSE)) is again


def test_pauses_double_up_to_the_longest() -> None:
    tries, now, pauses = Tries(), 0.0, []
    for _ in range(10):
        tries.claim([TERMINATE], now)
        tries.note(TERMINATE, now, seen=False, failed=True)
        pauses.append(tries.wait(now) or 0.0)
        now += pauses[-1]
    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE)


def test_what_is_due_again_after_it_was_not_is_done_again() -> None:
    tries = Tries()
    tries.claim([TERMINATE], 0.0)
    tries.note(TERMINATE, 0.0, seen=True, failed=False)
    assert tries.claim([], 1.0) == []
    assert tries.claim([TERMINATE], 2.0) == [TERMINATE]


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def warning(self, event: str, **_fields: object) -> None:
        self.events.append(event)


class NoProvider(dict):  # type: ignore[type-arg]
    """Breaks as no provider should."""

    def values(self) -> object:  # type: ignore[override]
        raise RuntimeError("broken")


@pytest.mark.parametrize("broken", [False, True])
def test_workers_report_what_they_saw_and_survive_what_they_met(broken: bool) -> None:
    reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
    log = Log()
    outside = Outside(
        providers=NoProvider() if broken else {},
        reach=None,  # type: ignore[arg-type]
        orders=None,  # type: ignore[arg-type]
        kill_wait=30,
    )
    workers = Workers(outside, reports.put, lambda _name: None, log, threads=1)
    workers.take([TERMINATE])
    done: queue.SimpleQueue[bool] = queue.SimpleQueue()
    workers.call(lambda: done.put(True))
    assert done.get(timeout=10)
    workers.stop()
    assert log.events == (["effect.failed"] if broken else [])
    if not broken:
        assert reports.get(timeout=10) == Terminated(node=NAME, launch=1, machine=None)
    assert reports.empty()
