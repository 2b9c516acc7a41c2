"""Effects are performed at most once at a time, and again with pauses where they failed."""

import json
import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model import effects as ef
from broker.model.errors import Refused
from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import Job, Owner
from broker.model.node import Node, NodeState
from broker.model.reports import Journal, Report, StepRefused, StepTaken, Terminated
from broker.model.spec import UNLIMITED, StepSpec, TaskSpec
from broker.ports import Done, EndSeen, Place, Reach
from broker.run.launch import StepOrder
from broker.workers import FIRST_PAUSE, LONGEST_PAUSE, Outside, Tries, Workers, perform

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


@pytest.mark.parametrize(
    ("at", "again"), [(0.05, 0.05), (5.0, 0.0)], ids=["just tried", "tried long ago"]
)
def test_what_may_have_come_true_is_tried_again_as_after_a_first_failure(
    at: float, again: float
) -> None:
    tries, last = Tries(), 0.0
    for pause in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4):
        tries.claim([TERMINATE], last)
        tries.note(TERMINATE, last, seen=False, failed=True)
        last += pause
    tries.claim([TERMINATE], last)
    tries.note(TERMINATE, last, seen=False, failed=True)
    tries.hasten([TERMINATE])
    assert tries.wait(last + at) == pytest.approx(again)


def test_what_is_under_way_when_it_comes_true_is_not_waited_for_long() -> None:
    """It may have looked just before."""
    tries = Tries()
    for last in (0.0, 0.1, 0.3, 0.7):
        tries.claim([TERMINATE], last)
        tries.note(TERMINATE, last, seen=False, failed=True)
    tries.claim([TERMINATE], 1.5)
    tries.hasten([TERMINATE, ef.Terminate(NodeName("ec2-9"), 1, None, "9/1")])
    tries.note(TERMINATE, 1.6, seen=False, failed=True)
    assert tries.wait(1.6) == pytest.approx(FIRST_PAUSE)


def test_what_is_due_again_after_it_was_not_is_done_again() -> None:
    tries = Tries()
    tries.claim([TERMINATE], 0.0)
    tries.note(TERMINATE, 0.0, seen=True, failed=False)
    assert tries.claim([], 1.0) == []
    assert tries.claim([TERMINATE], 2.0) == [TERMINATE]


@pytest.mark.parametrize("failed", [False, True])
def test_a_machine_that_is_being_bought_is_ended_once_it_is_known(failed: bool) -> None:
    """Else nothing is found to end, its record goes, and a machine comes that is nobody's."""
    tries, launch = Tries(), ef.Launch("1/1", ((NAME, 1),), ())
    tries.claim([launch], 0.0)
    assert tries.claim([TERMINATE], 1.0) == []
    assert tries.wait(1.0) is None
    other = replace(TERMINATE, group="2/1")
    assert tries.claim([other], 1.0) == [other]
    tries.note(other, 1.0, seen=True, failed=False)
    tries.claim([], 1.0)
    tries.note(launch, 2.0, seen=not failed, failed=failed)
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


class Answering:
    """A node whose agent takes everything, in whose journal stands what is given."""

    def __init__(self, journal: bytes = b"") -> None:
        self.journal = journal

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        return Done(0, b"", b"")

    def put(self, data: bytes, path: str, mode: int) -> None: ...

    def read(self, path: str, offset: int) -> bytes:
        return self.journal[offset:]

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        return b'{"ok": true}\n'


@dataclass
class Somewhere:
    """Every node is this place."""

    channel: Answering
    calls: bool
    shared: bool = True

    def place(self, node: Node) -> Place:
        options = ("--wake", "/socket") if self.calls else ()
        return Place(self.channel, "/folder", options=options, shared=self.shared)


class Nowhere:
    """No node has an address yet."""

    def place(self, node: Node) -> Place:
        raise ConnectionRefusedError(node.name)


@dataclass
class Carried:
    """Files as they would travel."""

    told: list[str]
    unreachable: bool = False
    refused: bool = False

    def bring(self, job: Job, node: Node, place: Place) -> None:
        self.told.append(f"bring {job.id}")
        if self.refused:
            raise Refused("/home/x has too much", hint="use a smaller folder")

    def pass_on(self, node: Node, place: Place) -> None:
        self.told.append("pass on")

    def fetch(self, ended: Iterable[EndSeen], node: Node, place: Place) -> None:
        seen = (f"{one.job}/{one.attempt} {'well' if one.well else 'not well'}" for one in ended)
        self.told.append(f"fetch {', '.join(seen)}")
        if self.unreachable:
            raise OSError("no route")

    def hasten(self, node: NodeName) -> None:
        self.told.append(f"hasten {node}")


class Plain:
    """Orders that ask for nothing."""

    def order(self, job: Job, step: StepId, node: Node, *, gang: Sequence[Job] = ()) -> StepOrder:
        return StepOrder(uid=1, gid=1, user="x", cwd=b"/")

    def door(self, job: Job, node: Node) -> StepOrder:
        return StepOrder(uid=1, gid=1, user="x", cwd=b"/door")


JOB = Job(
    id=JobId(7),
    spec=TaskSpec(name="job", batch=StepSpec(name="batch")),
    owner=Owner(1, 1, "x", "x"),
    account="a",
    qos="normal",
    partitions=("p",),
    submitted=0,
    time_limit=UNLIMITED,
    want=Tres(),
    attempt=1,
)
NODE = Node(name=NAME, launch=1, state=NodeState.UP, whole=Tres(), partitions=("p",))


def place_of(reach: Reach, carried: Carried | None = None) -> Outside:
    return Outside(providers={}, reach=reach, orders=Plain(), kill_wait=1, files=carried)


@pytest.mark.parametrize("calls", [True, False])
def test_a_node_that_cannot_call_is_looked_at_soon_after_something_was_begun(calls: bool) -> None:
    expected: queue.SimpleQueue[NodeName] = queue.SimpleQueue()
    outside = place_of(Somewhere(Answering(), calls))
    workers = Workers(
        outside, lambda _: None, lambda _: None, Log(), threads=1, expect=expected.put
    )
    workers.take([ef.StartStep(JOB, BATCH, NODE)])
    done: queue.SimpleQueue[bool] = queue.SimpleQueue()
    workers.call(lambda: done.put(True))
    assert done.get(timeout=10)
    workers.stop()
    assert expected.empty() is calls


def journal(*records: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps({"at": 1.0, **one}).encode() + b"\n" for one in records)


EXITED = {"kind": "exited", "key": "7/1/batch", "attempt": "7/1", "code": 0, "signal": 0}


@pytest.mark.parametrize(
    ("records", "check", "told"),
    [
        ([EXITED], False, ["fetch 7/1 well"]),
        ([{**EXITED, "code": 1}], False, ["fetch 7/1 not well"]),
        ([{**EXITED, "signal": 9}], True, ["fetch 7/1 not well"]),
        ([{"kind": "gone", "attempt": "7/1"}], False, ["fetch 7/1 not well"]),
        ([{"kind": "notice", "when": "soon"}], False, [f"hasten {NAME}"]),
        ([{"kind": "notice", "when": "soon"}], True, [f"hasten {NAME}", "pass on"]),
        ([{"kind": "started", "key": "7/1/batch", "attempt": "7/1"}], False, []),
        ([{"kind": "started", "key": "7/1/batch", "attempt": "7/1"}], True, ["pass on"]),
    ],
)
def test_results_are_fetched_before_an_end_is_told(
    records: list[Mapping[str, object]], check: bool, told: list[str]
) -> None:
    carried = Carried([])
    reach = Somewhere(Answering(journal(*records)), calls=True, shared=False)
    found = perform(ef.Follow(NODE, check=check), place_of(reach, carried))
    assert isinstance(found, Journal)
    assert carried.told == told


def test_an_end_is_not_told_while_its_results_cannot_be_fetched() -> None:
    reach = Somewhere(Answering(journal(EXITED)), calls=True, shared=False)
    with pytest.raises(OSError, match="no route"):
        perform(ef.Follow(NODE), place_of(reach, Carried([], unreachable=True)))


@pytest.mark.parametrize("there", [True, False])
def test_a_journal_that_cannot_be_read_casts_doubt_on_its_node(there: bool) -> None:
    missed: list[bool] = []
    outside = place_of(Somewhere(Answering(journal(EXITED)), calls=True, shared=False))
    if not there:
        outside = replace(outside, files=Carried([], unreachable=True))
    done: queue.SimpleQueue[NodeName] = queue.SimpleQueue()
    workers = Workers(
        outside, lambda _: None, done.put, Log(), threads=1, missed=lambda: missed.append(True)
    )
    workers.follow([ef.Follow(NODE)])
    assert done.get(timeout=10) == NAME
    workers.stop()
    assert bool(missed) is not there


def test_a_machine_that_does_not_answer_yet_casts_doubt_on_itself() -> None:
    missed: queue.SimpleQueue[bool] = queue.SimpleQueue()
    workers = Workers(
        place_of(Nowhere()),
        lambda _: None,
        lambda _: None,
        Log(),
        threads=1,
        missed=lambda: missed.put(True),
    )
    workers.take([ef.Prepare(NODE)])
    assert missed.get(timeout=10)
    workers.stop()


def test_files_are_brought_before_a_step_begins() -> None:
    carried = Carried([])
    outside = place_of(Somewhere(Answering(), calls=True, shared=False), carried)
    assert perform(ef.StartStep(JOB, BATCH, NODE), outside) == StepTaken(key="7/1/batch")
    assert carried.told == ["bring 7"]


def test_a_folder_that_cannot_be_brought_refuses_the_step_with_the_way_out() -> None:
    outside = place_of(Somewhere(Answering(), calls=True, shared=False), Carried([], refused=True))
    refused = perform(ef.StartStep(JOB, BATCH, NODE), outside)
    assert refused == StepRefused(
        key="7/1/batch", message="/home/x has too much (use a smaller folder)", node=NAME
    )
