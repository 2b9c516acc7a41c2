"""Letters of nodes at the door: what they make of the engine's books, and what is said back."""

import json
import time
from typing import Any

import pytest

from broker.model.ids import NodeName
from broker.model.nodeevents import JournalRead
from broker.model.reports import Booted, Journal, Report
from gateway.api.push import PushDoor
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


@pytest.mark.parametrize(
    ("said", "lately"), [({}, True), ({"dead": True}, False), ({"journal": -1}, False)]
)
def test_only_an_agent_that_lives_with_its_journal_need_not_be_looked_at(
    said: dict[str, Any], lately: bool
) -> None:
    desk = Desk()
    assert desk.post(**said)[0] == 200
    assert desk.pushes.lately(desk.node) is lately


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
