"""Files that go through a bucket: only its signed URLs go over the connection to the node."""

import io
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from broker.stage.objects import Objects
from broker.stage.sides import Side, Where

WAY = "way/"
"""What keys of streams on their way begin with."""
MUCH = 1 << 20
"""Bytes of a stream from which on the detour is worth it."""


class Signing(Objects, Protocol):
    """Objects that somebody without credentials may be let at."""

    def url(self, key: str, *, put: bool) -> str:
        """Good for an hour, to read or to write."""
        ...


@dataclass(frozen=True, slots=True)
class Through:
    """A node's side whose streams go through a bucket."""

    side: Side
    objects: Signing

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        """As the side's own."""
        if verb == "unpack" and len(asked) >= MUCH:
            return self._load(where, asked)
        if verb == "pack" and sum(head["length"] for head in json.loads(asked)) >= MUCH:
            return self._send(where, asked)
        return self.side.carry(verb, where, asked)

    def words(self, verb: str, where: Where) -> None:
        return None

    def failure(self, where: Where, said: bytes) -> Exception:
        return self.side.failure(where, said)

    def _load(self, where: Where, stream: bytes) -> bytes:
        with self._key() as key:
            self.objects.put(key, io.BytesIO(stream))
            asked = {"url": self.objects.url(key, put=False)}
            return self.side.carry("load", where, json.dumps(asked).encode("ascii"))

    def _send(self, where: Where, wanted: bytes) -> bytes:
        with self._key() as key:
            asked = {"url": self.objects.url(key, put=True), "asked": json.loads(wanted)}
            self.side.carry("send", where, json.dumps(asked).encode("ascii"))
            return self.objects.read(key)

    @contextmanager
    def _key(self) -> Iterator[str]:
        key = f"{WAY}{uuid.uuid4().hex}"
        try:
            yield key
        finally:
            self.objects.drop([key])
