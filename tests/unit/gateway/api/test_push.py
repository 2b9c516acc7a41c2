"""Letters of nodes at the door: what they make of the engine's books, and what is said back."""

import asyncio
import json
import time
from typing import Any

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Share
from broker.model.nodeevents import JournalRead
from broker.model.reports import Booted, Journal, Report
from gateway.api.push import MOST_FETCHES, PushDoor
from gateway.translate.token import sign_node
from tests.unit.gateway.api.office import Office, wait

NAME = NodeName("ec2-1")
SEAL = b"seal"
LINE = b'{"at":1.0,"kind":"accepted","key":"7/1/batch","attempt":"7/1","seq":1}\n'


class Desk:
    """An office with a door; its engine takes what was posted when it is told to."""

    def __init__(self, *, takes: bool = True) -> None:
        self.office = Office()
        self.see(Booted(node=NAME, launch=0))
        self.pushes = self.office.desk.pushes
        self.office.desk.wake = self.take if takes else lambda node: None
        self.door = PushDoor(
            desk=self.office.desk, seal=SEAL, digest="d", archive=b"zip", commit_seconds=0.05
        )

    def see(self, report: Report) -> None:
        self.office.engine.step([report], self.office.clock.now(), full_pass=False)

    def take(self, name: NodeName) -> None:
        node = self.office.engine.snapshot.nodes[name]
        report = self.pushes.letter(node)
        assert report is not None
        self.see(report)
        if isinstance(report, Journal):
            done = JournalRead(node=name, launch=0, at=1, position=report.position)
            self.pushes.committed([done])

    def post(self, *parts: bytes, at: int | None = None, **said: Any) -> tuple[int, dict[str, Any]]:
        usual = {"journal": 1 << 20, "time": time.time(), "free": 1 << 40}
        head = {"at": at, "said": None if said.get("dead") else {**usual, **said}}
        bodies = [json.dumps(head).encode() + b"\n", *parts]
        return self.send(*bodies)

    def send(self, *bodies: bytes) -> tuple[int, dict[str, Any]]:
        messages = [
            {"type": "http.request", "body": body, "more_body": number < len(bodies)}
            for number, body in enumerate(bodies, 1)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> Any:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        token = sign_node(SEAL, NAME, 0).encode()
        headers = [(b"authorization", b"Bearer " + token)]
        scope = {"type": "http", "method": "POST", "path": "/reports", "headers": headers}
        wait(self.door(scope, receive, send))
        return sent[0]["status"], json.loads(b"".join(one["body"] for one in sent[1:]))

    @property
    def node(self) -> Any:
        return self.office.engine.snapshot.nodes[NAME]


def test_lines_are_answered_when_they_are_committed_and_never_taken_twice() -> None:
    desk = Desk()
    assert desk.post() == (200, {"position": 0})
    assert desk.post(LINE, at=0) == (200, {"position": len(LINE)})
    assert desk.node.journal == len(LINE)
    status, told = desk.post(LINE, at=0)
    assert (status, told["position"]) == (409, len(LINE))
    assert desk.post(LINE, LINE, at=len(LINE)) == (200, {"position": 3 * len(LINE)})


def test_what_is_not_committed_yet_is_asked_for_again() -> None:
    desk = Desk(takes=False)
    assert desk.post(LINE, at=0) == (202, {"position": 0})
    desk.office.desk.wake = desk.take
    assert desk.post(LINE, at=0) == (200, {"position": len(LINE)})


@pytest.mark.parametrize(
    ("said", "reason"),
    [({"free": 0}, "disk of the agent is full"), ({"time": 12.5}, "clock is wrong")],
)
def test_trouble_of_a_node_is_told_by_its_pulse(said: dict[str, Any], reason: str) -> None:
    desk = Desk()
    assert desk.post(**said)[0] == 200
    assert desk.node.reason.startswith(reason)
    assert desk.post()[0] == 200
    assert desk.node.reason == ""


@pytest.mark.parametrize("odd", ["1e999", "-1e999", "NaN", "9" * 4000, "-" + "9" * 4000, "true"])
@pytest.mark.parametrize("name", ["time", "free", "journal"])
def test_figures_that_no_agent_has_say_nothing_and_break_nothing(name: str, odd: str) -> None:
    desk = Desk()
    usual = f'"journal":1048576,"time":{time.time()},"free":{1 << 40}'
    letter = f'{{"at":null,"said":{{{usual},"{name}":{odd}}}}}\n'
    assert desk.send(letter.encode())[0] == 200
    assert desk.node.reason == ""


@pytest.mark.parametrize("at", [-1, 1 << 70, len(LINE) * 1000])
def test_a_position_far_off_is_answered_with_the_true_one(at: int) -> None:
    desk = Desk()
    desk.post(LINE, at=0)
    assert desk.post(LINE, at=at)[0] == 409
    assert desk.post(LINE, at=len(LINE)) == (200, {"position": 2 * len(LINE)})


def test_two_agents_of_one_launch_take_turns_and_none_of_their_lines_counts_twice() -> None:
    desk = Desk()
    for number in range(3):
        assert desk.post(LINE, at=number * len(LINE))[0] == 200
        assert desk.post(LINE, at=number * len(LINE))[0] == 409
    assert desk.node.journal == 3 * len(LINE)


def test_the_archive_is_given_to_so_many_at_a_time() -> None:
    desk = Desk()
    scope = {"type": "http", "method": "GET", "path": "/agent/d", "headers": []}
    statuses: list[int] = []

    async def all_at_once() -> None:
        go = asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            elif statuses.count(503) == 0:
                await go.wait()

        async def receive() -> Any:
            raise AssertionError("nothing is read of who fetches")

        guests = [
            asyncio.create_task(desk.door(scope, receive, send)) for _ in range(MOST_FETCHES + 1)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (statuses.count(200), statuses.count(503)) == (MOST_FETCHES, 1)
        go.set()
        await asyncio.gather(*guests)
        await desk.door(scope, receive, send)

    asyncio.run(all_at_once())
    assert statuses[-1] == 200


@pytest.mark.parametrize(
    ("said", "lately"), [({}, True), ({"dead": True}, False), ({"journal": -1}, False)]
)
def test_only_an_agent_that_lives_with_its_journal_need_not_be_looked_at(
    said: dict[str, Any], lately: bool
) -> None:
    desk = Desk()
    assert desk.post(**said)[0] == 200
    assert desk.pushes.lately(desk.node) is lately


@pytest.mark.parametrize("needed", [False, True])
def test_a_dead_agent_is_looked_at_at_once_and_that_once_where_a_job_needs_it(
    needed: bool,
) -> None:
    desk, woken = Desk(), list[NodeName]()
    if needed:
        job = desk.office.submit(hold=False)
        share = Share(NAME, 0, Tres(cpu=1))
        desk.office.change(job, shares=(share,))
    desk.office.desk.wake = woken.append
    for said, wakes in (({}, 0), ({"dead": 1}, 1), ({"dead": 1}, 1), ({}, 1), ({"dead": 1}, 2)):
        assert desk.post(**said)[0] == 200
        assert len(woken) == (wakes if needed else 0)
    assert desk.pushes.doubted(desk.node)
    assert not desk.pushes.doubted(desk.node)


def test_a_letter_that_is_refused_does_not_count_as_a_word() -> None:
    desk = Desk()
    assert desk.post(b"garbage\n", at=0)[0] == 400
    assert not desk.pushes.lately(desk.node)


def test_a_letter_that_is_cut_off_or_too_long_changes_nothing() -> None:
    desk = Desk()
    big = b"x" * (1 << 20)
    status, told = desk.post(*[big] * 6, at=0)
    assert (status, told["position"]) == (413, 0)
    assert desk.send()[0] == 400
    assert desk.node.journal == 0
