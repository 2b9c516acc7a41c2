"""What both sides of a folder had when they were last alike, kept over restarts."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

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
        return {path: Mark(Entry(*here), Entry(*there)) for path, (here, there) in doc.items()}

    def save(self, node: str, folder: str, marks: Mapping[str, Mark]) -> None:
        """Whole or not at all. Raises OSError."""
        file = self._file(node, folder)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(marks), encoding="ascii")
        draft.replace(file)

    def forget(self, node: str) -> None:
        """A node that is gone has no folder any more."""
        with suppress(OSError):
            for file in (self._home / node).iterdir():
                file.unlink()
            (self._home / node).rmdir()

    def _file(self, node: str, folder: str) -> Path:
        name = sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._home / node / f"{name}.json"
