"""A way back from a node: the agent's end as a process, ours before a small application."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from broker.model.ids import NodeName
from broker.run.launch import agent_zipapp
from gateway.api.back import Way, Ways
from gateway.api.crowd import crowd
from gateway.api.knock import knocking
from gateway.translate import token
from tests.unit.gateway.translate.test_orders import job_with

SEAL = b"seal"
NODE = NodeName("n1")
JOB = job_with(None)
"""Number 7, attempt 1, on n1, of uid 2001."""
REQUEST = b"POST /x/%b HTTP/1.0\r\nContent-Length: %d\r\n%b\r\n%b"
PATIENCE = 20.0


@dataclass
class Streams:
    """`broker.ports.Pipe` over the streams of a process of this host."""

    process: "subprocess.Popen[bytes]"

    def fileno(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def read(self, most: int) -> bytes | None:
        return os.read(self.fileno(), most)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close(self, *, lost: bool = False) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()


@dataclass
class App:
    """Answers with as many bytes as the program's name asks for, behind who asked."""

    heard: list[Any] = field(default_factory=list)

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        peer = scope["peer"]
        self.heard.append((peer.uid if peer else None, scope["path"], len(body)))
        size = {"large": 3_000_000}.get(scope["path"].rpartition("/")[2], 2)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"." * size})


@pytest.fixture
def node() -> Iterator[Path]:
    """A folder in which the agent's end listens."""
    with tempfile.TemporaryDirectory(prefix="spz-back-") as place:
        (Path(place) / "agent.pyz").write_bytes(agent_zipapp())
        yield Path(place)


Talk = Callable[[Path, App, Way], Awaitable[None]]


def served(node: Path, talk: Talk, jobs: Mapping[int, Any] | None = None) -> App:
    """What the application heard while `talk` went on."""
    app, known = App(), {7: JOB} if jobs is None else jobs

    async def run() -> None:
        desk: Any = SimpleNamespace(snapshot=lambda: SimpleNamespace(jobs=known, nodes={}))
        ways = Ways(desk, SEAL, SimpleNamespace(warning=print))
        config = Config(app, http=knocking(crowd()), lifespan="off")  # type: ignore[arg-type]
        config.load()
        make = partial(
            config.http_protocol_class,  # type: ignore[arg-type]
            config=config,
            server_state=ServerState(),
            app_state={},
        )
        argv = ["/usr/bin/python3", "-IS", str(node / "agent.pyz"), "back", "--dir", str(node)]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        way = Way(ways, NODE, Streams(process), make)
        task = asyncio.create_task(way.run())
        try:
            await asyncio.wait_for(talk(node / "gateway.sock", app, way), PATIENCE)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    return app


async def connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As soon as the agent's end listens."""
    while True:
        try:
            return await asyncio.open_unix_connection(str(path))
        except OSError:
            await asyncio.sleep(0.01)


async def ask(path: Path, request: bytes) -> bytes:
    """The whole answer."""
    reader, writer = await connected(path)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def request(program: str, shown: str = "", body: bytes = b"body") -> bytes:
    header = b"Authorization: Bearer %b\r\n" % shown.encode() if shown else b""
    return REQUEST % (program.encode(), len(body), header, body)


OWN = token.sign(SEAL, "7/1")


def test_a_token_of_the_nodes_job_says_who_asks(node: Path) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        answer = await ask(path, request("squeue", OWN, b"x" * 500_000))
        assert answer.startswith(b"HTTP/1.0 200 ")
        assert answer.endswith(b"\r\n\r\n..")

    assert served(node, talk).heard == [(2001, "/x/squeue", 500_000)]


ELSEWHERE = replace(JOB, shares=(replace(JOB.shares[0], node=NodeName("n2")),))


@pytest.mark.parametrize(
    ("shown", "jobs", "said"),
    [
        ("", {7: JOB}, b"no SKYPURZA_TOKEN"),
        (token.sign(b"other", "7/1"), {7: JOB}, b"not signed by this service"),
        (token.sign(SEAL, "7/2"), {7: JOB}, b"does not run here"),
        (OWN, {}, b"does not run here"),
        (OWN, {7: ELSEWHERE}, b"does not run here"),
        (OWN, {7: replace(JOB, shares=())}, b"does not run here"),
    ],
)
def test_nobody_else_is_let_in(
    node: Path, shown: str, jobs: Mapping[int, Any], said: bytes
) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        answer = await ask(path, request("squeue", shown))
        assert answer.startswith(b"HTTP/1.0 403 ")
        assert said in answer

    assert served(node, talk, jobs).heard == []


def test_the_agent_may_tell_of_its_own_node_alone(node: Path) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        for name in ("n2", "n11", "n1"):
            line = f"POST /agent/{name}?io=7/1/0 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"
            await ask(path, line.encode())

    assert served(node, talk).heard == [(None, "/agent/n1", 0)]


def test_who_reads_slowly_holds_up_nobody(node: Path) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        reader, writer = await connected(path)
        writer.write(request("large", OWN))
        for _ in range(20):
            assert b"200" in await ask(path, request("squeue", OWN))
        answer = await reader.read()
        assert answer.count(b".") >= 3_000_000
        writer.close()

    served(node, talk)


def test_what_is_no_request_is_dropped_and_those_behind_it_are_served(node: Path) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        with suppress(ConnectionError):
            assert await ask(path, b"x" * 10_000) == b""
        assert b"200" in await ask(path, request("squeue", OWN))

    served(node, talk)


def test_the_way_ends_with_the_agents_end_and_its_socket_goes(node: Path) -> None:
    async def talk(path: Path, app: App, way: Way) -> None:
        (await connected(path))[1].close()
        way.pipe.process.stdin.close()  # type: ignore[attr-defined]
        while path.exists():
            await asyncio.sleep(0.01)

    served(node, talk)
