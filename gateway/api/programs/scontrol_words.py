"""Words of scontrol: KEY=VALUE taken apart, and what is cut short."""

from dataclasses import dataclass


class BadValue(Exception):
    """Ends the command: what is printed."""


class Refusal(Exception):
    """What the controller says of one of the jobs."""


@dataclass(frozen=True, slots=True)
class Word:
    """One KEY=VALUE; `sign` is that of `KEY+=VALUE`, `KEY-=VALUE`."""

    key: str
    value: str | None
    sign: str
    text: str

    def names(self, name: str, least: int) -> bool:
        """Whether its key is that name, or enough of its letters."""
        return is_short_for(self.key, name, least)


def is_short_for(word: str, name: str, least: int) -> bool:
    """Whether a word of so many letters or more begins the name, in any case."""
    return len(word) >= least and name.startswith(word.lower())


def read_word(text: str) -> Word:
    """A word taken apart; value None where there is no `=`."""
    key, equals, value = text.partition("=")
    sign = key[-1:] if equals and key[-1:] in ("+", "-") else ""
    return Word(key.removesuffix(sign).lower(), value if equals else None, sign, text)
