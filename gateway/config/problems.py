"""What is wrong with a configuration: the setting, its value, why, and the way out."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from broker.model.errors import Refused

MOST_SHOWN = 80
UNFIT = {
    "missing": "missing",
    "string_type": "not a text",
    "int_type": "not a whole number",
    "int_parsing": "not a whole number",
    "int_from_float": "not a whole number",
    "bool_type": "neither true nor false",
    "bool_parsing": "neither true nor false",
    "tuple_type": "not a list",
}
"""What a value is not, by pydantic's name of the error."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend; `value` is as written, empty where nothing is."""

    path: str
    value: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        parts = filter(None, [self.path, self.value, self.message])
        return ": ".join(parts) + (f" ({self.hint})" if self.hint else "")


class ConfigError(Refused):
    """The configuration cannot be used; `problems` lists all that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def shown(value: object) -> str:
    """A value as the user wrote it, cut where it is long; what a terminal would obey is quoted."""
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."


def near(word: str, known: Sequence[str]) -> str:
    """The way out for a word that is none of the known ones."""
    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if found:
        return f"did you mean {lower[found[0]]}?"
    return f"one of: {', '.join(known)}" if known else "none is declared"
