"""A client of the service's own routes, over its Unix socket or TCP; quick to start.

A socket and no library: `http.client` alone takes as long to load as all the rest of a command.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from broker.model.errors import Busy, SpzError

Json = dict[str, Any]
TIMEOUT = 60.0
CHUNK = 1 << 16
LONGEST_HEAD = 1 << 16
PAUSE = 0.2
"""Seconds between two tries."""
TRIES = 50
"""So a restart of some ten seconds is sat out, as by the shims."""


class NoService(SpzError):
    """Nobody answers there."""


class Told(SpzError):
    """What the service refused; `kind` is the class of the error there."""

    def __init__(self, message: str, *, hint: str, kind: str, status: int) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status


class Cut(ConnectionError):
    """The answer ended before it was whole, or is none."""


@dataclass(slots=True)
class _Answer:
    """The head of an answer, and the connection that its body is read from."""

    status: int
    begun: bytes
    """What of the body came with the head."""
    length: int | None
    chunked: bool
    sock: socket.socket

    def parts(self) -> Iterator[bytes]:
        """The body as it comes. Raises Cut, OSError."""
        return self._chunks() if self.chunked else self._plain()

    def _chunks(self) -> Iterator[bytes]:
        """Free of HTTP's chunk lines, which uvicorn sends to HTTP/1.0 too."""
        data = self.begun
        while True:
            while b"\r\n" not in data:
                data += self._more()
            line, _, data = data.partition(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            if size == 0:
                return
            while len(data) < size + 2:
                data += self._more()
            yield data[:size]
            data = data[size + 2 :]

    def _more(self) -> bytes:
        part = self.sock.recv(CHUNK)
        if not part:
            raise Cut("the answer was cut off")
        return part

    def _plain(self) -> Iterator[bytes]:
        had, part = 0, self.begun
        while part or not had:
            had += len(part)
            if part:
                yield part
            if self.length is not None and had >= self.length:
                return
            part = self.sock.recv(CHUNK)
            if not part:
                break
        if self.length is not None and had < self.length:
            raise Cut("the answer was cut off")

    def read(self) -> bytes:
        return b"".join(self.parts())


class Client:
    """Calls routes; every method raises NoService or Told."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        address: tuple[str, int] | None = None,
        token: str = "",
        tries: int = TRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._address = address
        self._token = token
        self._tries = tries
        self._sleep = sleep

    @property
    def here(self) -> bool:
        """Whether the service is on this host, so that its files are ours to read."""
        return self._path is not None

    def get(self, route: str, **query: object) -> Json:
        return self._patiently("GET", _target(route, query))

    def post(self, route: str, body: Json | None = None, **query: object) -> Json:
        """Sent again only where it cannot have arrived."""
        return self._patiently("POST", _target(route, query), body, again=ConnectionRefusedError)

    def persist(self, route: str, body: Json | None = None, **query: object) -> Json:
        """POST of what may be done twice: it has an id, or leads to the same."""
        return self._patiently("POST", _target(route, query), body)

    def answers(self) -> bool:
        """Whether a service takes requests there now."""
        try:
            self._json("GET", "/healthz")
        except SpzError:
            return False
        return True

    def _patiently(
        self,
        method: str,
        target: str,
        body: Json | None = None,
        *,
        again: type[OSError] = ConnectionError,
    ) -> Json:
        """Sits a restart out. Without a socket there is none, unless there just was a service."""
        for number in range(1, self._tries):
            try:
                return self._json(method, target, body)
            except NoService as error:
                gone = isinstance(error.__cause__, FileNotFoundError) and number > 1
                if not gone and not isinstance(error.__cause__, again):
                    raise
                self._sleep(PAUSE)
        return self._json(method, target, body)

    def stream(self, route: str, **query: object) -> Iterator[bytes]:
        """The body in pieces, as they come; may wait between them."""
        with self._connected(timeout=None) as sock:
            answer = self._asked(sock, "GET", _target(route, query))
            if answer.status >= 400:
                raise _told(answer.status, answer.read())
            try:
                yield from answer.parts()
            except OSError as error:
                raise self._nobody(error) from error

    def _json(self, method: str, target: str, body: Json | None = None) -> Json:
        with self._connected(timeout=TIMEOUT) as sock:
            answer = self._asked(sock, method, target, body=body)
            try:
                content = answer.read()
            except OSError as error:
                raise self._nobody(error) from error
        if answer.status >= 400:
            raise _told(answer.status, content)
        told: Json = json.loads(content)
        return told

    def _connected(self, timeout: float | None) -> socket.socket:
        try:
            if self._path is None:
                return socket.create_connection(self._address or ("127.0.0.1", 80), timeout)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            try:
                sock.connect(str(self._path))
            except OSError:
                sock.close()
                raise
        except OSError as error:
            raise self._nobody(error) from error
        return sock

    def _asked(
        self, sock: socket.socket, method: str, target: str, *, body: Json | None = None
    ) -> _Answer:
        """HTTP/1.0: one question to a connection, whose end is that of the answer."""
        lines = [f"{method} {target} HTTP/1.0", "Host: localhost"]
        if self._token:
            lines.append(f"Authorization: Bearer {self._token}")
        content = b""
        if body is not None:
            content = json.dumps(body).encode("ascii")
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        try:
            sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
            return _head(sock)
        except OSError as error:
            raise self._nobody(error) from error

    def _nobody(self, error: Exception) -> NoService:
        where = self._path or "{}:{}".format(*(self._address or ("", 0)))
        what = getattr(error, "strerror", None) or str(error) or type(error).__name__
        hint = "`spz api start` starts a service of yours, SKYPURZA_SOCKET names another"
        if isinstance(error, TimeoutError):
            hint = "`spz api logs` tells what it is doing"
        return NoService(f"no service answers on {where}: {what}", hint=hint)


def _head(sock: socket.socket) -> _Answer:
    """Raises Cut, OSError."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = sock.recv(CHUNK)
        if not part or len(data) > LONGEST_HEAD:
            raise Cut("the answer was cut off" if data else "no answer came")
        data += part
    head, _, begun = data.partition(b"\r\n\r\n")
    first, *others = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in others)
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    words = first.split()
    if len(words) < 2 or not words[1].isdigit():
        raise Cut(f"no answer of HTTP: {first[:40]}")
    length = fields.get("content-length", "")
    return _Answer(
        status=int(words[1]),
        begun=begun,
        length=int(length) if length.isdigit() else None,
        chunked=fields.get("transfer-encoding", "").lower() == "chunked",
        sock=sock,
    )


def _target(route: str, query: Mapping[str, object]) -> str:
    given = {name: _text(value) for name, value in query.items() if value is not None}
    path = quote(route, errors="surrogateescape")
    return f"{path}?{urlencode(given, errors='surrogateescape')}" if given else path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _misfit(body: object) -> str:
    """What in a request has no such value, of FastAPI's answer to it; empty for other answers."""
    found = body.get("detail") if isinstance(body, dict) else None
    if not isinstance(found, list):
        return "the service knows nothing of that name" if found == "Not Found" else ""
    return "; ".join(f"{one['loc'][-1]}: {one.get('input')!r}: {one['msg']}" for one in found)


def _told(status: int, content: bytes) -> SpzError:
    try:
        body = json.loads(content)
    except ValueError:
        return Told(content.decode("utf-8", "replace"), hint="", kind="", status=status)
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        text = _misfit(body) or f"HTTP {status}: {json.dumps(body)}"
        return Told(text, hint="", kind="", status=status)
    message, hint = str(error.get("message", "")), str(error.get("hint", ""))
    if error.get("kind") == Busy.__name__:
        return Busy(message, hint=hint)
    return Told(message, hint=hint, kind=str(error.get("kind", "")), status=status)
