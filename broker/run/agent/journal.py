"""The agent's journal: lines of JSON, only ever added to; the truth about this node's steps."""

import json
import os

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Journal:
    """What was written survives any kill; what was half written is cut off at the next start."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.size = 0
        self.seq = 0
        self.kinds = {}  # type: dict[str, set[str]]
        self.gone = set()  # type: set[str]
        self._load()

    def _load(self) -> None:
        data = _whole(self.fd)
        self.size = data.rfind(b"\n") + 1
        if self.size < len(data):
            os.ftruncate(self.fd, self.size)
            os.fsync(self.fd)
        for line in data[: self.size].splitlines():
            self._remember(json.loads(line.decode("ascii")))

    def _remember(self, record: "dict[str, Any]") -> None:
        self.seq = record["seq"]
        if record["kind"] == "gone":
            self.gone.add(record["attempt"])
        elif "key" in record:
            self.kinds.setdefault(record["key"], set()).add(record["kind"])

    def says(self, key: str, kind: str) -> bool:
        """Whether a record of this kind about this step stands."""
        return kind in self.kinds.get(key, ())

    def append(self, records: "list[dict[str, Any]]") -> None:
        """All records in one write, durable on return; none stands if it raises OSError."""
        numbered = [dict(record, seq=self.seq + n) for n, record in enumerate(records, 1)]
        data = b"".join(wire.encode(record) for record in numbered)
        try:
            _write_all(self.fd, data)
            os.fsync(self.fd)
        except OSError:
            os.ftruncate(self.fd, self.size)
            raise
        self.size += len(data)
        for record in numbered:
            self._remember(record)


def _write_all(fd: int, data: bytes) -> None:
    """As one write, so that a reader sees whole lines only; a full disk may cut it short."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, data[done:])


def _whole(fd: int) -> bytes:
    parts = []  # type: list[bytes]
    while True:
        part = os.read(fd, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def save(path: str, value: "dict[str, Any]", durable: bool = False) -> None:
    """Replaces the file at once and as a whole; `durable` also against loss of power."""
    draft = path + ".new"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(fd, wire.encode(value))
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(draft, path)
    if durable:
        sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Makes names in a folder durable."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def load(path: str) -> "Optional[dict[str, Any]]":
    """What `save` left there; None if there is no such file or it is not whole."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read().decode("ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None
