"""Tables of records that our own routes tell of: columns once, for the terminal and for pages.

Records are what the routes give as JSON; instants are whole seconds UTC.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gateway.query.dollars import usd

Json = Mapping[str, Any]
MINUTE, HOUR, DAY = 60, 3600, 86400
USERS, VERBOSE = "users", "verbose"
EVERYTHING = frozenset({USERS, VERBOSE})


class Column(NamedTuple):
    """A heading, what stands below it (of a record, at an instant), and when it is shown."""

    heading: str
    cell: Callable[[Json, int], object]
    shown: str = ""


class Listed(NamedTuple):
    """Headings, and a row of cells for each record."""

    head: list[str]
    rows: list[list[object]]


def listed(
    columns: Iterable[Column], found: Iterable[Json], now: int, *, also: frozenset[str]
) -> Listed:
    """The usual columns, and those that `also` names."""
    shown = [one for one in columns if not one.shown or one.shown in also]
    rows = [[column.cell(one, now) for column in shown] for one in found]
    return Listed([one.heading for one in shown], rows)


def lasted(seconds: int | None) -> str | None:
    """`12s`, `3m 4s`, `2h 5m`, `3d 4h`."""
    if seconds is None:
        return None
    for unit, name, below, less in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit}{name} {seconds % unit // below}{less}"
    return f"{seconds // MINUTE}m {seconds % MINUTE}s" if seconds >= MINUTE else f"{seconds}s"


def ago(instant: int | None, now: int) -> str | None:
    told = lasted(None if instant is None else max(0, now - instant))
    return None if told is None else f"{told} ago"


def money(micro_usd: int | None) -> str | None:
    return None if micro_usd is None else usd(micro_usd)


def duration(one: Json, now: int) -> int | None:
    """Seconds that it has run, or did."""
    if one["started"] is None:
        return None
    end = now if one["ended"] is None else int(one["ended"])
    return max(0, end - int(one["started"]))
