"""Objects as one side of a synchronised folder: what `carry.py` does with files, done with them."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from broker.stage.objects import Objects, Stored
from broker.stage.pieces import read, written
from broker.stage.sides import HereError, Where

SECOND = 10**9
MODE = 0o644
IN_MEMORY = 32 << 20
"""Bytes of a file on its way."""


@dataclass(slots=True)
class BucketSide:
    """One key, or all below it, under a name in the folder. Objects have no modes and no links."""

    objects: Objects
    key: str
    name: str
    """Of the folder's entry; empty: what is below the key is what the folder holds."""
    put: list[Stored] = field(default_factory=list)
    """What was written."""
    _growing: dict[str, BinaryIO] = field(default_factory=dict)
    """Files that come in several pieces."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        """Raises HereError for a verb that objects do not know, as `Side.carry` else."""
        if verb not in VERBS:
            raise HereError(f"{self.key}: objects cannot {verb}")
        return VERBS[verb](self, asked)

    def words(self, verb: str, where: Where) -> None:
        return None

    def failure(self, where: Where, said: bytes) -> Exception:
        return HereError(said.decode("utf-8", "replace"))

    def list(self, _asked: bytes) -> bytes:
        rows: dict[str, list[Any]] = {"": [0, 0]}
        for path, stored in self._found():
            rows[path] = ["f", stored.size, stored.at * SECOND, MODE, None]
        return zlib.compress(json.dumps({"lines": [], "rows": rows}).encode("ascii"))

    def sizes(self, asked: bytes) -> bytes:
        """Nothing is half there."""
        return json.dumps(dict.fromkeys(json.loads(asked))).encode("ascii")

    def digest(self, asked: bytes) -> bytes:
        heads = {path: self.objects.head(self._key(path)) for path in json.loads(asked)}
        told = {path: head.sha256 if head else None for path, head in heads.items()}
        return json.dumps(told).encode("ascii")

    def pack(self, asked: bytes) -> bytes:
        pieces = ((head, self._piece(head)) for head in json.loads(asked))
        return written((head, data) for head, data in pieces if data is not None)

    def unpack(self, stream: bytes) -> bytes:
        told = {head["path"]: self._take(head, data) for head, data in read(stream)}
        return json.dumps(told).encode("ascii")

    # --- objects

    def _found(self) -> Iterator[tuple[str, Stored]]:
        whole = self.objects.head(self.key) if self.key and not self.key.endswith("/") else None
        if whole is not None and self.name:
            yield self.name, whole
            return
        below = f"{self.key.rstrip('/')}/" if self.key else ""
        for one in self.objects.found(below):
            if not one.key.endswith("/"):  # what consoles make to show a folder
                path = one.key.removeprefix(below)
                yield f"{self.name}/{path}" if self.name else path, one

    def _key(self, path: str) -> str:
        """Of a path in the folder."""
        inside = path.removeprefix(self.name).removeprefix("/") if self.name else path
        if not inside and (not self.key or self.key.endswith("/")):
            inside = self.name  # one file into a folder keeps its name
        return "/".join(filter(None, (self.key.rstrip("/"), inside)))

    def _piece(self, head: dict[str, Any]) -> bytes | None:
        """None for an object that is not what it was when it was listed."""
        if head["same"]:
            return b""
        if head["offset"] == 0:
            now = self.objects.head(self._key(head["path"]))
            if now is None or [now.size, now.at * SECOND] != [head["size"], head["mtime"]]:
                return None
        key, length = self._key(head["path"]), head["length"]
        data = self.objects.read(key, offset=head["offset"], length=length)
        return data if len(data) == length else None

    def _take(self, head: dict[str, Any], data: bytes) -> str:
        """A whole file becomes an object, in place of one that is there; folders need none."""
        if head["kind"] != "f":
            return "error: objects cannot be links" if head["kind"] == "l" else "done"
        if not _is_text(head["path"]):
            return "error: a key is UTF-8, which this name is not"
        file = self._growing.get(head["path"])
        if file is None or head["offset"] == 0:
            file = self._growing[head["path"]] = _scratch()
        file.seek(head["offset"])
        file.write(data)
        if head["offset"] + len(data) < head["size"]:
            return "part"
        with self._growing.pop(head["path"]) as whole:
            self.put.append(self.objects.put(self._key(head["path"]), whole))
        return "done"


def _is_text(name: str) -> bool:
    """Whether all of its bytes were UTF-8: those that were not are surrogates."""
    return not any("\ud800" <= one <= "\udfff" for one in name)


def _scratch() -> BinaryIO:
    """On disk once it is large; gone when it is closed."""
    return cast(BinaryIO, SpooledTemporaryFile(max_size=IN_MEMORY))  # `_take` does


VERBS: dict[str, Callable[[BucketSide, bytes], bytes]] = {
    "list": BucketSide.list,
    "arrive": BucketSide.list,
    "sizes": BucketSide.sizes,
    "digest": BucketSide.digest,
    "pack": BucketSide.pack,
    "unpack": BucketSide.unpack,
}
