"""Objects in a folder of this host: the gateway's own disk in a bucket's place."""

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote

from broker.stage.objects import READ_AT_ONCE, Stored, size_of

DRAFT = ".draft"
HASH = ".sha256"
"""Suffixes that no key has: each dot of a key's last part is written otherwise."""


@dataclass(frozen=True, slots=True)
class Disk:
    """`Objects` below a folder, which is made when it is needed."""

    home: Path

    def head(self, key: str) -> Stored | None:
        return self._stored(self._file(key), key)

    def found(self, prefix: str = "") -> Iterator[Stored]:
        keys = sorted(key for key in self._keys() if key.startswith(prefix))
        return (found for found in map(self.head, keys) if found is not None)

    def _keys(self) -> Iterator[str]:
        for folder, _, names in os.walk(self.home):
            below = Path(folder).relative_to(self.home).as_posix()
            start = "" if below == "." else f"{below}/"
            yield from (start + unquote(n) for n in names if not n.endswith((DRAFT, HASH)))

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if self.head(key) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
        with self._file(key).open("rb") as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def put(self, key: str, source: BinaryIO, *, digest: str | None = None) -> Stored:
        """Raises OSError also where what is read is not what `digest` says."""
        size, there = size_of(source), self.head(key)
        if there is not None and digest and (there.size, there.sha256) == (size, digest):
            return there
        file = self._file(key)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(file.name + DRAFT)
        found = _written(source, draft)
        if found != (digest or found):
            draft.unlink()
            raise OSError(f"{key}: its content is not what it was said to be")
        file.with_name(file.name + HASH).write_text(json.dumps([size, found]), encoding="ascii")
        draft.replace(file)
        return Stored(key, size, int(file.stat().st_mtime), found)

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            file = self._file(key)
            for one in (file, file.with_name(file.name + HASH)):
                with suppress(FileNotFoundError):
                    one.unlink()

    def _stored(self, file: Path, key: str) -> Stored | None:
        try:
            found = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None  # other keys go on from here
        try:
            size, digest = json.loads(file.with_name(file.name + HASH).read_bytes())
        except (OSError, ValueError):
            size, digest = -1, None
        return Stored(
            key, found.st_size, int(found.st_mtime), digest if size == found.st_size else None
        )

    def _file(self, key: str) -> Path:
        """Raises ValueError for a key that leads out of the folder."""
        folder, slash, name = key.rpartition("/")
        if not name or any(part in {"", ".", ".."} for part in folder.split("/") if slash):
            raise ValueError(f"{key!r} is no key")
        return self.home / folder / quote(name, safe=" ").replace(".", "%2E")


def _written(source: BinaryIO, draft: Path) -> str:
    """Its SHA-256; on disk when this returns."""
    found = sha256()
    with draft.open("wb") as file:
        for piece in iter(lambda: source.read(READ_AT_ONCE), b""):
            found.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return found.hexdigest()
