"""The connection of srun, salloc and sattach: frames over HTTP's chunks, in both directions."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

HEAD = b"POST /i/%b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n%b\r\n"


class Line:
    """A connection: what waits to be sent, and the frames that have come whole."""

    def __init__(self, socket: "Any", command: "Any", shim: "ModuleType") -> None:
        self.socket = socket
        self.shim = shim
        self.unsent = HEAD % (command.program, command.bearer)
        self.received = b""
        self.body = b""
        self.begun = False
        socket.setblocking(False)

    def say(self, kind: bytes, payload: bytes) -> None:
        """Queues a frame as one of HTTP's chunks."""
        frame = kind + len(payload).to_bytes(4, "big") + payload
        self.unsent += b"%x\r\n%b\r\n" % (len(frame), frame)

    def send(self) -> None:
        """As much as the kernel takes. A service that answers before it has all is listened to."""
        try:
            taken = self.socket.send(self.unsent, self.shim.NO_SIGNAL)
        except BlockingIOError:
            return
        except OSError:
            taken = len(self.unsent)
        self.unsent = self.unsent[taken:]

    def hear(self) -> "list[tuple[bytes, bytes]]":
        """The frames that are whole. Raises ContactError at the end, RefusalError for a refusal."""
        try:
            data = self.socket.recv(262144)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            raise self.shim.ContactError
        self.received += data
        if not self.begun:
            self.begin()
        while self.begun and self.chunk():
            pass
        return self.frames()

    def begin(self) -> None:
        head, end, rest = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        status = head[9:12]
        if status == b"503":
            raise self.shim.ContactError
        if status != b"200":
            raise self.shim.RefusalError(rest.strip() or b"the service answered " + status)
        self.received, self.begun = rest, True

    def chunk(self) -> bool:
        """Moves one whole chunk to the body; whether there was one."""
        line, end, rest = self.received.partition(b"\r\n")
        size = int(line, 16) if end else 0
        if not end or len(rest) < size + 2:
            return False
        if size == 0:
            self.begun = False
            return False
        self.body += rest[:size]
        self.received = rest[size + 2 :]
        return True

    def frames(self) -> "list[tuple[bytes, bytes]]":
        found, place = [], 0
        while len(self.body) >= place + 5:
            end = place + 5 + int.from_bytes(self.body[place + 1 : place + 5], "big")
            if len(self.body) < end:
                break
            found.append((self.body[place : place + 1], self.body[place + 5 : end]))
            place = end
        self.body = self.body[place:]
        return found
