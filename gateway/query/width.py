"""How wide tables may get: a width comes from any user, and the service has to hold the answer."""

from collections.abc import Sequence

from broker.model.errors import Refused

WIDEST = 10_000
"""Characters of a column; more is taken as this."""
MOST_COLUMNS = 500
MOST_TEXT = 100_000_000
"""Characters of the columns of all rows together."""


def width_of(digits: str) -> int:
    """The number in a format, at most `WIDEST`; 0 where there is none."""
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return min(int(digits[:20]), WIDEST)


def must_fit(widths: Sequence[int], rows: int = 1) -> None:
    """Raises Refused if a table of so many rows is more than the service makes at once."""
    if len(widths) > MOST_COLUMNS:
        raise Refused(f"{len(widths)} columns, at most {MOST_COLUMNS} are shown")
    total = sum(map(abs, widths)) * rows
    if total > MOST_TEXT:
        raise Refused(
            f"{rows} rows of these widths are {total} characters, at most {MOST_TEXT} are written",
            hint="ask for narrower columns or for fewer rows",
        )
