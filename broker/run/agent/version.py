"""Which agent this is: what it speaks, and the digest of the archive that it runs from."""

import hashlib
import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 1
"""Of what is spoken on the socket and written in the journal; old ones stay understood."""
DIGITS = 16


def digest(data: bytes) -> str:
    """An archive's name for comparing: the first DIGITS of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def told(value: "dict[str, Any]") -> str:
    """The same of what the service told, however its fields are ordered."""
    return digest(json.dumps(value, sort_keys=True).encode("ascii"))


def own() -> str:
    """Digest of this agent's own archive; empty where it does not run from one."""
    try:
        with open(sys.argv[0], "rb") as file:
            return digest(file.read())
    except OSError:
        return ""
