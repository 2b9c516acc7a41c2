"""The service asked from within, in the name of a user: its own routes, and commands of ours.

What a user may see and do is judged where programs of that user are judged.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import urlencode

from broker.model import errors as err
from broker.model import octets
from gateway.api.app import App
from gateway.api.desk import Desk
from gateway.api.errors import STATUS
from gateway.api.text import Program
from gateway.api.wire import Call, Peer
from gateway.api.zone import zone_of


class Printed(NamedTuple):
    """Both streams of a command, and its exit status."""

    out: str
    err: str
    code: int


@dataclass(frozen=True, slots=True)
class Inner:
    """Asks as `uid`; times are told in the zone that `tz` names, the host's where it is empty."""

    desk: Desk
    app: App
    programs: Mapping[str, Program]
    uid: int
    tz: str

    @property
    def zone(self) -> str:
        """Of days, by name."""
        return self.tz or "UTC"

    def ahead(self, at: int) -> int:
        """Seconds that the zone is ahead of UTC at an instant."""
        return zone_of(self.tz or None)(at)

    async def get(self, route: str, **query: object) -> dict[str, Any]:
        """What a route tells. Raises SpzError as that route did."""
        told: dict[str, Any] = json.loads(await self.read(route, **query))
        return told

    async def read(self, route: str, **query: object) -> bytes:
        """A route's answer as it is. Raises SpzError."""
        status, content = await _exchange(self.app, self._scope(route, query))
        if status >= 400:
            raise _error(status, content)
        return content

    async def run(self, program: str, *argv: str) -> Printed:
        """What a command of ours prints."""
        call = Call(
            program=program,
            argv=argv,
            peer=self._peer,
            request=token_hex(16),
            environ={"TZ": self.tz} if self.tz else {},
        )
        try:
            answer = await self.programs[program](self.desk, call)
        except err.SpzError as error:
            return Printed("", f"{program}: error: {error.message}\n", 1)
        return Printed(_text(answer.out), _text(answer.err), answer.code)

    @property
    def _peer(self) -> Peer:
        return Peer(uid=self.uid, gid=-1)

    def _scope(self, route: str, query: Mapping[str, object]) -> dict[str, Any]:
        words = {name: value for name, value in query.items() if value is not None}
        return {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": route,
            "raw_path": route.encode(),
            "root_path": "",
            "query_string": urlencode(words, errors="replace").encode(),
            "headers": [],
            "client": None,
            "server": None,
            "peer": self._peer,
        }


def _text(said: str | bytes) -> str:
    return octets.text(said) if isinstance(said, bytes) else said


async def _exchange(app: App, scope: dict[str, Any]) -> tuple[int, bytes]:
    status, parts, asked = 500, bytearray(), False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:  # nobody leaves before the answer is whole
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(parts)


def _error(status: int, content: bytes) -> err.SpzError:
    """The error that the route told, of the class that has its status."""
    kind = next((kind for kind, code in STATUS if code == status), err.Refused)
    told = json.loads(content)
    error = told.get("error", {})
    return kind(error.get("message") or "this cannot be asked so", hint=error.get("hint", ""))
