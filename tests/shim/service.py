"""A service of a few lines for the commands to talk to: each request gets the next reply."""

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.api.wire import Call, Peer, parse_call

Reply = Callable[[Call], bytes] | bytes | None
"""Bytes of the whole HTTP reply; None closes the connection without one."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def http(body: bytes, status: str = "200 OK", *, chunks: int = 0) -> bytes:
    """A reply with its head, in chunks of a size if one is given."""
    head = f"HTTP/1.1 {status}\r\n".encode()
    if not chunks:
        return head + b"content-length: %d\r\n\r\n" % len(body) + body
    parts = [body[start : start + chunks] for start in range(0, len(body), chunks)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head + b"transfer-encoding: chunked\r\n\r\n" + coded + b"0\r\n\r\n"


class Service:
    """Answers one connection after the other until its replies are used up."""

    def __init__(self, path: Path, replies: Sequence[Reply]) -> None:
        self.path = path
        self.replies = list(replies)
        self.calls: list[Call] = []
        self.heads: list[bytes] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Service":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join(10)
        self.listener.close()
        self.path.unlink()

    def _serve(self) -> None:
        for reply in self.replies:
            connection, _ = self.listener.accept()
            with connection:
                if reply is None:
                    continue
                call = self._receive(connection)
                connection.sendall(reply(call) if callable(reply) else reply)

    def _receive(self, connection: socket.socket) -> Call:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split()[0])
        parts, have = [body], len(body)
        while have < size:
            parts.append(connection.recv(1 << 20))
            have += len(parts[-1])
        call = parse_call(b"".join(parts), Peer(0, 0))
        assert head.startswith(f"POST /x/{call.program} HTTP/1.0".encode())
        self.calls.append(call)
        self.heads.append(head)
        return call
