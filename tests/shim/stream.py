"""The service's side of an interactive command, played by the test itself frame by frame."""

import socket
from pathlib import Path

from gateway.api.wire import Call, Peer, frame, parse_call

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
PATIENCE = 10.0


class Conversation:
    """One connection of a command."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.settimeout(PATIENCE)
        self.file = connection.makefile("rb")
        self.head = b""
        while not self.head.endswith(b"\r\n\r\n"):
            self.head += self.file.readline()
        self.begun = False

    def hear(self) -> tuple[bytes, bytes]:
        """The next frame; the command sends each as a chunk of its own."""
        size = int(self.file.readline(), 16)
        data = self.file.read(size + 2)[:-2]
        assert len(data) == 5 + int.from_bytes(data[1:5], "big")
        return data[:1], data[5:]

    def greeted(self) -> tuple[Call, bytes]:
        """The request, and how the command says it comes."""
        kind, body = self.hear()
        assert kind == b"E"
        kind, hello = self.hear()
        assert kind == b"h"
        return parse_call(body, Peer(0, 0)), hello

    def say(self, kind: bytes, payload: bytes = b"") -> None:
        data = frame(kind, payload)
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        self.connection.sendall(chunk if self.begun else HEAD + chunk)
        self.begun = True

    def close(self) -> None:
        self.file.close()
        self.connection.close()


class StreamService:
    """Listens where the commands look for their service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open: list[Conversation] = []

    def __enter__(self) -> "StreamService":
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.open:
            one.close()
        self.listener.close()
        self.path.unlink()

    def accept(self) -> Conversation:
        self.open.append(Conversation(self.listener.accept()[0]))
        return self.open[-1]
