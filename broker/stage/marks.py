"""What both sides of a folder had when they were last alike, and whose outputs were begun."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from broker.model import octets
from broker.stage.plan import Entry, Mark


class Marks:
    """By node and folder; lost ones cost a comparison of contents, never a file."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def load(self, node: str, folder: str) -> dict[str, Mark]:
        """Empty where nothing is known."""
        try:
            doc = json.loads(self._file(node, folder).read_bytes())
        except (OSError, ValueError):
            return {}
        return {
            path: Mark(Entry(*here), Entry(*there), *kept)
            for path, (here, there, *kept) in doc.items()
        }

    def save(self, node: str, folder: str, marks: Mapping[str, Mark]) -> None:
        """Whole or not at all. Raises OSError."""
        _put(self._file(node, folder), marks)

    def begun(self, node: str) -> frozenset[str]:
        """Attempts whose outputs were begun there."""
        try:
            return frozenset(json.loads(self._begun(node).read_bytes()))
        except (OSError, ValueError):
            return frozenset()

    def begin(self, node: str, attempts: Iterable[str]) -> None:
        """From now on these. Raises OSError."""
        _put(self._begun(node), sorted(attempts))

    def forget(self, node: str) -> None:
        """A node that is gone has no folder any more."""
        with suppress(OSError):
            for file in (self._home / node).iterdir():
                file.unlink()
            (self._home / node).rmdir()

    def _file(self, node: str, folder: str) -> Path:
        name = sha256(octets.raw(folder)).hexdigest()[:32]
        return self._home / node / f"{name}.json"

    def _begun(self, node: str) -> Path:
        return self._home / node / "begun.json"


def _put(file: Path, value: object) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(value), encoding="ascii")
    draft.replace(file)
