"""Tables as sacctmgr, sshare, sstat and sreport print them: `name%[-]width`, or with delimiters."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from gateway.query.width import must_fit, width_of

R = TypeVar("R")


class UnknownFieldError(ValueError):
    """A column that does not exist."""


@dataclass(frozen=True, slots=True)
class Field(Generic[R]):
    """A column: its name in formats, its headline, its width (negative: to the left), its value."""

    name: str
    header: str
    width: int
    get: Callable[[R], str]
    least: int = 1
    """Letters of the name that are enough."""
    cut: str = "+"
    """What stands at the end of a text that is too long."""

    def padded(self, text: str, mark: str) -> str:
        size = abs(self.width)
        if len(text) > size:
            text = text[: max(size - len(mark), 0)] + mark
        return text.ljust(size) if self.width < 0 else text.rjust(size)


@dataclass(frozen=True, slots=True)
class Style:
    """In columns, or with delimiters (`ended`: one behind the last too)."""

    delimiter: str | None = None
    ended: bool = False
    header: bool = True
    rule: bool = True
    """Whether a line of dashes stands below the headline."""


def fields_of(text: str, known: Sequence[Field[R]]) -> list[Field[R]]:
    """The columns of a format. Raises UnknownFieldError.

    Of a word that stands there twice the latter counts.
    """
    words = {word.lower(): word for word in reversed(text.split(",")) if word}
    return [_field(word, known) for word in reversed(words.values())]


def _field(word: str, known: Sequence[Field[R]]) -> Field[R]:
    name, percent, size = word.partition("%")
    found = find(name, known)
    if not percent:
        return found
    width = width_of(size.removeprefix("-"))
    return replace(found, width=-width if size.startswith("-") else width)


def find(name: str, known: Sequence[Field[R]]) -> Field[R]:
    """The column so called, else the first that begins so. Raises UnknownFieldError."""
    short = name.strip().lower()
    exact = next((one for one in known if one.name.lower() == short), None)
    if exact is not None:
        return exact
    for one in known:
        if short and len(short) >= one.least and one.name.lower().startswith(short):
            return one
    raise UnknownFieldError(name)


def table(fields: Sequence[Field[R]], rows: Iterable[R], style: Style) -> str:
    """The headline and a line for each row. Raises Refused where that is too much."""
    rows = list(rows)
    mark = style.delimiter
    must_fit([one.width if mark is None else len(mark) for one in fields], len(rows))
    if style.delimiter is not None:
        return _delimited(fields, rows, style)
    lines: list[list[str]] = []
    if style.header:
        lines.append([one.padded(one.header, "") for one in fields])
        if style.rule:
            lines.append(["-" * abs(one.width) for one in fields])
    lines += [[one.padded(one.get(row), one.cut) for one in fields] for row in rows]
    return "".join("".join(f"{cell} " for cell in line) + "\n" for line in lines)


def _delimited(fields: Sequence[Field[R]], rows: Iterable[R], style: Style) -> str:
    mark = style.delimiter or ""
    tail = f"{mark if style.ended else ''}\n"
    head = [mark.join(one.header for one in fields) + tail] if style.header else []
    return "".join(head + [mark.join(one.get(row) for one in fields) + tail for row in rows])


def nothing(_: Any) -> str:
    """The value of a column that is always empty here."""
    return ""
