"""What pages are made of: tables, facts, texts, pictures, forms, notes; plain values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from gateway.query.listed import Listed
from sbatch_shim.grammar.values import read_digits

R = TypeVar("R")
PAGE_ROWS = 100
TONES = {
    **dict.fromkeys(("RUNNING", "UP", "ALLOCATED", "MIXED", "COMPLETING", "IN_USE"), "busy"),
    **dict.fromkeys(("COMPLETED", "SUCCEEDED", "IDLE", "READY", "OK"), "good"),
    **dict.fromkeys(("PENDING", "CONFIGURING", "INIT", "STARTING", "WARN", "CREATING"), "wait"),
    **dict.fromkeys(("RECOVERING", "SUSPENDED", "STOPPED", "STOPPING", "PLANNED"), "wait"),
    **dict.fromkeys(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED"), "bad"),
    **dict.fromkeys(("FAILED_SETUP", "DOWN", "DRAINED", "DRAINING", "FULL"), "bad"),
}
"""How states are coloured beside being told in words; others are not."""
STATE_HEADS = frozenset({"STATE", "STATUS", "STANDING"})
WORD = re.compile(r"[A-Z_]+")
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Cell(NamedTuple):
    """A text, where it leads (below the user's folder), and its tone."""

    text: str
    href: str = ""
    tone: str = ""


class Head(NamedTuple):
    """A heading, and the page that is sorted by it; none: the browser may sort."""

    text: str
    href: str = ""
    sorted: str = ""
    """`ascending` or `descending`, as WAI-ARIA says it."""


@dataclass(frozen=True, slots=True)
class Table:
    template: ClassVar[str] = "table"
    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    empty: str
    pager: "Pager | None" = None


@dataclass(frozen=True, slots=True)
class Pager:
    """Which rows are shown, and the pages before and after."""

    first: int
    last: int
    all: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Facts:
    template: ClassVar[str] = "facts"
    title: str
    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True)
class Text:
    template: ClassVar[str] = "text"
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    template: ClassVar[str] = "picture"
    title: str
    svg: str
    """Made here, every text in it escaped."""


class Choice(NamedTuple):
    value: str
    text: str


class Entry(NamedTuple):
    """A field of a form; with choices one of them."""

    name: str
    label: str
    value: str
    choices: Sequence[Choice] = ()


@dataclass(frozen=True, slots=True)
class Form:
    template: ClassVar[str] = "form"
    title: str
    action: str
    entries: Sequence[Entry]
    button: str = "Show"


@dataclass(frozen=True, slots=True)
class Notes:
    template: ClassVar[str] = "notes"
    lines: Sequence[str]
    tone: str


Block = Table | Facts | Text | Picture | Form | Notes


def plain(value: object) -> str:
    """As a cell shows it; what is not known is a dash."""
    return "-" if value is None or value == "" else CONTROLS.sub("", str(value))


def state(text: object) -> Cell:
    """With the tone of its first word."""
    word = WORD.match(str(text or "").upper())
    return Cell(plain(text), tone=TONES.get(word[0], "") if word else "")


def cell(head: str, value: object) -> Cell:
    return state(value) if head in STATE_HEADS else Cell(plain(value))


def table(
    title: str,
    made: Listed,
    *,
    empty: str,
    links: Sequence[str] = (),
    query: Mapping[str, str] | None = None,
) -> Table:
    """`links` are where the first cells of rows lead; `query` says which page is shown."""
    lines = [*zip(made.rows, links or repeat("", len(made.rows)), strict=True)]
    shown, pager = paged(lines, query or {})
    rows = [_linked_row(made.head, row, href) for row, href in shown]
    return Table(title, [Head(text) for text in made.head], rows, empty, pager)


def _linked_row(head: Sequence[str], row: Sequence[object], href: str) -> list[Cell]:
    cells = list(map(cell, head, row))
    cells[0] = cells[0]._replace(href=href)
    return cells


def paged(rows: Sequence[R], query: Mapping[str, str]) -> tuple[Sequence[R], Pager | None]:
    """The rows of the page that is asked for, and the way to others where there are some."""
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    asked = query.get("page", "1")
    page = min(max(1, read_digits(asked) or 1), pages)
    if pages == 1:
        return rows, None
    first = (page - 1) * PAGE_ROWS
    shown = rows[first : first + PAGE_ROWS]
    before = linked(query, page=page - 1) if page > 1 else ""
    after = linked(query, page=page + 1) if page < pages else ""
    return shown, Pager(first + 1, first + len(shown), len(rows), before, after)


def linked(query: Mapping[str, str], **changed: object) -> str:
    """The same page with other words behind it; empty ones are left out."""
    words = {**query, **{name: str(value) for name, value in changed.items()}}
    return "?" + urlencode({name: value for name, value in words.items() if value})


def below(*parts: object) -> str:
    """A path below the user's folder."""
    return "/".join(quote(str(part), safe="", errors="replace") for part in parts)


def readable(data: bytes) -> str:
    """A log for a page: no control characters, of a line that was overwritten what came last."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return CONTROLS.sub("", "\n".join(lines))


def text(title: str, shown: str) -> Text:
    """Without what would move a terminal's cursor."""
    return Text(title, CONTROLS.sub("", shown.strip("\n")))


def notes(lines: Iterable[str | None], tone: str = "wait") -> Sequence[Notes]:
    """One block of them, or none where there are none."""
    told = [plain(line) for line in lines if line]
    return [Notes(told, tone)] if told else []


def facts(title: str, pairs: Iterable[tuple[str, object]]) -> Facts:
    """Those that are known."""
    told = ((name, value) for name, value in pairs if value not in (None, ""))
    return Facts(title, [(name, _fact(name, value)) for name, value in told])


def _fact(name: str, value: object) -> Cell:
    return value if isinstance(value, Cell) else cell(name.upper(), value)
