"""The record of one checkpoint: which files it has, and where their bytes lie. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from broker.stage.plan import Entry

SCHEMA = 1


class CorruptError(Exception):
    """A checkpoint that is not what was written."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One path of a checkpoint."""

    entry: Entry
    parts: tuple[str, ...] = ()
    """Of a file: SHA-256 of each of its parts, which is the part's name in the store."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A whole checkpoint; it counts once this record is written, which comes last."""

    number: int
    """Counts up from 1 over all attempts."""
    attempt: int
    at: int
    """When it was whole; whole seconds UTC."""
    folder: str
    files: Mapping[str, Kept]
    """By path below the folder; folders before what they hold."""

    @property
    def size(self) -> int:
        return sum(kept.entry.size for kept in self.files.values())

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(part for kept in self.files.values() for part in kept.parts)

    def text(self) -> bytes:
        """As it is stored, with a digest of itself."""
        rows = [[path, list(kept.entry), list(kept.parts)] for path, kept in self.files.items()]
        doc = {
            "schema": SCHEMA,
            "number": self.number,
            "attempt": self.attempt,
            "at": self.at,
            "folder": self.folder,
            "files": rows,
        }
        return json.dumps({**doc, "sha256": _digest(doc)}).encode("ascii")


def saved(text: bytes) -> Saved:
    """The record of a text. Raises CorruptError where it is not whole."""
    try:
        doc = json.loads(text)
        digest = doc.pop("sha256")
        if doc["schema"] != SCHEMA or digest != _digest(doc):
            raise CorruptError("its record is not what was written")
        files = {path: Kept(Entry(*entry), tuple(parts)) for path, entry, parts in doc["files"]}
        return Saved(doc["number"], doc["attempt"], doc["at"], doc["folder"], files)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptError(f"its record cannot be read: {error}") from error


def _digest(doc: Mapping[str, object]) -> str:
    return sha256(json.dumps(doc, sort_keys=True).encode("ascii")).hexdigest()
