"""Points in time of `--begin`, `--deadline`, `-S` and `-E`, read in the caller's time zone.

The clock and the zone are arguments: `now` in seconds UTC, and `offset`, which gives for an
instant how many seconds the zone is ahead of UTC.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

from sbatch_shim.grammar.stopped import CLOCK_WORDS, DAY_WORDS, UNITS, pieces, stopped
from sbatch_shim.grammar.values import DAY, HOUR, MINUTE, read_digits

Zone = Callable[[int], int]

Parts = namedtuple("Parts", "date clock delta")
"""What one word said: a date, seconds of the day, or seconds from now; None for the others."""

Date = namedtuple("Date", "year month day")
"""A date as said; year None if it was left out."""


class InstantError(ValueError):
    """Text that is no point in time; `position` is where reading stopped, as Slurm reports it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.position = stopped(text)

    def complaint(self) -> str:
        """The line that Slurm prints, without a prefix; of blanks it prints none."""
        if not self.text.strip():
            return ""
        return f"Invalid time specification (pos={self.position}): {self.text}\n"


LAST_YEAR = 3000
FURTHEST = 1000 * 366 * DAY
"""Seconds from 1970, or from now: calendars of hosts end somewhere."""


def read_instant(text: str, now: int, *, offset: Zone, past: bool = False) -> int:
    """Seconds UTC of a point in time. Raises InstantError.

    A clock time that is over means tomorrow, unless `past` (sacct looks back).
    """
    if text.startswith("uts"):
        return _number(text[3:], text)
    today = (now + offset(now)) // DAY
    date: Date | None = None
    clock: int | None = None
    for word in pieces(text) or _words(text):
        found = _part(word, text, today=today)
        if found.delta is not None:
            return now + int(found.delta)
        date, clock = found.date or date, clock if found.clock is None else found.clock
    if date is not None:
        return _on_date(date, clock or 0, now=now, offset=offset, past=past)
    if clock is None:
        raise InstantError(text)
    at = to_utc(today * DAY + clock, offset)
    return at if past or at >= now else to_utc((today + 1) * DAY + clock, offset)


def _words(text: str) -> list[str]:
    words = text.lower().split()
    joined: list[str] = []
    for word in words:
        glue = word in ("am", "pm") or word[0] in "+-" or (joined and joined[-1][-1:] in "+-")
        if joined and (glue or _is_unit(word)):
            joined[-1] += word
        else:
            joined.append(word)
    return [part for word in joined for part in _date_and_clock(word)]


def _is_unit(word: str) -> bool:
    return any(unit.startswith(word) for unit, _ in UNITS)


def _date_and_clock(word: str) -> list[str]:
    if word.startswith("now"):
        return [word]
    for mark in ("t", "-"):
        head, found, tail = word.rpartition(mark)
        if found and ":" in tail and head[-1:].isdigit():
            return [head, tail]
    return [word]


def _part(word: str, text: str, *, today: int) -> Parts:
    if word.startswith("now"):
        return Parts(None, None, _delta(word[3:], text))
    if word in CLOCK_WORDS:
        return Parts(None, CLOCK_WORDS[word] * HOUR, None)
    if word in DAY_WORDS:
        return Parts(Date(*civil(today + DAY_WORDS[word])), None, None)
    if ":" in word:
        return Parts(None, _clock(word, text), None)
    return Parts(_date(word, text), None, None)


def _number(digits: str, text: str) -> int:
    number = read_digits(digits)
    if number is None or number > FURTHEST:
        raise InstantError(text)
    return number


def _delta(rest: str, text: str) -> int:
    if not rest:
        return 0
    digits = rest[1:].rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = rest[1 + len(digits) :]
    factor = next((size for name, size in UNITS if name.startswith(unit)), None)
    if rest[0] not in "+-" or factor is None:
        raise InstantError(text)
    seconds = _number(digits, text) * factor
    if seconds > FURTHEST:
        raise InstantError(text)
    return -seconds if rest[0] == "-" else seconds


def _clock(word: str, text: str) -> int:
    half = word[-2:] if word.endswith(("am", "pm")) else ""
    fields = [_number(part, text) for part in word[: len(word) - len(half)].split(":")]
    hour, minute, second, *more = [*fields, 0][:4] if len(fields) < 3 else fields
    top = 12 if half else 23
    if more or hour > top or minute > 59 or second > 59 or (half and not hour):
        raise InstantError(text)
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return hour * HOUR + minute * MINUTE + second


def _date(word: str, text: str) -> Date:
    """YYYY-MM-DD, MM/DD[/YY[YY]], MM.DD[.YY], MMDD[YY]; the year None if not said."""
    dashed = word.split("-")
    if len(dashed) == 3:
        year, month, day = (_number(part, text) for part in dashed)
        return _checked(Date(year, month, day), text)
    for mark in "/.":
        if mark in word:
            return _month_first(word.split(mark), text)
    if len(word) not in (4, 6):
        raise InstantError(text)
    return _month_first([word[i : i + 2] for i in range(0, len(word), 2)], text)


def _month_first(parts: list[str], text: str) -> Date:
    fields = [_number(part, text) for part in parts]
    if len(fields) not in (2, 3):
        raise InstantError(text)
    year = fields[2] if len(fields) == 3 else None
    if year is not None and year < 100:
        year += 2000
    return _checked(Date(year, fields[0], fields[1]), text)


def _checked(date: Date, text: str) -> Date:
    year = 1 if date.year is None else date.year
    if not 1 <= date.month <= 12 or not 1 <= date.day <= 31 or not 1 <= year <= LAST_YEAR:
        raise InstantError(text)
    return date


def _on_date(date: Date, clock: int, *, now: int, offset: Zone, past: bool) -> int:
    year = civil((now + offset(now)) // DAY)[0] if date.year is None else date.year
    at = to_utc(days(year, date.month, date.day) * DAY + clock, offset)
    if date.year is None and not past and at < now:
        at = to_utc(days(year + 1, date.month, date.day) * DAY + clock, offset)
    return at


def to_utc(wall: int, offset: Zone) -> int:
    """The instant at which clocks of the zone show `wall` seconds since 1970."""
    guess = wall - offset(wall)
    return wall - offset(guess)


def days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the Gregorian calendar."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def civil(number: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, of_era = divmod(number + 719468, 146097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def show_instant(at: int, offset: Zone) -> str:
    """`YYYY-MM-DDTHH:MM:SS` in the caller's zone."""
    wall = at + offset(at)
    year, month, day = civil(wall // DAY)
    rest = wall % DAY
    clock = f"{rest // HOUR:02d}:{rest % HOUR // MINUTE:02d}:{rest % MINUTE:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}"
