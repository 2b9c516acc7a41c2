"""The words for points in time, and where Slurm stops reading a text that is none (22.05)."""

from __future__ import annotations

from sbatch_shim.grammar.values import DAY, HOUR, MINUTE, leading_digits

CLOCK_WORDS = {"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}
DAY_WORDS = {"today": 0, "tomorrow": 1}
UNITS = (("seconds", 1), ("minutes", MINUTE), ("hours", HOUR), ("days", DAY), ("weeks", 7 * DAY))
WORDS = (*DAY_WORDS, *CLOCK_WORDS)
SKIPPED = " \t-t"
UNIT_WORDS = tuple(word for unit, _ in UNITS for word in (unit, unit[:-1]))
CLOCK = (23, 59, 59)


def stopped(text: str) -> int:
    """The position that its complaint tells; 0 where it reads to the end."""
    return _scanned(text.lower())[1]


def pieces(text: str) -> list[str]:
    """Words, dates and clock times, in any order and with little between them, where that is all
    that stands there; else none."""
    found, at = _scanned(text.lower())
    return [] if at else found


def _scanned(low: str) -> tuple[list[str], int]:
    """What was read (of `now` and what follows it nothing), and where it stopped."""
    found, at = list[str](), 0
    while at < len(low):
        word = next((word for word in WORDS if low.startswith(word, at)), "")
        if low.startswith("now", at):
            return [], _in_delta(low, at + 3)
        if low[at] in SKIPPED and not word:
            at += 1
            continue
        read, end = (True, at + len(word)) if word else _number(low, at)
        if not read:
            return found, end
        found.append(low[at:end])
        at = end
    return found, 0


def _number(low: str, at: int) -> tuple[bool, int]:
    """Whether a clock time or a date was read there, and how far."""
    if not _digits(low, at):
        return False, at
    return _clock(low, at) if ":" in low[at + 1 : at + 3] else _date(low, at)


def _digits(low: str, at: int, most: int = 2) -> str:
    """So many at most, from there on."""
    return leading_digits(low[at : at + most])


def _clock(low: str, at: int) -> tuple[bool, int]:
    """Whether it was read, and how far; what is too large is gone back before."""
    hour = int(_digits(low, at))
    for place, most in enumerate(CLOCK):
        found = _digits(low, at)
        at += len(found)
        if len(found) < 1 + bool(place):
            return False, at
        if int(found) > most:
            return False, at - 2
        if low[at : at + 1] != ":" or place == len(CLOCK) - 1:
            break
        at += 1
    if low.startswith(("am", "pm"), at):
        return hour <= 12, at + 2 * (hour <= 12)
    return True, at


def _date(low: str, at: int) -> tuple[bool, int]:
    if low[at + 4 : at + 5] == "-" == low[at + 7 : at + 8]:
        for most, start in ((12, at + 5), (31, at + 8)):
            found = _digits(low, start)
            if len(found) < 2 or not 1 <= int(found) <= most:
                return False, start
        return True, at + 10
    for most in (12, 31):
        found = _digits(low, at)
        at += len(found)
        if not found:
            return False, at
        if not 1 <= int(found) <= most:
            return False, at - 2
        at += low[at : at + 1] in ("/", ".")
    if at == len(low):
        return True, at
    year = _digits(low, at, 4)
    return len(year) in (2, 4), at + len(year)


def _in_delta(low: str, at: int) -> int:
    at = _behind_blanks(low, at)
    if low[at : at + 1] not in ("+", "-"):
        return at if at < len(low) else 0
    at = _behind_blanks(low, at + 1)
    count = _digits(low, at, len(low))
    if not count:
        return at - 1
    at = _behind_blanks(low, at + len(count))
    unit = next((unit for unit in UNIT_WORDS if low.startswith(unit, at)), "")
    return at + len(unit) if unit else at - 1


def _behind_blanks(low: str, at: int) -> int:
    return len(low) - len(low[at:].lstrip())
