"""KEY=VALUE words of scontrol, taken apart."""

from dataclasses import dataclass


class BadValue(Exception):
    """Ends the command: what is printed."""


@dataclass(frozen=True, slots=True)
class Word:
    """One KEY=VALUE; `sign` is that of `KEY+=VALUE`, `KEY-=VALUE`."""

    key: str
    value: str | None
    sign: str
    text: str


def read_word(text: str) -> Word:
    """A word taken apart; value None where there is no `=`."""
    key, equals, value = text.partition("=")
    sign = key[-1:] if equals and key[-1:] in ("+", "-") else ""
    return Word(key.removesuffix(sign).lower(), value if equals else None, sign, text)
