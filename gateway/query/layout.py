"""squeue's and sinfo's formats: `%.18i %9P` and `jobid:.20,name` compiled once into a row maker.

A width both pads and cuts, counted in characters; a dot aligns right (Slurm 25.11).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.query.context import Context
from gateway.query.fits import Fit
from gateway.query.width import must_fit, width_of

LONG_WIDTH = 20
"""Width of a column of -O that names none."""

R = TypeVar("R")
Getter = Callable[[R, Context], str]


@dataclass(frozen=True, slots=True)
class Cell(Generic[R]):
    """A column as one command shows it."""

    header: str
    text: Getter[R]
    timed: bool = False
    fit: Fit | None = None
    """How its texts, the header among them, fit a width where that is more than cutting them."""


@dataclass(frozen=True, slots=True)
class Layout(Generic[R]):
    """A compiled format."""

    header: str
    pattern: str
    getters: tuple[Getter[R], ...]
    timed: bool
    """Whether a row may change with time alone."""
    unknown: tuple[str, ...] = ()
    """Columns asked for that do not exist, in order."""
    widths: tuple[int, ...] = ()
    values: tuple[Getter[R], ...] = ()
    """The same columns before they are fitted into their widths."""

    def lines(self, records: Iterable[R], ctx: Context) -> list[str]:
        """A line for each record, without line breaks. Raises Refused where that is too much."""
        rows = list(records)
        must_fit(self.widths, len(rows))
        if not self.getters:
            return [self.pattern % ()] * len(rows)
        columns = [[get(one, ctx) for one in rows] for get in self.getters]
        pattern = self.pattern
        return [pattern % row for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class _Spot(Generic[R]):
    """A column's place in the row, and the text that follows it; without a cell the text alone."""

    cell: Cell[R] | None
    width: int = 0
    right: bool = False
    suffix: str = ""

    def pattern(self) -> str:
        tail = self.suffix.replace("%", "%%")
        if self.cell is None:
            return tail
        if not self.width:
            return f"%s{tail}"
        cut = f".{self.width}" if self.cell.fit is None else ""
        return f"%{'' if self.right else '-'}{self.width}{cut}s{tail}"


@dataclass(frozen=True, slots=True)
class _Fitted(Generic[R]):
    """The getter of a column that is not merely cut; equal to another of its kind."""

    get: Getter[R]
    fit: Fit
    width: int
    right: bool

    def __call__(self, record: R, ctx: Context) -> str:
        text = self.get(record, ctx)
        return text if len(text) <= self.width else self.fit(text, self.width, self.right)


def _shown(spot: _Spot[R], cell: Cell[R]) -> tuple[str, Getter[R]]:
    """The header and the getter of a column where it stands."""
    if not spot.width or cell.fit is None:
        return cell.header, cell.text
    header = cell.fit(cell.header, spot.width, spot.right)
    return header, _Fitted(cell.text, cell.fit, spot.width, spot.right)


Every = tuple[str, ...]
"""What `all` stands for: letters, each with the text that follows it."""


def by_letters(text: str, cells: Mapping[str, Cell[R]], *, every: Every = ()) -> Layout[R]:
    """`%[.][width]letter[text]...`; `%all` stands for `every`."""
    start = text.find("%")
    if start < 0:
        return _layout([_Spot(None, suffix=text)], [])
    tokens = [token for token in text[start:].split("%") if token]
    tokens = [one for token in tokens for one in _spread(token, every)]
    spots: list[_Spot[R]] = [_Spot(None, suffix=text[:start])]
    unknown = []
    for token in tokens:
        width, right, rest = _width(token)
        cell = cells.get(rest[:1])
        if cell is None:
            unknown.append(rest[:1])
            spots.append(_Spot(None, suffix=f"%{token}"))
        else:
            spots.append(_Spot(cell, width, right, rest[1:]))
    return _layout(spots, unknown)


def _spread(token: str, every: Every) -> Every:
    return every if token == "all" and every else (token,)


def _width(text: str) -> tuple[int, bool, str]:
    """Width (0: none), whether to the right, and what follows."""
    right = text.startswith(".")
    body = text[right:]
    rest = body.lstrip("0123456789")
    digits = body[: len(body) - len(rest)]
    return width_of(digits), right, rest


def _long_width(size: str) -> tuple[int, bool, str]:
    """As `_width`, with blanks and a sign before it; one below zero is one blank (22.05)."""
    right = size.startswith(".")
    body = size[right:].lstrip()
    signed = body[:1] in ("+", "-")
    if not body[signed:][:1].isdigit():
        return 0, right, size[right:]
    width, _, suffix = _width(body[signed:])
    return (0, right, f" {suffix}") if width and body[0] == "-" else (width, right, suffix)


def by_names(
    text: str, cells: Mapping[str, Cell[R]], *, every: Sequence[tuple[Cell[R], str]] = ()
) -> Layout[R]:
    """`name[:[.]width[text]]`, separated by commas; names in any case, 20 wide unless said.

    `all` stands for `every`, cells with the text that follows each, and is called unknown as well
    (25.11).
    """
    spots: list[_Spot[R]] = []
    unknown = []
    for token in [token for token in text.split(",") if token]:
        name, colon, size = token.partition(":")
        width, right, suffix = _long_width(size) if colon else (LONG_WIDTH, False, "")
        cell = cells.get(name.lower())
        if cell is None:
            spots += _all(name, every)
            unknown.append(name)
        else:
            spots.append(_Spot(cell, width, right, suffix))
    return _layout(spots, unknown)


def _all(name: str, every: Sequence[tuple[Cell[R], str]]) -> list[_Spot[R]]:
    wanted = every if name.lower() == "all" else ()
    return [_Spot(cell, suffix=suffix) for cell, suffix in wanted]


def _layout(spots: list[_Spot[R]], unknown: list[str]) -> Layout[R]:
    widths = tuple(spot.width + len(spot.suffix) for spot in spots)
    must_fit(widths)
    pattern = "".join(spot.pattern() for spot in spots)
    cells = [spot.cell for spot in spots if spot.cell is not None]
    shown = [_shown(spot, spot.cell) for spot in spots if spot.cell is not None]
    return Layout(
        pattern % tuple(header for header, _ in shown),
        pattern,
        tuple(get for _, get in shown),
        any(cell.timed for cell in cells),
        tuple(unknown),
        widths,
        tuple(cell.text for cell in cells),
    )
