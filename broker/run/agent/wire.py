"""Lines of JSON over Unix sockets, also in folders whose names are too long for one."""

import base64
import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIMIT = 64 << 20
"""Longest line that is taken, in bytes: a 4 MiB script and 1 MiB of environment fit many times."""


class TooLongError(Exception):
    """A caller sent more than LIMIT bytes without a line's end."""


def text(value: str) -> bytes:
    """The bytes that a JSON text stands for; lone surrogates are bytes that are no UTF-8."""
    return value.encode("utf-8", "surrogateescape")


def variables(step: "dict[str, Any]") -> "dict[bytes, bytes]":
    """A step's environment as its order has it."""
    values = {}  # type: dict[bytes, bytes]
    for entry in base64.b64decode(step.get("env") or "").split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if name and equals:
            values.setdefault(name, value)  # getenv finds the first of two
    return values


def reach(act: "Callable[[str], object]", path: str) -> None:
    """`act` with an address of `path` that fits a socket's 107 bytes. Raises OSError."""
    folder, name = os.path.split(path)
    fd = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY)
    try:
        act("/proc/self/fd/{}/{}".format(fd, name))
    finally:
        os.close(fd)


def listen(path: str) -> "socket.socket":
    """A listening socket at `path`, for its owner alone; one left there before is replaced."""
    if os.path.lexists(path):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        reach(sock.bind, path)
    finally:
        os.umask(mask)
    sock.listen(1024)
    sock.setblocking(False)
    return sock


def ask(path: str, line: bytes, timeout: float) -> bytes:
    """One line there, one line back. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(timeout)
        reach(sock.connect, path)
        sock.sendall(line.rstrip(b"\n") + b"\n")
        with sock.makefile("rb") as stream:
            return stream.readline()


def shout(path: str, data: bytes) -> None:
    """Sends if somebody takes it at once; waits for nothing and fails silently."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        reach(sock.connect, path)
        sock.send(data)
    except OSError:
        return  # nobody listens, or not now: whoever wants to know reads the journal
    finally:
        sock.close()


def poke(path: str, key: str) -> None:
    """Tells the agent at `path` that a step's files have changed."""
    shout(path, encode({"do": "poke", "key": key}))


def about_node(node: str) -> bytes:
    """What is sent to the service: the node's journal has news."""
    return _post("/agent/{}".format(node))


def about_io(node: str, key: str) -> bytes:
    """The same: the step's io file has grown."""
    return _post("/agent/{}?io={}".format(node, key))


def _post(path: str) -> bytes:
    return "POST {} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".format(path).encode("utf-8")


def encode(value: "dict[str, Any]") -> bytes:
    """One line of JSON, ASCII only, so that any byte of a name survives as a surrogate."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> "dict[str, Any]":
    """Raises ValueError or TypeError for what is not a JSON object."""
    value = json.loads(line.decode("utf-8"))
    if not isinstance(value, dict):
        raise TypeError("not a JSON object: {!r}".format(line[:80]))
    return value


class Caller:
    """One connection to the agent; waits for nobody but, briefly, for a reply to be taken."""

    PATIENCE = 1.0

    def __init__(self, sock: "socket.socket") -> None:
        self.sock = sock
        self.open = True
        self.inbox = bytearray()

    def lines(self) -> "list[bytes]":
        """The whole lines that have come. Raises TooLongError."""
        self._fill()
        end = self.inbox.rfind(b"\n") + 1
        whole = bytes(self.inbox[:end])
        del self.inbox[:end]
        if len(self.inbox) > LIMIT:
            raise TooLongError
        return [line for line in whole.split(b"\n") if line.strip()]

    def _fill(self) -> None:
        self.sock.setblocking(False)
        try:
            while len(self.inbox) <= LIMIT:
                data = self.sock.recv(1 << 18)
                self.inbox += data
                if not data:
                    self.open = False
                    return
        except BlockingIOError:
            return
        except OSError:
            self.open = False

    def say(self, reply: "dict[str, Any]") -> None:
        try:
            self.sock.settimeout(self.PATIENCE)
            self.sock.sendall(encode(reply))
        except OSError:
            self.open = False
