"""A client of the service's own routes, over its Unix socket or TCP; quick to start.

`http.client` and not a larger library: a command has to be there before its user notices.
"""

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from broker.model.errors import Busy, SpzError

Json = dict[str, Any]
TIMEOUT = 60.0
PAUSE = 0.2
"""Seconds between two tries."""


class NoService(SpzError):
    """Nobody answers there."""


class Told(SpzError):
    """What the service refused; `kind` is the class of the error there."""

    def __init__(self, message: str, *, hint: str, kind: str, status: int) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Client:
    """Calls routes; every method raises NoService or Told."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        address: tuple[str, int] | None = None,
        token: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._address = address
        self._token = token
        self._sleep = sleep

    @property
    def here(self) -> bool:
        """Whether the service is on this host, so that its files are ours to read."""
        return self._path is not None

    def get(self, route: str, **query: object) -> Json:
        return self._json("GET", _target(route, query))

    def post(self, route: str, body: Json | None = None, **query: object) -> Json:
        return self._json("POST", _target(route, query), body)

    def persist(self, route: str, body: Json, *, tries: int = 50) -> Json:
        """POST of a request with an id, which may be sent again: a restart is sat out (10 s)."""
        for _ in range(tries - 1):
            try:
                return self.post(route, body)
            except NoService as error:
                if not isinstance(error.__cause__, ConnectionError | http.client.HTTPException):
                    raise
                self._sleep(PAUSE)
        return self.post(route, body)

    def answers(self) -> bool:
        """Whether a service takes requests there."""
        try:
            self.get("/healthz")
        except SpzError:
            return False
        return True

    def stream(self, route: str, **query: object) -> Iterator[bytes]:
        """The body in pieces, as they come; may wait between them."""
        connection = self._connection(timeout=None)
        try:
            answer = self._send(connection, "GET", _target(route, query))
            if answer.status >= 400:
                raise _told(answer.status, answer.read())
            while part := answer.read1(1 << 16):
                yield part
        finally:
            connection.close()

    def _json(self, method: str, target: str, body: Json | None = None) -> Json:
        connection = self._connection(timeout=TIMEOUT)
        try:
            answer = self._send(connection, method, target, body=body)
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._nobody(error) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _told(answer.status, content)
        told: Json = json.loads(content)
        return told

    def _connection(self, timeout: float | None) -> http.client.HTTPConnection:
        if self._path is not None:
            return _UnixConnection(self._path, timeout)  # type: ignore[arg-type]
        host, port = self._address or ("127.0.0.1", 80)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        *,
        body: Json | None = None,
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        content = None
        if body is not None:
            content = json.dumps(body).encode("ascii")
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, body=content, headers=headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._nobody(error) from error

    def _nobody(self, error: Exception) -> NoService:
        where = self._path or "{}:{}".format(*(self._address or ("", 0)))
        what = getattr(error, "strerror", None) or str(error) or type(error).__name__
        hint = "`spz api start` starts a service of yours, SKYPURZA_SOCKET names another"
        if isinstance(error, TimeoutError):
            hint = "`spz api logs` tells what it is doing"
        return NoService(f"no service answers on {where}: {what}", hint=hint)


def _target(route: str, query: Mapping[str, object]) -> str:
    given = {name: _text(value) for name, value in query.items() if value is not None}
    return f"{quote(route)}?{urlencode(given)}" if given else quote(route)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _told(status: int, content: bytes) -> SpzError:
    try:
        body = json.loads(content)
    except ValueError:
        return Told(content.decode("utf-8", "replace"), hint="", kind="", status=status)
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return Told(f"HTTP {status}: {json.dumps(body)}", hint="", kind="", status=status)
    message, hint = str(error.get("message", "")), str(error.get("hint", ""))
    if error.get("kind") == Busy.__name__:
        return Busy(message, hint=hint)
    return Told(message, hint=hint, kind=str(error.get("kind", "")), status=status)
