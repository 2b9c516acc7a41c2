"""What was spent, by what and of whom: words to columns of the sums, filters, days of a zone."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from accounting.ledger import Entry
from accounting.rollup import DAY, HOUR
from broker.model.errors import BadOption
from broker.model.site import Site
from gateway.query.costwords import COLUMNS
from gateway.query.privacy import Viewer
from sbatch_shim.grammar.instants import Zone

Spent = Mapping[tuple[Any, ...], int]


def words_of(text: str) -> list[str]:
    """Raises BadOption for what costs are not told by."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in COLUMNS:
            raise BadOption("by", word, f"costs are not told by {word!r}", hint=", ".join(COLUMNS))
    return words


def columns_of(words: Iterable[str], filters: Mapping[str, str]) -> tuple[str, ...]:
    """What the sums have to be told apart by."""
    return tuple(dict.fromkeys(COLUMNS[word] for word in (*words, *filters)))


def of_theirs(found: Spent, by: Viewer) -> Spent:
    """Without what others spent; the last two columns, which go, say whose it was."""
    left: dict[tuple[Any, ...], int] = {}
    for (*key, account, user), amount in found.items():
        if by.used(account, user):
            left[tuple(key)] = left.get(tuple(key), 0) + amount
    return left


def span_of(words: Collection[str], zone: Zone, window: tuple[int, int]) -> int | None:
    """Hours where days do not begin at midnight UTC; else the longest spans that fit."""
    since, until = window
    days = range(since, until, DAY)
    shifted = "day" in words and any(zone(at) for at in (*days, until))
    return HOUR if shifted else None


def told(
    found: Spent, words: list[str], filters: Mapping[str, str], *, zone: Zone
) -> list[tuple[str | int, ...]]:
    """Labels and micro-dollars: the dearest first, or by day."""
    columns = columns_of(words, filters)
    rows: dict[tuple[str, ...], int] = {}
    for key, amount in found.items():
        named = dict(zip(columns, key, strict=True))
        if all(named[COLUMNS[word]] == value for word, value in filters.items()):
            short = tuple(_shown(word, named[COLUMNS[word]], zone) for word in words)
            rows[short] = rows.get(short, 0) + amount
    by_day = [place for place, word in enumerate(words) if word == "day"]
    order = sorted(
        rows.items(), key=lambda row: ([row[0][place] for place in by_day], -row[1], row[0])
    )
    return [(*key, amount) for key, amount in order]


def _shown(word: str, value: Any, zone: Zone) -> str:
    if word != "day":
        return str(value)
    return datetime.fromtimestamp(value + zone(value), UTC).strftime("%Y-%m-%d")


def wanted(entry: Entry, filters: Mapping[str, str]) -> bool:
    """Whether the filters let an entry of the ledger through."""
    return all(getattr(entry, COLUMNS[word]) == value for word, value in filters.items())


def must_be_known(
    filters: Mapping[str, str], site: Site, ever: Mapping[str, Collection[str]]
) -> None:
    """Raises BadOption for a value that nothing is called, nor was when money was spent.

    `ever` has the values of the sums by column.
    """
    book = site.book
    configured: dict[str, Collection[str]] = {
        "account": book.accounts,
        "user": {*book.associations, *book.people},
        "qos": book.qos,
        "partition": [part.name for part in site.partitions],
    }
    for word, value in filters.items():
        known = {*configured.get(word, ()), *ever[COLUMNS[word]]} - {""}
        if value not in known:
            some = ", ".join(sorted(known)[:8]) or "none yet"
            raise BadOption(
                word, value, f"nothing was spent by {word} {value!r}, nor is there one",
                hint=f"known: {some}",
            )  # fmt: skip
