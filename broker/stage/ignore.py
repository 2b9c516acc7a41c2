"""What of a folder stays at home: the patterns of a file in it, in the words of `.gitignore`."""

from collections.abc import Iterable

from pathspec import GitIgnoreSpec

from broker.stage.plan import Entry, Manifest

FILE = ".spzignore"
OF_JOBS = (FILE,)
OF_TASKS = (FILE, ".skyignore", ".gitignore")
"""Of task files, as SkyPilot has it; what a batch job makes is often what git ignores."""


class Ignored:
    """Patterns of one folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        self._spec = GitIgnoreSpec.from_lines(self.lines)

    def kept(self, found: Manifest) -> dict[str, Entry]:
        """What is left."""
        if not self.lines:
            return dict(found)
        return {path: entry for path, entry in found.items() if not self._has(path, entry)}

    def _has(self, path: str, entry: Entry) -> bool:
        return self._spec.match_file(f"{path}/" if entry.kind == "d" else path)
