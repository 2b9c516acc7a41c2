"""Job arrays: `0-15:4,20%2` to indexes and back to Slurm's compact text."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

from sbatch_shim.grammar.values import read_digits

ArrayText = namedtuple("ArrayText", "tasks limit step")
"""Indexes, sorted, each once; how many may run at a time (None: any); the step of one range."""

MOST_TASKS = 4_000_001
"""The greatest MaxArraySize."""
BITSTR_LEN = 64
"""Bytes that squeue and scontrol show of a list of indexes, unless SLURM_BITSTR_LEN says more."""


def read_array(text: str, max_size: int, *, most: int = MOST_TASKS) -> ArrayText | None:
    """The elements of an array below `max_size` (MaxArraySize); None if it is no such list.

    As 25.11 does, brackets around all are dropped, `%0` and an unreadable limit mean none, and
    a limit alone (`%2`) is the array 0. A list that names more than `most`, repeats included, is
    none.
    """
    listed, percent, limit_text = text.partition("%")
    if text.startswith("[") and "]" in text:
        listed, limit_text = listed[1:].rstrip("]"), limit_text.rstrip("]")
    if not listed and percent:
        listed = "0"
    tasks: set[int] = set()
    named = 0
    for token in listed.split(","):
        span = _span(token)
        if not span or span[-1] >= max_size:
            return None
        named += len(span)
        if named > most:
            return None
        tasks.update(span)
    return ArrayText(tuple(sorted(tasks)), read_digits(limit_text) or None, _step(listed))


def _span(token: str) -> range | None:
    span, colon, step_text = token.partition(":")
    first, dash, last = span.partition("-")
    low, high = read_digits(first), read_digits(last) if dash else read_digits(first)
    step = read_digits(step_text) if colon else 1
    if low is None or high is None or not step or (colon and not dash):
        return None
    return range(low, high + 1, step)


def _step(listed: str) -> int:
    tokens = listed.split(",")
    return read_digits(tokens[0].partition(":")[2]) or 1 if len(tokens) == 1 else 1


def show_indexes(tasks: Iterable[int]) -> str:
    """Sorted indexes as ranges, `1-3,7`; an even gap over more than ten as `0-12:4`."""
    ordered = sorted(tasks)
    step = ordered[1] - ordered[0] if len(ordered) > 1 else 1
    even = step > 1 and ordered == list(range(ordered[0], ordered[-1] + 1, step))
    if even and ordered[-1] - ordered[0] > 10:
        return f"{ordered[0]}-{ordered[-1]}:{step}"
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in _runs(ordered))


def _runs(ordered: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for task in ordered:
        if runs and runs[-1][1] + 1 == task:
            runs[-1] = (runs[-1][0], task)
        else:
            runs.append((task, task))
    return runs


def show_array(tasks: Iterable[int], limit: int | None, width: int = BITSTR_LEN) -> str:
    """`1-3,7%2` as squeue and scontrol show it, the list cut to `width` bytes with `...`.

    The cut is at the last comma that leaves room for the dots; width 0 means no cut.
    """
    text = show_indexes(tasks)
    if width and len(text) >= width:
        comma = text.rfind(",", 0, max(width - 3, 0))
        text = "..."[: width - 1] if comma < 0 else text[:comma] + ",..."
    return f"{text}%{limit}" if limit else text
