"""Uvicorn's protocol for HTTP, which takes no long head of a request, nor waits long for one.

Uvicorn has no bound for either: a head that never ends costs more with each byte, and who says
half of one keeps a connection for ever.
"""

import asyncio
from asyncio import Transport
from collections.abc import Mapping
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""How long strangers may say nothing that is a request."""
LONGEST = 1 << 16
"""Bytes of a head, as far as it has not ended."""
BARE: Mapping[str, Any] = {
    "lifespan": "off",
    "log_config": None,
    "access_log": False,
    "proxy_headers": False,
    "server_header": False,
    "date_header": False,
}
"""Of every listener: what Uvicorn would do beside, its log for one, is done by nobody or by us."""


class HeadProtocol(HttpToolsProtocol):
    """Closes what has not said after `patience` seconds what it wants; None: it may take longer."""

    patience: ClassVar[float | None] = None
    _hurry: asyncio.TimerHandle | None = None
    _in_head: bool = True
    _heard: int = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        self._heard += len(data)
        super().data_received(data)
        if self._in_head and self._heard > LONGEST:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:
            self._expect()

    def on_headers_complete(self) -> None:
        self._take_time()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._take_time()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._in_head, self._heard = True, 0
        if self.patience is not None:
            self._hurry = self.loop.call_later(self.patience, self.transport.abort)

    def _take_time(self) -> None:
        self._in_head = False
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None
