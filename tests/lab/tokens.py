"""Client tokens: what was asked with each, and what was answered."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.lab.faults import Fault

Key = tuple[str, str, str]
"""Region, action, token."""


def fingerprint(params: Mapping[str, Any]) -> str:
    """Of everything asked but the token itself."""
    rest = {name: value for name, value in params.items() if name != "ClientToken"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(slots=True)
class Tokens:
    _known: dict[Key, tuple[str, Any]] = field(default_factory=dict)

    def recall(self, key: Key, asked: str) -> Any:
        """What that token was answered with; None if it is new. Raises Fault on other arguments."""
        if not key[2] or key not in self._known:
            return None
        before, answer = self._known[key]
        if before != asked:
            raise Fault("IdempotentParameterMismatch")
        return answer

    def remember(self, key: Key, asked: str, answer: Any) -> None:
        if key[2]:
            self._known[key] = (asked, answer)
