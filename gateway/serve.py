"""Start and stop of the service: the lock, the engine's thread, the HTTP server."""

import asyncio
import contextlib
import fcntl
import gc
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import structlog
import uvicorn
from uvicorn.server import ServerState

from broker.model.errors import Refused
from gateway.api.crowd import crowd
from gateway.api.heads import BARE
from gateway.api.knock import knocking
from gateway.api.push import NodeProtocol
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.observe.processes import lives
from gateway.wiring import Service, build

HOME_MODE = 0o711
"""Jobs of other users reach their own files below it; nobody can list it."""
SOCKET_MODE = 0o666
"""Everybody may knock; the kernel says who does."""
BACKLOG = 2048
STOP_SECONDS = 10.0
LOCK_PATIENCE = 3.0
"""Seconds: threads of a killed service, or a program it was just starting, may hold its lock on."""
ALIVE_PATIENCE = 0.5
"""Seconds: one that was just told to end may not know it yet."""
LOCK_PAUSE = 0.02
HANDSHAKE_SECONDS = 10.0
"""Of a connection's beginning, and of its end."""
KEEP_ALIVE_SECONDS = 75
"""Nodes that have nothing to tell say so every ten."""
MOST_NODES = 4096
"""Connections of nodes at a time."""
COLLECTED = (50_000, 20, 20)
"""How many new objects are looked at for cycles at a time, how many such lots before older ones.

Records hold no cycles; with Python's 700 a listing of thousands of old jobs made it look through
everything, which took as long as all the rest of the listing, and with 10,000 the end of ten
thousand jobs did, a quarter of its time.
"""
SWITCH_SECONDS = 0.0005
"""How long one thread keeps the interpreter while another wants it.

The writer asks for it back at each statement; with Python's 5 ms a step of the engine waits longer
for the threads that read than it works.
"""


def serve(paths: Paths, config: Config) -> int:
    """Runs the service until SIGTERM or SIGINT; 0 if it ended as asked, 1 if it broke.

    Raises Refused if another service holds the lock, or something cannot be used.
    """
    make_home(paths)
    with lock(paths):
        service = build(paths, config)
        try:
            return _run(service, paths, config)
        finally:
            service.store.close()


def make_home(paths: Paths) -> None:
    """The state directory, with modes that let jobs of other users through to their own files."""
    paths.home.mkdir(mode=HOME_MODE, parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):
        paths.home.chmod(HOME_MODE)
    paths.nodes.mkdir(mode=HOME_MODE, exist_ok=True)


@contextlib.contextmanager
def lock(paths: Paths) -> Iterator[None]:
    """Only one service at a time has this state directory. Raises Refused."""
    with paths.lock.open("a+") as file:
        _take(file, paths)
        _write_pid(paths.pid)
        try:
            yield
        finally:
            paths.pid.unlink(missing_ok=True)


def _take(file: TextIO, paths: Paths) -> None:
    """Takes the lock. Raises Refused, soon if the service that has it lives."""
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid(paths)
            patience = ALIVE_PATIENCE if pid is None or lives(pid) else LOCK_PATIENCE
            if time.monotonic() - began < patience:
                time.sleep(LOCK_PAUSE)
                continue
            raise Refused(
                f"another service runs on {paths.home} (pid {pid or 'unknown'})",
                hint="`spz api status` tells of it, `spz api stop` ends it",
            ) from None
        return


def _pid(paths: Paths) -> int | None:
    try:
        return int(paths.pid.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _write_pid(path: Path) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(f"{os.getpid()}\n", encoding="ascii")
    fresh.replace(path)


def listen(path: Path) -> socket.socket:
    """The Unix socket; what a dead service left there is replaced. Raises Refused."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise Refused(
                f"{path} is there and no socket", hint="move it away, or set SKYPURZA_SOCKET"
            )
        path.unlink()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
    except OSError as error:
        made.close()
        raise Refused(f"cannot listen on {path}: {error.strerror}") from error
    path.chmod(SOCKET_MODE)
    made.listen(BACKLOG)
    return made


@dataclass(frozen=True, slots=True)
class NodesListener:
    """The TLS listener for what nodes post: an application and connections of its own."""

    config: uvicorn.Config
    socket: socket.socket
    state: ServerState = field(default_factory=ServerState)

    async def begin(self) -> asyncio.Server:
        """Raises nothing that its making would not have raised."""
        make = partial(NodeProtocol, config=self.config, server_state=self.state, app_state={})
        return await asyncio.get_running_loop().create_server(
            make,
            sock=self.socket,
            ssl=self.config.ssl,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=HANDSHAKE_SECONDS,
        )


def nodes_listener(service: Service, config: Config) -> NodesListener | None:
    """None where no node may post. Raises Refused where the address is taken."""
    shown, told = service.hearing, config.push
    if shown is None or service.push_door is None:
        return None
    made = uvicorn.Config(
        service.push_door,
        http=NodeProtocol,
        ssl_certfile=shown.certificate,
        ssl_keyfile=shown.key,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        limit_concurrency=MOST_NODES,
        **BARE,
    )
    made.load()
    family = socket.AF_INET6 if ":" in told.host else socket.AF_INET
    try:
        return NodesListener(
            made, socket.create_server((told.host, told.port), family=family, backlog=BACKLOG)
        )
    except OSError as error:
        raise Refused(
            f"push: cannot listen on {told.host} port {told.port}: {error.strerror or error}",
            hint="another push.host or push.port",
        ) from error


class Server(uvicorn.Server):
    """Uvicorn's, which also serves those who come by ways back, and nodes that post."""

    def __init__(
        self, config: uvicorn.Config, service: Service, nodes: NodesListener | None
    ) -> None:
        super().__init__(config)
        self.ways = service.ways
        self.loopback = service.loopback
        self.nodes = nodes
        self.keeper = service.keeper
        self.tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As Uvicorn's, then the ways are opened, and requests that were left are taken up."""
        await super().startup(sockets)
        self.tasks.append(asyncio.create_task(self.keeper.run()))
        if self.nodes is not None:
            self.servers.append(await self.nodes.begin())
        if self.ways is not None:
            protocol: Any = self.config.http_protocol_class
            make = partial(
                protocol,
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )
            self.tasks.append(asyncio.create_task(self.ways.run(make)))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """The ways are closed first: who comes by them asks again."""
        self.loopback.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await super().shutdown(sockets)


def _run(service: Service, paths: Paths, config: Config) -> int:
    log = structlog.get_logger()
    server = Server(
        uvicorn.Config(
            service.app,
            http=knocking(crowd()),  # type: ignore[arg-type]
            loop="uvloop",
            timeout_graceful_shutdown=5,
            **BARE,
        ),
        service,
        nodes_listener(service, config),
    )
    broken: list[BaseException] = []
    thread = threading.Thread(target=_beat, args=(service, server, broken), name="engine")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    signal.signal(signal.SIGHUP, lambda *_: _reread(service, log))
    sockets = [listen(paths.socket)]
    if config.http.port is not None:
        sockets.append(socket.create_server((config.http.host, config.http.port)))
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what was loaded stays: later collections need not look at it
    gc.set_threshold(*COLLECTED)
    gc.enable()
    thread.start()
    log.info("service.started", pid=os.getpid(), socket=str(paths.socket), home=str(paths.home))
    try:
        server.run(sockets=sockets)
    finally:
        service.heart.stop()
        thread.join(STOP_SECONDS)
        service.workers.stop()
        service.stop()
        paths.socket.unlink(missing_ok=True)
        log.info("service.stopped", broken=bool(broken))
    return 1 if broken else 0


def _reread(service: Service, log: Any) -> None:
    """Beside what is served: the file may be slow to read."""
    threading.Thread(target=service.reread.hang_up, args=(log,), name="reread").start()


def _beat(service: Service, server: uvicorn.Server, broken: list[BaseException]) -> None:
    """The engine's thread; what breaks it ends the service, which starts again from the store."""
    try:
        service.heart.run()
    except BaseException as error:  # border: told in the log, then the service ends
        structlog.get_logger().exception("engine.broken")
        broken.append(error)
    finally:
        server.should_exit = True
