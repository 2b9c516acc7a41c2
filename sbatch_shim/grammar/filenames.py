"""Names of output files: `slurm-%A_%a.out` to a path (25.11's patterns)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

NO_TASK = 2**32 - 2
"""What `%a` is outside an array."""
MOST_WIDTH = 10
NONE = "none"
"""A name that stands for /dev/null, in any case of letters."""

FileJob = namedtuple(
    "FileJob",
    "id array_id task user name node restarts sluid step rank place",
    defaults=("batch", 0, 0),
)
"""What the patterns of a step are filled from; `task` None outside an array, `rank` of a task,
`place` of its node among those of the step."""

DEFAULT = "slurm-%j.out"
DEFAULT_ARRAY = "slurm-%A_%a.out"


def _task(job: FileJob) -> int:
    return NO_TASK if job.task is None else int(job.task)


NUMBERS: dict[str, Callable[[FileJob], int]] = {
    "A": lambda job: job.array_id or job.id,
    "a": _task,
    "b": lambda job: _task(job) % 10,
    "J": lambda job: job.id,
    "j": lambda job: job.id,
    "n": lambda job: job.place,
    "r": lambda job: job.restarts,
    "t": lambda job: job.rank,
}
"""Patterns that a width pads with zeros."""
TEXTS: dict[str, Callable[[FileJob], str]] = {
    "%": lambda _: "%",
    "N": lambda job: job.node,
    "S": lambda job: job.sluid,
    "s": lambda job: job.step,
    "u": lambda job: job.user,
    "x": lambda job: job.name,
}
"""Patterns that take no width."""


def fill(pattern: str, job: FileJob) -> str:
    """The file's name for a step of a job.

    A backslash anywhere turns patterns off and drops out; an unknown letter stays as it is.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    parts, place = [], 0
    while place < len(pattern):
        text, place = _next(pattern, place, job)
        parts.append(text)
    return "".join(parts)


def _next(pattern: str, place: int, job: FileJob) -> tuple[str, int]:
    if pattern[place] != "%":
        end = pattern.find("%", place)
        end = len(pattern) if end < 0 else end
        return pattern[place:end], end
    end = place + 1
    while pattern[end : end + 1].isdigit():
        end += 1
    width, letter = pattern[place + 1 : end], pattern[end : end + 1]
    return _filled(width, letter, job), end + 1


def _filled(width: str, letter: str, job: FileJob) -> str:
    if letter == "J" and job.step != "batch":
        return f"{job.id}.{job.step}"
    if letter in NUMBERS and letter:
        return f"{NUMBERS[letter](job):0{min(int(width or 1), MOST_WIDTH)}d}"
    if letter in TEXTS and letter:
        return TEXTS[letter](job)
    return f"%{width}{letter}"


def absolute(name: str, cwd: str) -> str:
    """The name below the working directory unless it is absolute; `none` is /dev/null."""
    if name.lower() == NONE:
        return "/dev/null"
    return name if name.startswith("/") else f"{cwd.rstrip('/')}/{name}"


def default_pattern(is_array: bool) -> str:
    """Where text goes when no name was given."""
    return DEFAULT_ARRAY if is_array else DEFAULT
