"""Bytes under keys, wherever they lie: what checkpoints and buckets of tasks stand on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO, Protocol

PART = 8 << 20
"""Bytes of an upload that go together: an interrupted one goes on behind the last of these."""
READ_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """One object as it is told."""

    key: str
    size: int
    at: int
    """When it was written; whole seconds UTC."""
    sha256: str | None = None
    """As `put` was given it; None where a listing does not say it, or somebody else wrote it."""


class Objects(Protocol):
    """One bucket, or one folder in its place. May be called from several threads, and block.

    Every call may be repeated. Raises OSError where no answer comes, Refused for a definite no.
    """

    def head(self, key: str) -> Stored | None:
        """None where there is none."""
        ...

    def found(self, prefix: str = "") -> Iterator[Stored]:
        """All whose keys begin so, by key."""
        ...

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Less than asked for only at the end. Raises FileNotFoundError where there is none."""
        ...

    def put(self, key: str, source: BinaryIO, *, digest: str | None = None) -> Stored:
        """The object is whole or not there; `digest` is the SHA-256 of `source`, kept with it.

        A long source goes in parts of PART bytes; what an interrupted call has brought is not sent
        again. An object that has this size and digest already is left as it is.
        """
        ...

    def drop(self, keys: Iterable[str]) -> None:
        """Those that are not there count as dropped."""
        ...


def digest_of(source: BinaryIO) -> str:
    """SHA-256 of all of it, read from its begin; it stands at its begin afterwards."""
    found = sha256()
    source.seek(0)
    for piece in iter(lambda: source.read(READ_AT_ONCE), b""):
        found.update(piece)
    source.seek(0)
    return found.hexdigest()


def size_of(source: BinaryIO) -> int:
    """Bytes; it stands at its begin afterwards."""
    size = source.seek(0, 2)
    source.seek(0)
    return size
