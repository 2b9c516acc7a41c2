"""An agent posts to whom it was told to and to nobody else; its steps notice nothing of it."""

import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from broker.ports import Push
from broker.run import launch
from gateway.config.load import load
from gateway.config.paths import Paths
from gateway.hearing import Hearing, hearing
from tests.e2e.agents import RunningAgent, order, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

CONFIG = """\
partitions: [{name: own, nodes: ALL, reports: push}]
nodes: [{names: n1}]
push: {url: "https://localhost:1/"}
"""


@dataclass
class Stub:
    """A service that takes what goes on where it stands, or answers as the test says."""

    shown: Hearing
    letters: list[tuple[str, bytes]] = field(default_factory=list)
    taken: bytes = b""
    answer: Callable[[], tuple[int, dict[str, Any]]] | None = None
    """None: as the service does."""
    port: int = 0

    def told(self, **other: str) -> Push:
        """What an agent is told so that it posts here."""
        usual = {"url": f"https://127.0.0.1:{self.port}/", "pin": self.shown.pin, "ca": ""}
        return Push(**{**usual, "token": "the token", **other})

    def hear(self, token: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self.letters.append((token, body))
        if self.answer is not None:
            return self.answer()
        head, _, data = body.partition(b"\n")
        at = json.loads(head)["at"]
        fits = at in (None, len(self.taken))
        self.taken += data if fits else b""
        return 200 if fits else 409, {"position": len(self.taken)}


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[Stub]:
    paths = Paths.from_environ({"SKYPURZA_HOME": str(tmp_path)}, uid=1, user_home=tmp_path)
    shown = hearing(paths, load(CONFIG))
    assert shown is not None
    made = Stub(shown)

    class Door(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, value = made.hear(self.headers["Authorization"], body)
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Nothing is to be said."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def ended(agent: RunningAgent, key: str, folder: Path, script: str = "true") -> int:
    """The exit code of a step that was run to its end."""
    agent.run(key, order(folder, script))
    return int(str(agent.wait("exited", key)["code"]))


def tell(agent: RunningAgent, told: Push) -> None:
    assert agent.ask(launch.push(told))["ok"] is True


def journal(agent: RunningAgent) -> bytes:
    return (agent.home / "journal").read_bytes()


def test_all_of_the_journal_comes_once_with_the_token(
    agent: RunningAgent, stub: Stub, work: Path
) -> None:
    ended(agent, "1/1/batch", work)
    tell(agent, stub.told())
    ended(agent, "2/1/batch", work)
    until(lambda: stub.taken == journal(agent), "all")
    assert {token for token, _ in stub.letters} == {"Bearer the token"}
    agent.kill_daemon()
    agent.start()
    ended(agent, "3/1/batch", work)
    until(lambda: stub.taken == journal(agent), "the rest")


def test_who_shows_another_certificate_hears_nothing(agent: RunningAgent, stub: Stub) -> None:
    log = agent.home / "push.log"
    for told, words in (
        (stub.told(pin="0" * 64), "it shows another certificate"),
        (stub.told(pin="", ca=""), "CERTIFICATE_VERIFY_FAILED"),
    ):
        tell(agent, told)
        until(lambda words=words: words in log.read_text(), words)  # type: ignore[misc]
    assert not stub.letters
    tell(agent, stub.told(pin="", ca=stub.shown.certificate.read_text(), url=localhost(stub)))
    until(lambda: stub.letters, "one that the authority signed")


def localhost(stub: Stub) -> str:
    return f"https://localhost:{stub.port}/"


def test_no_proxy_hears_of_it(
    agents: Callable[..., RunningAgent],
    tmp_path: Path,
    stub: Stub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(0)
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        agent = agents(tmp_path)
        tell(agent, stub.told())
        until(lambda: stub.letters, "a letter")
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_a_service_that_never_answers_holds_up_no_step(
    agent: RunningAgent, stub: Stub, work: Path
) -> None:
    silent = threading.Event()
    stub.answer = lambda: (500, {"waited": silent.wait(30)})
    tell(agent, stub.told())
    until(lambda: stub.letters, "a letter")
    for number in range(5):
        assert ended(agent, f"{number}/1/batch", work, "exit 3") == 3
    silent.set()


def test_its_lease_is_renewed_by_a_letter_that_is_taken_and_by_no_other(
    agent: RunningAgent, stub: Stub
) -> None:
    stub.answer = lambda: (503, {})
    tell(agent, stub.told())
    until(lambda: len(stub.letters) > 1, "two letters")
    idle = float(str(agent.ask(b'{"do":"idle"}\n')["idle"]))
    assert idle > 0.2, "it asked the agent, but nobody wanted the machine"
    stub.answer = None
    seen = len(stub.letters)
    until(lambda: len(stub.letters) > seen, "one that is taken")
    until(lambda: float(str(agent.ask(b'{"do":"idle"}\n')["idle"])) < idle, "the lease")


def test_what_was_told_is_for_the_agents_own_user_alone(agent: RunningAgent, stub: Stub) -> None:
    tell(agent, stub.told())
    until(lambda: stub.letters, "a letter")
    assert (agent.home / "push").stat().st_mode & 0o777 == 0o600
    found = subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True).stdout
    assert "the token" not in found.replace(f"{os.getpid()} ", "")
