"""What of a folder stays at home: `.spzignore`, in the words of `.gitignore`."""

from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from broker.stage.plan import Entry, Manifest

FILE = ".spzignore"


class Ignored:
    """Patterns of one folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = [line for line in lines if line.strip()]
        self._spec = GitIgnoreSpec.from_lines(self._lines)

    def prune(self) -> list[str]:
        """Names of folders that need not even be looked into, wherever they are."""
        if any(line.startswith("!") for line in self._lines):
            return []
        plain = (line.rstrip("/") for line in self._lines if line.endswith("/"))
        return [name for name in plain if name and not set(name) & set("/*?[\\#! ")]

    def kept(self, found: Manifest) -> dict[str, Entry]:
        """What is left."""
        if not self._lines:
            return dict(found)
        return {path: entry for path, entry in found.items() if not self._has(path, entry)}

    def _has(self, path: str, entry: Entry) -> bool:
        return self._spec.match_file(f"{path}/" if entry.kind == "d" else path)
