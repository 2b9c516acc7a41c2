"""Agents of a fake cloud that post over HTTPS to the listener for nodes, all in one process."""

import asyncio
import json
import ssl
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.heart import Heart
from broker.providers.fake import FakeCloud
from broker.run.agent.push import PULSE
from broker.run.pushed import Pushes
from gateway.api.holders import Bells
from gateway.api.push import PushDoor
from gateway.config.load import load
from gateway.config.paths import Paths
from gateway.hearing import hearing
from gateway.serve import NodesListener, nodes_listener
from gateway.translate.token import sign_node

CONFIG = """\
nodes: [{{names: n1}}]
partitions: [{{name: own, nodes: ALL, reports: push}}]
push: {{url: "https://127.0.0.1:{port}", host: 127.0.0.1, port: {port}}}
"""
LOOK_SECONDS = 0.2
LONGEST_LINE = 1 << 24
SPREAD = 97
"""Nodes do not begin all at once."""


@dataclass
class Posters:
    """The service's end of the listener, and what its nodes know; `spent` is what that takes of the
    processor's time, in seconds."""

    heart: Heart
    cloud: FakeCloud
    pushes: Pushes
    listener: NodesListener
    seal: bytes
    port: int
    path: str
    """Where the nodes' process asks what their journals hold."""
    spent: float = 0.0
    guest: asyncio.StreamWriter | None = None

    async def serve(self, stop: asyncio.Event) -> None:
        server = await self.listener.begin()
        await stop.wait()
        server.close()

    async def feed(self, stop: asyncio.Event) -> None:
        server = await asyncio.start_unix_server(self._tell, self.path)
        with subprocess.Popen([sys.executable, __file__, self.path, str(self.port)]) as nodes:
            while not stop.is_set():
                self.spent = time.thread_time()
                self._say({"news": list(self.cloud.news())})
                await asyncio.sleep(LOOK_SECONDS)
            nodes.kill()
        while self.guest is not None:
            await asyncio.sleep(LOOK_SECONDS)
        server.close()

    def _say(self, told: Mapping[str, object]) -> None:
        if self.guest is not None:
            self.guest.write(json.dumps(told).encode() + b"\n")

    async def _tell(self, asked: asyncio.StreamReader, guest: asyncio.StreamWriter) -> None:
        """All nodes with their tokens, then the journal of each that asks."""
        self.guest = guest
        nodes = {node.name: node for node in self.heart.engine.snapshot.nodes.values()}
        tokens = {name: sign_node(self.seal, name, one.launch) for name, one in nodes.items()}
        self._say({"nodes": tokens})
        async for line in asked:
            name, at = json.loads(line)
            agent = self.cloud.agent_of(nodes[name].identity)
            journal = b"" if agent is None else bytes(agent.journal)
            data = b"" if at is None else journal[at:]
            self._say({"node": name, "size": len(journal), "data": data.decode()})
        self.guest = None


@dataclass
class Nodes:
    """The process of all nodes."""

    port: int
    tokens: Mapping[str, str]
    ask: asyncio.StreamWriter
    context: ssl.SSLContext = field(default_factory=ssl._create_unverified_context)
    news: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    told: dict[str, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict)

    def hear(self, told: dict[str, Any]) -> None:
        for name in told.get("news", ()):
            self.news[name].set()
        if "node" in told:
            self.told.pop(told["node"]).set_result(told)

    async def node(self, name: str) -> None:
        """One agent's letters, on one connection."""
        await asyncio.sleep(PULSE * (hash(name) % SPREAD) / SPREAD)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
        position: int | None = None
        while True:
            writer.write(await self._letter(name, position))
            before, position = position, (await _answer(reader)).get("position", position)
            if position == before:
                await self._rest(name)

    async def _letter(self, name: str, position: int | None) -> bytes:
        told = self.told[name] = asyncio.get_running_loop().create_future()
        self.ask.write(json.dumps([name, position]).encode() + b"\n")
        found = await told
        said = {"journal": found["size"], "time": time.time(), "free": 1 << 40}
        body = json.dumps({"at": position, "said": said}) + "\n" + found["data"]
        head = (
            f"POST /reports HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {self.tokens[name]}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return (head + body).encode()

    async def _rest(self, name: str) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.news[name].wait(), PULSE)
        self.news[name].clear()


async def nodes(path: str, port: int) -> None:
    """Until it is killed, or who tells them is gone."""
    told, ask = await asyncio.open_unix_connection(path, limit=LONGEST_LINE)
    made = Nodes(port, json.loads(await told.readline())["nodes"], ask)
    tasks = [asyncio.create_task(made.node(name)) for name in made.tokens]
    async for line in told:
        made.hear(json.loads(line))
    for task in tasks:
        task.cancel()


async def _answer(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
    found: dict[str, Any] = json.loads(await reader.readexactly(int(length.partition(":")[2])))
    return found


def posters(folder: str, port: int, *, heart: Heart, cloud: FakeCloud) -> Posters:
    """Joined, and not yet begun."""
    home = Path(folder)
    paths = Paths.from_environ({"SKYPURZA_HOME": folder}, uid=1, user_home=home)
    config, pushes = load(CONFIG.format(port=port)), Pushes()
    shown = hearing(paths, config)
    assert shown is not None
    desk: Any = SimpleNamespace(
        pushes=pushes,
        snapshot=lambda: heart.engine.snapshot,
        wake=heart.wake,
        bells=Bells(),
    )
    door = PushDoor(desk=desk, seal=shown.seal, digest="", archive=b"")
    service: Any = SimpleNamespace(hearing=shown, push_door=door)
    listener = nodes_listener(service, config)
    assert listener is not None
    return Posters(heart, cloud, pushes, listener, shown.seal, port, f"{folder}/nodes.sock")


@contextmanager
def at_work(made: Posters) -> Iterator[None]:
    """Each end in a thread of its own."""
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def run(work: Any) -> None:
        async def whole() -> None:
            stop = asyncio.Event()
            loops.append((asyncio.get_running_loop(), stop))
            await work(stop)

        asyncio.run(whole())

    threads = [threading.Thread(target=run, args=(work,)) for work in (made.serve, made.feed)]
    for thread in threads:
        thread.start()
        time.sleep(0.3)
    try:
        yield
    finally:
        for loop, stop in loops:
            loop.call_soon_threadsafe(stop.set)
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    asyncio.run(nodes(sys.argv[1], int(sys.argv[2])))
