"""Use and cost summed up by hour and day, so that reports need not read every entry."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from accounting.ledger import UNIT, Entry, Kind
from accounting.tres import Tres

HOUR, DAY = 3600, 86400
SPANS = (HOUR, DAY)
CHARGED = "charged"
"""Billing-seconds times the QOS's UsageFactor: what counts for shares."""
JOBS = "jobs"
"""How many attempts began."""
WALL = "wall"


class Cell(NamedTuple):
    """What is summed up: a span of time (UTC), whose it was, of what."""

    span: int
    start: int
    account: str
    user: str
    qos: str
    partition: str
    size: int
    """CPUs that the job held."""
    tres: str
    """`cpu`, `mem` (MiB), `node`, `billing`, `gres/gpu`, CHARGED, JOBS, WALL."""


class CostCell(NamedTuple):
    """Where money went: a span of time, whose it was, for what kind of machine."""

    span: int
    start: int
    account: str
    user: str
    qos: str
    partition: str
    instance_type: str
    region: str
    market: str
    why: str


def used(entries: Iterable[Entry]) -> dict[Cell, int]:
    """TRES-seconds by hour and by day; the hours' sum is the entry's, to the second."""
    found: dict[Cell, int] = {}
    for entry in entries:
        if entry.kind is not Kind.USAGE:
            continue
        for start, tres, amount in _pieces(entry):
            for span in SPANS:
                key = Cell(
                    span,
                    start - start % span,
                    entry.account,
                    entry.user,
                    entry.qos,
                    entry.partition,
                    _size(entry),
                    tres,
                )
                found[key] = found.get(key, 0) + amount
    return found


def spent(entries: Iterable[Entry]) -> dict[CostCell, int]:
    """Micro-dollars by hour and by day, in the one where the time begins that was paid for."""
    found: dict[CostCell, int] = {}
    for entry in entries:
        if not entry.cost:
            continue
        for span in SPANS:
            key = CostCell(
                span,
                entry.since - entry.since % span,
                entry.account,
                entry.user,
                entry.qos,
                entry.partition,
                entry.instance_type,
                entry.region,
                entry.market,
                entry.why.value,
            )
            found[key] = found.get(key, 0) + entry.cost
    return found


def counts(tres: Tres) -> dict[str, int]:
    """Amounts by the names that reports have."""
    plain = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node}
    return {name: n for name, n in plain.items() if n} | {f"gres/{n}": c for n, c in tres.gres}


def charged(entry: Entry) -> dict[str, float]:
    """TRES-seconds as they count for limits and shares: times the UsageFactor."""
    factor = entry.factor_millionths / UNIT
    whole = counts(entry.tres_seconds)
    whole |= {"billing": entry.billing_seconds, WALL: entry.at - entry.since}
    return {name: count * factor for name, count in whole.items()}


def _size(entry: Entry) -> int:
    return entry.tres_seconds.cpu // max(1, entry.at - entry.since)


def _pieces(entry: Entry) -> Iterator[tuple[int, str, int]]:
    """Begin of the hour, name, amount: of each hour that the entry touches."""
    seconds = max(1, entry.at - entry.since)
    amounts = _amounts(entry)
    yield entry.since - entry.since % HOUR, JOBS, 1
    done = 0
    hour = entry.since - entry.since % HOUR
    while hour < entry.at:
        until = min(hour + HOUR, entry.at) - entry.since
        for name, amount in amounts.items():
            part = amount * until // seconds - amount * done // seconds
            if part:
                yield hour, name, part
        done, hour = until, hour + HOUR


def _amounts(entry: Entry) -> Mapping[str, int]:
    charge = entry.billing_seconds * entry.factor_millionths // UNIT
    return counts(entry.tres_seconds) | {
        "billing": entry.billing_seconds,
        CHARGED: charge,
        WALL: entry.at - entry.since,
    }


def windows(since: int, until: int) -> list[tuple[int, int, int]]:
    """(span, from, to) that cover [since, until) in whole hours, with days where they are whole."""
    since, until = since - since % HOUR, until - until % HOUR
    if until <= since:
        return []
    first, last = -(-since // DAY) * DAY, until // DAY * DAY
    if first >= last:
        return [(HOUR, since, until)]
    parts = [(HOUR, since, first), (DAY, first, last), (HOUR, last, until)]
    return [part for part in parts if part[1] < part[2]]
