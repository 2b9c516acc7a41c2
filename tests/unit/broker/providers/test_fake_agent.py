"""The agent in memory writes what the real one would, at the moments when it would."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.offer import Market, Offer
from broker.providers.fake import Delays, FakeCloud
from broker.providers.fake_agent import FakeAgent, Fate
from broker.run import launch
from broker.run.launch import Phase, StepOrder
from broker.run.records import records

STEP = StepOrder(uid=1, gid=1, user="u", cwd=b"/", phases=(Phase("run", (b"x",)),))
KEY = "1/1/batch"


class Clock:
    time = 1000

    def now(self) -> int:
        return self.time


def fates(key: str, _step: Mapping[str, Any]) -> Fate:
    return {"1": Fate(50, 3), "2": Fate(50, stubborn=True)}.get(key[0], Fate(5))


def order(time_limit: int | None = None, hold: bool = False) -> StepOrder:
    return StepOrder(
        uid=1, gid=1, user="u", cwd=b"/", phases=STEP.phases, time_limit=time_limit, hold=hold
    )


def told(agent: FakeAgent) -> list[tuple[object, ...]]:
    names = ("kind", "at", "code", "signal", "cause")
    found = records(bytes(agent.journal))[0]
    return [tuple(record[name] for name in names if name in record) for record in found]


def test_a_step_ends_when_its_fate_says() -> None:
    agent = FakeAgent(fates)
    assert launch.reply(agent.ask(launch.start(KEY, STEP), 0)) == {"ok": True, "already": False}
    assert launch.reply(agent.ask(launch.start(KEY, STEP), 9))["already"] is True
    assert agent.next_event() == 50
    agent.advance(49)
    assert agent.live == [KEY]
    agent.advance(70)
    assert told(agent) == [("accepted", 0.0), ("started", 0.0), ("exited", 50.0, 3, 0, "exit")]


def test_a_time_limit_ends_it_with_term_or_kill() -> None:
    agent = FakeAgent(fates)
    agent.ask(launch.start("1/1/batch", order(time_limit=10)), 0)
    agent.ask(launch.start("2/1/batch", order(time_limit=10)), 0)
    agent.advance(100)
    assert told(agent)[4:] == [
        ("exited", 10.0, 0, 15, "time_limit"),
        ("exited", 40.0, 0, 9, "time_limit"),
    ]


def test_a_kill_ends_every_step_of_its_attempt_and_is_confirmed() -> None:
    agent = FakeAgent(fates)
    agent.ask(launch.start("2/1/batch", STEP), 0)
    agent.ask(launch.start("2/1/0", STEP), 0)
    agent.ask(launch.start("3/1/batch", order(hold=True)), 0)
    agent.ask(launch.kill("2/1", grace=30, cause="cancelled"), 5)
    agent.ask(launch.kill("2/1", grace=7, cause="cancelled"), 6)
    agent.ask(launch.kill("3/1", grace=30, cause="requeued"), 8)
    agent.advance(100)
    assert told(agent)[6:] == [
        ("exited", 8.0, 0, 15, "requeued"),
        ("gone", 8.0, "requeued"),
        ("exited", 13.0, 0, 9, "cancelled"),
        ("exited", 13.0, 0, 9, "cancelled"),
        ("gone", 13.0, "cancelled"),
    ]


def test_a_late_start_is_refused() -> None:
    agent = FakeAgent(fates)
    agent.ask(launch.kill("1/1", grace=30, cause="cancelled"), 0)
    reply = launch.reply(agent.ask(launch.start(KEY, STEP), 1))
    assert (reply["ok"], reply["refused"]) == (False, True)
    assert told(agent) == [("gone", 0.0, "cancelled"), ("refused", 1.0, "killed")]


OFFER = Offer("fake", "r", ("z",), "t", Market.SPOT, 1, cpus=1, mem_mib=1)


def node() -> Node:
    return Node(NodeName("n"), 1, NodeState.BOOTING, Tres(), ("p",))


def test_a_clouds_channel_leads_to_its_agents_while_they_are_up() -> None:
    clock = Clock()
    cloud = FakeCloud(clock, [OFFER], fates=fates, delays=Delays(boot=10))
    cloud.launch(OFFER, [node().identity], token="t")
    place = cloud.place(node())
    with pytest.raises(OSError, match="no route"):
        place.channel.run(["serve"], timeout=1)
    assert cloud.next_event() == 1010
    clock.time = 1010
    with pytest.raises(ConnectionRefusedError):
        place.channel.ask(f"{place.folder}/agent.sock", launch.ping(), timeout=1)
    place.channel.run(["serve"], timeout=1)
    place.channel.ask(f"{place.folder}/agent.sock", launch.start(KEY, STEP), timeout=1)
    assert cloud.news() == {"n"}
    assert cloud.news() == set()
    assert cloud.next_event() == 1060
    clock.time = 1060
    assert cloud.news() == {"n"}
    assert len(place.channel.read(f"{place.folder}/journal", 0).splitlines()) == 3


def test_an_interruption_takes_machine_and_agent_away() -> None:
    clock = Clock()
    cloud = FakeCloud(clock, [OFFER], fates=fates, delays=Delays(boot=10))
    cloud.launch(OFFER, [node().identity], token="t")
    place = cloud.place(node())
    clock.time = 1010
    place.channel.run(["serve"], timeout=1)
    cloud.interrupt(NodeName("n"), 1, at=1020)
    assert cloud.next_event() == 1020
    clock.time = 1030
    machine = cloud.machines()[0]
    assert (machine.terminated_at, machine.ended_by_provider) == (1020, True)
    with pytest.raises(OSError, match="no route"):
        place.channel.read(f"{place.folder}/journal", 0)


def test_a_lost_reply_has_bought_all_the_same() -> None:
    cloud = FakeCloud(Clock(), [OFFER])
    cloud.lost_replies = 1
    with pytest.raises(ConnectionResetError):
        cloud.launch(OFFER, [node().identity], token="t")
    assert len(cloud.machines()) == 1
    assert cloud.launch(OFFER, [node().identity], token="t") == cloud.machines()


def test_what_the_agents_say_is_json_lines() -> None:
    agent = FakeAgent(fates)
    agent.ask(launch.start(KEY, STEP), 0)
    assert [json.loads(line)["seq"] for line in agent.journal.splitlines()] == [1, 2]
