"""Agents of a fake cloud that post over HTTPS to the listener for nodes, all in one thread."""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from broker.heart import Heart
from broker.model.ids import NodeName
from broker.model.node import Node
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
SPREAD = 97
"""Nodes do not begin all at once."""


@dataclass
class Posters:
    """Both ends of the listener; `spent` is the processor time in seconds of the nodes' end."""

    heart: Heart
    cloud: FakeCloud
    pushes: Pushes
    listener: NodesListener
    seal: bytes
    port: int
    context: ssl.SSLContext = field(default_factory=ssl._create_unverified_context)
    spent: float = 0.0
    letters: int = 0
    news: Mapping[NodeName, asyncio.Event] = field(default_factory=dict)

    async def serve(self, stop: asyncio.Event) -> None:
        server = await self.listener.begin()
        await stop.wait()
        server.close()

    async def post(self, stop: asyncio.Event) -> None:
        nodes = list(self.heart.engine.snapshot.nodes.values())
        self.news = {node.name: asyncio.Event() for node in nodes}
        tasks = [asyncio.create_task(self.node(node)) for node in nodes]
        while not stop.is_set():
            self.spent = time.thread_time()
            for name in self.cloud.news():
                self.news[name].set()
            await asyncio.sleep(LOOK_SECONDS)
        for task in tasks:
            task.cancel()

    async def node(self, node: Node) -> None:
        """One agent's letters, on one connection."""
        await asyncio.sleep(PULSE * (hash(node.name) % SPREAD) / SPREAD)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
        token = sign_node(self.seal, node.name, node.launch)
        position: int | None = None
        while True:
            agent = self.cloud.agent_of(node.identity)
            journal = b"" if agent is None else bytes(agent.journal)
            said = {"journal": len(journal), "time": time.time(), "free": 1 << 40}
            data = b"" if position is None else journal[position:]
            body = json.dumps({"at": position, "said": said}).encode() + b"\n" + data
            head = (
                f"POST /reports HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            before, position = position, (await _answer(reader)).get("position", position)
            self.letters += 1
            if position == before:
                await self._rest(node.name)

    async def _rest(self, name: NodeName) -> None:
        try:
            await asyncio.wait_for(self.news[name].wait(), PULSE)
        except TimeoutError:
            return
        self.news[name].clear()


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
    return Posters(heart, cloud, pushes, listener, shown.seal, port)


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

    threads = [threading.Thread(target=run, args=(work,)) for work in (made.serve, made.post)]
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
