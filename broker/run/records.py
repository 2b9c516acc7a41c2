"""A node's journal read: whole lines to records of forms that deciding foresees. Pure.

It comes from a machine that its users' jobs share: what is in it may be anything.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Record = Mapping[str, Any]
MOST = 1 << 63
"""No number in it is as large."""
LONGEST = 200
"""Letters of a text."""
ATTEMPT = re.compile(r"[0-9A-Za-z_+-]{1,40}/[0-9A-Za-z_+-]{1,40}", re.ASCII)
KEY = re.compile(ATTEMPT.pattern + r"/[0-9A-Za-z_+-]{1,40}", re.ASCII)
ENDS = ("rank", "code", "signal")


def records(data: bytes) -> tuple[tuple[Record, ...], int]:
    """The whole lines and how many bytes they take; half a line is left for later.

    Raises ValueError, with the line, for one that no agent writes.
    """
    whole = data[: data.rfind(b"\n") + 1]
    return tuple(map(_record, whole.splitlines())), len(whole)


def _record(line: bytes) -> Record:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise ValueError(f"no line of a journal: {line[:80]!r}")  # noqa: TRY004
    for name, fits in FORMS.items():
        if not fits(value.get(name)):
            raise ValueError(f"no line of a journal, for its {name!r}: {line[:80]!r}")
    return {name: fact for name, fact in value.items() if fact is not None}


def _number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < MOST
    return value is None or (isinstance(value, int) and abs(value) < MOST)


def _text(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= LONGEST)


def _matches(form: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: (
        value is None or (isinstance(value, str) and form.fullmatch(value) is not None)
    )


def _tasks(value: object) -> bool:
    """How each task ended: three numbers."""
    if not isinstance(value, list | None):
        return False
    ends = [one for one in value or () if isinstance(one, dict)]
    given = [one.get(name) for one in ends for name in ENDS]
    numbers = all(one is not None and _number(one) for one in given)
    return len(ends) == len(value or ()) and numbers


FORMS: Mapping[str, Callable[[object], bool]] = {
    "key": _matches(KEY),
    "attempt": _matches(ATTEMPT),
    "tasks": _tasks,
    **dict.fromkeys(("cause", "phase", "when", "action"), _text),
    **dict.fromkeys(("at", "code", "signal", "started", "ended", "gpu_util"), _number),
    **dict.fromkeys(("user_us", "sys_us", "max_rss_kib", "max_size_kib", "read"), _number),
    **dict.fromkeys(("written", "pages", "gpu_util_max", "gpu_mem_mib"), _number),
}
"""What deciding reads of a record; any of it may be missing, and others may be there."""
