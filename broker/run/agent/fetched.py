"""How much of the journal the service has for good: it takes no end before results are fetched."""

import json

from . import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "fetched"
ENDS = ("exited", "gone")


def note(request: "dict[str, Any]") -> "dict[str, Any]":
    """Up to where the service says that it stands, if it does."""
    position = request.get("fetched")
    if position is not None and int(position) > known():
        journal.save(FILE, {"position": int(position)})
    return {"ok": True}


def known() -> int:
    """Bytes of the journal."""
    return int((journal.load(FILE) or {}).get("position", 0))


def owed() -> bool:
    """Whether something ended here whose results the service does not have."""
    try:
        with open("journal", "rb") as file:
            file.seek(known())
            lines = file.read().splitlines()
    except OSError:
        return False
    return any(_kind(line) in ENDS for line in lines)


def _kind(line: bytes) -> str:
    try:
        return str(json.loads(line.decode("ascii"))["kind"])
    except (ValueError, KeyError, TypeError):
        return ""  # half a line
