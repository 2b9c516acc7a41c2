"""Which files of tests come first."""

from pathlib import Path

LONG = (
    "lab/test_service.py",
    "kill/test_kill.py",
    "lab/test_files.py",
    "lab/test_nodes.py",
    "lab/test_chaos.py",
    "e2e/test_service.py",
    "e2e/test_agent.py",
    "lab/test_managed.py",
    "e2e/test_spz.py",
    "e2e/test_spz_storage.py",
    "lab/test_operators.py",
    "lab/test_stop.py",
    "lab/test_demo.py",
    "lab/test_rounds.py",
)
"""They take half a minute and more, the longest first: begun last, they would end alone."""


def place(file: Path) -> int:
    """Of a file below `tests`: all that are not long stand alike, behind those that are."""
    name = file.as_posix()
    return LONG.index(name) if name in LONG else len(LONG)
