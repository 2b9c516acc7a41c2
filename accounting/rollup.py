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
PLANNED = "planned/cpu"
"""CPUs for which jobs waited that could have had them: nobody's, and of no other TRES (22.05)."""
DOWN = "down/"
"""Before a TRES of nodes that took no work: nobody's."""


class Cell(NamedTuple):
    """What is summed up: a span of time (UTC), whose it was, of what."""

    span: int
    start: int
    account: str
    user: str
    qos: str
    partition: str
    wckey: str
    reservation: str
    size: int
    """CPUs that the job held."""
    tres: str
    """`cpu`, `mem` (MiB), `node`, `billing`, `gres/gpu`, or one of the names above."""


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
    for whose, pieces in (part for entry in entries for part in _parts(entry)):
        for start, tres, amount in pieces:
            for span in SPANS:
                key = Cell(span, start - start % span, *whose, tres)
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


def lost(tres: Tres) -> dict[str, int]:
    """Amounts of nodes that take no work."""
    return {DOWN + name: amount for name, amount in counts(tres).items()}


def charged(entry: Entry) -> dict[str, float]:
    """TRES-seconds as they count for limits and shares: times the UsageFactor."""
    factor = entry.factor_millionths / UNIT
    whole = counts(entry.tres_seconds)
    whole |= {"billing": entry.billing_seconds, WALL: entry.at - entry.since}
    return {name: count * factor for name, count in whole.items()}


Whose = tuple[str, str, str, str, str, str, int]
Piece = tuple[int, str, int]
"""Begin of the hour, name, amount."""


def _parts(entry: Entry) -> Iterator[tuple[Whose, Iterator[Piece]]]:
    """What an entry says of use, and of time without use, with whose it was."""
    seconds = max(1, entry.at - entry.since)
    if entry.kind is Kind.DOWN:
        yield _nobodys(""), _pieces(entry.since, entry.at, lost(entry.tres_seconds))
    if entry.kind is not Kind.USAGE:
        return
    yield _whose(entry, seconds), _pieces(entry.since, entry.at, _amounts(entry), begins=True)
    if entry.waited:
        cpus, since = entry.tres_seconds.cpu // seconds, entry.since - entry.waited
        waited = {PLANNED: cpus * entry.waited}
        yield _nobodys(entry.partition), _pieces(since, entry.since, waited)


def _whose(entry: Entry, seconds: int) -> Whose:
    size = entry.tres_seconds.cpu // seconds
    own = (entry.account, entry.user, entry.qos, entry.partition)
    return (*own, entry.wckey, entry.reservation, size)


def _nobodys(partition: str) -> Whose:
    return "", "", "", partition, "", "", 0


def _pieces(
    since: int, until: int, amounts: Mapping[str, int], *, begins: bool = False
) -> Iterator[Piece]:
    """The amounts by the hours from `since` to `until`, and that a job `begins` in the first."""
    seconds, hour, done = max(1, until - since), since - since % HOUR, 0
    if begins:
        yield hour, JOBS, 1
    while hour < until:
        upto = min(hour + HOUR, until) - since
        for name, amount in amounts.items():
            part = amount * upto // seconds - amount * done // seconds
            if part:
                yield hour, name, part
        done, hour = upto, hour + HOUR


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
