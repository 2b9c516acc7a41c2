"""A listener on 127.0.0.1 for browsers, opened when somebody asks for it first."""

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from broker.model.errors import Refused
from gateway.api.app import App
from gateway.api.heads import BARE, HEAD_SECONDS, HeadProtocol

HOST = "127.0.0.1"
MOST = 128
"""Connections at a time: nobody can say whose they are."""


class Visitor(HeadProtocol):
    """One request for each connection; where there are too many the oldest makes room."""

    patience = HEAD_SECONDS

    def __init__(self, here: "dict[Visitor, None]", **how: Any) -> None:
        super().__init__(**how)
        self._here = here

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._here[self] = None
        if len(self._here) > MOST:
            next(iter(self._here)).transport.abort()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.cycle.keep_alive = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._here.pop(self, None)
        super().connection_lost(exc)


class Loopback:
    """Serves one application to browsers of this host; `port` 0 is any that is free."""

    def __init__(self, port: int = 0) -> None:
        self.app: App | None = None
        self._port = port
        self._server: asyncio.Server | None = None
        self._state = ServerState()
        self._opening = asyncio.Lock()

    async def port(self) -> int:
        """Where it listens, from now on. Raises Refused where the port is taken."""
        async with self._opening:
            if self._server is None:
                self._server = await self._opened()
        return int(self._server.sockets[0].getsockname()[1])

    async def _opened(self) -> asyncio.Server:
        config = uvicorn.Config(
            self.app,  # type: ignore[arg-type]
            ws="none",
            **BARE,
        )
        config.load()
        try:
            listener = socket.create_server((HOST, self._port))
        except OSError as error:
            raise Refused(
                f"cannot listen on {HOST}:{self._port}: {error.strerror}",
                hint="http.dashboard_port in the configuration names another port, or none",
            ) from error

        here: dict[Visitor, None] = {}

        def visitor() -> Visitor:
            return Visitor(here, config=config, server_state=self._state, app_state={})

        return await asyncio.get_running_loop().create_server(visitor, sock=listener)

    def close(self) -> None:
        """Nobody is let in any more; who is being answered gets the rest."""
        if self._server is not None:
            self._server.close()
        for connection in [*self._state.connections]:
            connection.shutdown()
