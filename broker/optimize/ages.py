"""How old a figure is: prices move, and who reads one is told when it was true."""

from datetime import UTC, date, datetime
from functools import lru_cache

DAY = 86_400
OLD_DAYS = 30
"""Older figures are said to be old."""
PRICE = "price"


def age_days(as_of: str, now: int) -> int | None:
    """Whole days since a day or year (ISO 8601); a year counts from its first day; None unknown."""
    try:
        day = date.fromisoformat(as_of if len(as_of) > 4 else f"{as_of}-01-01")
    except ValueError:
        return None
    return max(0, (datetime.fromtimestamp(now, UTC).date() - day).days)


def told(as_of: str, now: int, *, old_days: int = OLD_DAYS, what: str = PRICE) -> str:
    """`price of 2025-04-04`, and that it is old if it is; "" where no day is known."""
    return _told(as_of, now // DAY * DAY, old_days, what=what) if as_of else ""


def old(as_of: str, now: int, *, old_days: int = OLD_DAYS, what: str = PRICE) -> str:
    """The same of a figure that is old; "" where it is not, or no day is known."""
    return _old(as_of, now // DAY * DAY, old_days, what=what) if as_of else ""


@lru_cache(maxsize=1024)
def _old(as_of: str, now: int, old_days: int, *, what: str) -> str:
    days = age_days(as_of, now)
    fresh = days is None or days <= old_days
    return "" if fresh else told(as_of, now, old_days=old_days, what=what)


@lru_cache(maxsize=1024)
def _told(as_of: str, now: int, old_days: int, *, what: str) -> str:
    days = age_days(as_of, now)
    old = "" if days is None or days <= old_days else f", {days} days old: `spz catalog refresh`"
    return f"{what} of {as_of}{old}"
