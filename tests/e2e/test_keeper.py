"""The keeper of a machine: ends it when nobody wants it, hears that it will be taken away."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from broker.run import launch
from tests.e2e.agents import RunningAgent, order, until, with_argument

NOTICE = {"action": "terminate", "time": "2026-11-29T21:00:00Z"}


@pytest.fixture
def machine(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a `shutdown` that notes what it was told, and ends nothing."""
    tools = short_tmp / "bin"
    tools.mkdir()
    shutdown = tools / "shutdown"
    shutdown.write_text(f'#!/bin/sh\necho "$@" >> "{short_tmp}/told"\n')
    shutdown.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    yield short_tmp
    (short_tmp / "node" / "keeper.lock").unlink(missing_ok=True)
    until(lambda: not with_argument(str(short_tmp / "node")), "the keeper's end")


def told(machine: Path) -> list[str]:
    path = machine / "told"
    return path.read_text().splitlines() if path.exists() else []


def test_a_machine_nobody_speaks_to_ends_itself_but_not_while_a_step_lives(machine: Path) -> None:
    agent = RunningAgent(machine, "--lease", "0.6")
    agent.run("7/1/batch", order(machine, "sleep 1.5"))
    time.sleep(1)
    assert told(machine) == []
    agent.wait("exited", "7/1/batch")
    until(lambda: told(machine), "the shutdown")
    assert told(machine)[0] == "-h now"
    agent.halt()


def test_it_ends_too_when_its_agent_is_dead(machine: Path) -> None:
    agent = RunningAgent(machine, "--lease", "0.6")
    agent.kill_daemon()
    until(lambda: told(machine), "the shutdown")
    assert told(machine)[0] == "-h now"


def test_a_machine_that_is_spoken_to_stays(machine: Path) -> None:
    agent = RunningAgent(machine, "--lease", "1")
    for _ in range(8):
        agent.ask(launch.ping())
        time.sleep(0.2)
    assert told(machine) == []
    agent.halt()


def test_while_something_lives_its_hard_end_is_put_off(machine: Path) -> None:
    agent = RunningAgent(machine, "--lease", "4", "--deadline", str(time.time() + 60))
    agent.run("7/1/batch", order(machine, "sleep 30"))
    until(lambda: len(told(machine)) > 1, "more time")
    assert told(machine) == ["-h +10", "-h +30"]
    agent.halt()


@pytest.mark.parametrize("off", [-7200, 7200])
def test_its_hard_end_is_by_the_services_clock_once_that_was_told(machine: Path, off: int) -> None:
    """Its own is two hours ahead, or behind."""
    service = time.time() - off
    agent = RunningAgent(machine, "--lease", "4", "--deadline", str(service + 5400))
    assert agent.ask(launch.dated(launch.start("7/1/batch", order(machine, "sleep 30")), service))
    until(lambda: len(told(machine)) > 1, "that it is set right")
    assert told(machine) == ["-h +210" if off < 0 else "-h +10", "-h +90"]
    agent.halt()


def test_it_does_not_end_while_results_are_owed_but_for_its_hard_end(machine: Path) -> None:
    hard_end = time.time() + 3600
    agent = RunningAgent(machine, "--lease", "0.5", "--deadline", str(hard_end))
    agent.run("7/1/batch", order(machine, "exit 3"))
    agent.wait("exited", "7/1/batch")
    time.sleep(1)
    assert told(machine) == ["-h +60"]
    agent.ask(launch.ping(fetched=len((agent.home / "journal").read_bytes())))
    until(lambda: len(told(machine)) > 1, "the shutdown")
    assert told(machine)[1] == "-h now"
    agent.halt()


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2 of a machine that will be taken away."""

    def do_PUT(self) -> None:
        self.say(200 if self.path == "/latest/api/token" else 404, b"secret")

    def do_GET(self) -> None:
        if self.headers.get("X-aws-ec2-metadata-token") != "secret":
            self.say(401, b"")
        elif self.path == "/latest/meta-data/spot/instance-action":
            self.say(200, json.dumps(NOTICE).encode())
        else:
            self.say(404, b"")

    def say(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_args: object) -> None:
        """Nobody reads it."""


def test_the_notice_that_it_will_be_taken_away_is_in_the_journal_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = HTTPServer(("127.0.0.1", 0), Metadata)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{server.server_port}"
    )
    agent = RunningAgent(machine, "--lease", "4", "--notices", "ec2")
    (found,) = until(
        lambda: [one for one in agent.journal() if one["kind"] == "notice"], "the notice"
    )
    assert (found["action"], found["when"]) == ("terminate", "2026-11-29T21:00:00Z")
    time.sleep(2.5)
    assert sum(one["kind"] == "notice" for one in agent.journal()) == 1
    agent.halt()
    server.shutdown()
    server.server_close()
