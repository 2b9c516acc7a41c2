"""Where a task's program is found."""

import os
from pathlib import Path

import pytest

from broker.run.agent.child import locate

PLACES = [
    ("one that may be run", "a:b", {"a/x": 0o755}, "a/x"),
    ("the first of two", "a:b", {"a/x": 0o755, "b/x": 0o755}, "a/x"),
    ("the one of two that may be run", "a:b", {"a/x": 0o644, "b/x": 0o755}, "b/x"),
    ("one that may not, where there is no other", "a:b", {"b/x": 0o644}, "b/x"),
    ("none", "a:b", {}, "x"),
    ("no PATH", None, {"a/x": 0o755}, "x"),
    ("a name with a folder is left as it is", "a", {"a/x": 0o755}, "./x"),
]


@pytest.mark.parametrize(("what", "path", "files", "found"), PLACES)
def test_a_program_is_looked_for_in_the_folders_of_path(
    tmp_path: Path, what: str, path: str | None, files: dict[str, int], found: str
) -> None:
    for name, mode in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    folders = [os.fsencode(tmp_path / one) for one in (path or "").split(":")]
    environment = {} if path is None else {b"PATH": b":".join(folders)}
    typed = found if found == "./x" else "x"
    place = found if found in ("x", "./x") else str(tmp_path / found)
    assert locate(os.fsencode(typed), environment) == os.fsencode(place), what
