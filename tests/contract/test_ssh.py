"""What SSH adds to the contract: verified hosts, kept connections, bastions, machines that boot."""

import queue
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from broker.providers.ec2.keys import SiteKeys
from broker.run.knock import Knocker
from broker.run.ssh import Connections, Target
from tests.contract.sshd import KEYS, free_port, login, sshd, wait_for

T = TypeVar("T")
OTHERS = SiteKeys("ffffffffffff", bytes([7]) * 32)


@pytest.fixture
def knocker() -> Knocker:
    return Knocker()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def connections(knocker: Knocker, told: list[str]) -> Iterator[Connections]:
    made = Connections(knocker=knocker, tell=told.append)
    yield made
    made.close()


def target(port: int) -> Target:
    return Target(login=login(port), python=sys.executable)


def test_a_host_with_another_key_is_told_nothing(
    connections: Connections, knocker: Knocker, told: list[str]
) -> None:
    port = free_port()
    with sshd(port, host=OTHERS.host("t")):
        wait_for(port, knocker)
        with pytest.raises(OSError, match="host key"):
            connections.channel(target(port)).run(["true"], timeout=10)
    assert "host key" in told[0]


def test_a_login_that_is_not_ours_is_an_os_error_and_told(
    connections: Connections, knocker: Knocker, told: list[str]
) -> None:
    port = free_port()
    with sshd(port):
        wait_for(port, knocker)
        wrong = replace(login(port), private_key=OTHERS.login().private)
        with pytest.raises(OSError, match="uthenti"):
            connections.channel(Target(login=wrong)).run(["true"], timeout=10)
    assert told


def test_one_connection_serves_many_commands_at_a_time(
    connections: Connections, knocker: Knocker
) -> None:
    port = free_port()
    with sshd(port):
        wait_for(port, knocker)
        channel = connections.channel(target(port))
        out: list[bytes] = []
        threads = [
            threading.Thread(
                target=lambda n=n: out.append(channel.run(["echo", str(n)], timeout=60).out)
            )
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(map(int, out)) == list(range(20))
        assert len(connections._kept) == 1


def test_a_connection_that_broke_is_made_anew(connections: Connections, knocker: Knocker) -> None:
    port = free_port()
    channel = connections.channel(target(port))
    with sshd(port):
        wait_for(port, knocker)
        assert channel.run(["echo", "1"], timeout=10).out == b"1\n"
        (kept,) = connections._kept.values()
        assert kept.transport is not None
        kept.transport.sock.shutdown(socket.SHUT_RDWR)
        assert _patiently(lambda: channel.run(["echo", "2"], timeout=10).out) == b"2\n"


def test_a_host_that_was_asked_for_is_told_of_as_soon_as_it_answers(
    connections: Connections, knocker: Knocker
) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    knocker.greeted = told.put
    port = free_port()
    with pytest.raises(OSError, match="no SSH server"):
        connections.channel(target(port)).run(["true"], timeout=10)
    with sshd(port):
        assert told.get(timeout=20) == "127.0.0.1"
        connections.channel(target(port)).run(["true"], timeout=10)


def test_the_end_of_a_connection_is_told_unless_it_was_closed_here(
    connections: Connections, knocker: Knocker
) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    connections.ended = told.put
    port = free_port()
    channel = connections.channel(target(port))
    with sshd(port):
        wait_for(port, knocker)
        channel.run(["true"], timeout=10)
        (kept,) = connections._kept.values()
        assert kept.transport is not None
        kept.transport.sock.shutdown(socket.SHUT_RDWR)
        assert told.get(timeout=20) == "127.0.0.1"
        _patiently(lambda: channel.run(["echo"], timeout=10).out)
        thread = kept.transport
        connections.close()
        thread.join(20)
    assert told.empty()


def test_a_host_that_is_gone_is_knocked_at_first(knocker: Knocker) -> None:
    port = free_port()
    with sshd(port):
        wait_for(port, knocker)
    connections = Connections(knocker=knocker)
    channel = connections.channel(target(port))
    with pytest.raises(OSError, match=r"refused|reset|lost"):
        channel.run(["true"], timeout=5)
    with pytest.raises(OSError, match="no SSH server"):
        channel.run(["true"], timeout=5)


def test_a_host_that_does_not_let_us_in_is_asked_with_growing_pauses(knocker: Knocker) -> None:
    now = [0.0]
    port = free_port()
    with sshd(port, host=OTHERS.host("t")):
        wait_for(port, knocker)
        connections = Connections(knocker=knocker, clock=lambda: now[0])
        channel = connections.channel(target(port))
        for pause in (0.2, 0.4, 0.8):
            with pytest.raises(OSError, match="host key"):
                channel.run(["true"], timeout=5)
            with pytest.raises(OSError, match="moment ago"):
                channel.run(["true"], timeout=5)
            now[0] += pause


def test_the_way_leads_through_a_bastion_whose_key_is_checked_too(
    connections: Connections, knocker: Knocker
) -> None:
    inner, outer = free_port(), free_port()
    with sshd(inner), sshd(outer, host=KEYS.host("bastion")):
        wait_for(inner, knocker)
        wait_for(outer, knocker)
        gate = replace(login(outer), host_key=KEYS.host("bastion").public)
        through = Target(login=login(inner), bastion=gate)
        done = connections.channel(through).run(["echo", "through"], timeout=20)
        assert done.out == b"through\n"
        assert len(connections._kept) == 2
        false = replace(gate, host_key=OTHERS.host("t").public, user=gate.user + " ")
        with pytest.raises(OSError, match="host key"):
            connections.channel(replace(through, bastion=false, login=login(outer))).run(
                ["true"], timeout=20
            )


def test_only_the_latest_connections_stay_open(knocker: Knocker) -> None:
    ports = [free_port() for _ in range(3)]
    connections = Connections(knocker=knocker, most=1)
    with sshd(ports[0]), sshd(ports[1]), sshd(ports[2]):
        for port in ports:
            wait_for(port, knocker)
            connections.channel(target(port)).run(["true"], timeout=20)
        kept = [one for one in connections._kept.values() if one.transport]
        assert len(kept) <= 2
        assert connections.channel(target(ports[0])).run(["echo", "x"], timeout=20).out == b"x\n"
    connections.close()


# --- machines that boot


def test_hundreds_that_boot_are_waited_for_by_one_thread(knocker: Knocker) -> None:
    before = threading.active_count()
    doors = [("127.0.0.1", free_port()) for _ in range(300)]
    assert not any(knocker.answers(door) for door in doors)
    assert threading.active_count() <= before + 1
    door = doors[150]
    with socket.create_server(door) as listener:
        listener.settimeout(20)
        caller = listener.accept()[0]
        caller.sendall(b"SSH-2.0-test\r\n")
        assert _patiently(lambda: knocker.answers(door) or None)
        caller.close()
    assert not knocker.answers(doors[0])


def test_a_door_behind_which_something_else_answers_stays_shut(knocker: Knocker) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(20)
        assert not knocker.answers(("127.0.0.1", port))
        for _ in range(2):
            caller = listener.accept()[0]
            caller.sendall(b"HTTP/1.0 200 OK\r\n")
            caller.close()
        assert not knocker.answers(("127.0.0.1", port))


def test_until_it_answers_whoever_asks_is_told_so(connections: Connections) -> None:
    with pytest.raises(OSError, match="no SSH server"):
        connections.channel(target(free_port())).run(["true"], timeout=10)


def _patiently(look: Callable[[], T | None]) -> T:
    """What it gives as soon as it gives anything; tests may not sleep."""
    for _ in range(200):
        try:
            found = look()
        except OSError:
            found = None
        if found:
            return found
        select.select([], [], [], 0.05)
    raise AssertionError("it never came true")
