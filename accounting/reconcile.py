"""The provider's bill against the ledger: by machine (or what is beside it) and hour, and what
sets the ledger right."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from accounting.ids import OVERHEAD, AccountName, MicroUsd, UserName
from accounting.ledger import SPENT, Entry, Kind, Why
from accounting.rates import share

HOUR = 3600
Bill = Mapping[tuple[str, int], int]
"""Micro-dollars by machine and begin of the hour."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What the provider bills for an hour of a machine or of a part of it, and what was posted."""

    machine: str
    hour: int
    billed: int
    posted: int

    @property
    def missing(self) -> int:
        return self.billed - self.posted


def span(bill: Bill) -> tuple[int, int]:
    """From the bill's first hour to the end of its last; nothing of an empty one."""
    hours = [hour for _, hour in bill]
    return (min(hours), max(hours) + HOUR) if hours else (0, 0)


def _posted(entries: Iterable[Entry], bill: Bill) -> dict[tuple[str, int], dict[Entry, int]]:
    """Entries with money by machine and hour of the bill's time."""
    first, last = span(bill)
    found: dict[tuple[str, int], dict[Entry, int]] = {}
    for entry in entries:
        wanted = entry.cost or entry.why is Why.RECONCILED
        if entry.machine and wanted:
            within = ((h, cost) for h, cost in _by_hour(entry) if first <= h < last)
            for hour, cost in within:
                found.setdefault((entry.machine, hour), {})[entry] = cost
    return found


def _by_hour(entry: Entry) -> Iterator[tuple[int, int]]:
    """What time costs, by the seconds in each hour; all else in the hour in which it begins."""
    hour, seconds = entry.since - entry.since % HOUR, entry.at - entry.since
    if entry.why not in SPENT or seconds <= 0:
        yield hour, entry.cost
        return
    done = 0
    while hour < entry.at:
        upto = entry.cost * (min(hour + HOUR, entry.at) - entry.since) // seconds
        yield hour, upto - done
        done, hour = upto, hour + HOUR


def comparable(names: Iterable[str], bill: Bill) -> set[str]:
    """Of the names of which a bill might tell those of whose kind it does: some bills have
    machines alone, and no volumes or addresses.
    """
    told = {_kind(name) for name, _ in bill} | {""}
    return {name for name in names if _kind(name) in told}


def _kind(name: str) -> str:
    return name.partition("/")[2]


def differences(entries: Iterable[Entry], bill: Bill) -> list[Difference]:
    """Hours of machines on the bill or in the ledger that are not the same on both."""
    ours = _posted(entries, bill)
    found = [
        Difference(machine, hour, bill.get((machine, hour), 0), sum(own.values()))
        for machine, hour in sorted({*ours, *bill})
        for own in [ours.get((machine, hour), {})]
    ]
    return [one for one in found if one.missing]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the provider bills for bringing data to a region, and what jobs were charged for it."""

    region: str
    billed: int
    posted: int

    @property
    def missing(self) -> int:
        return self.billed - self.posted


def traffic(entries: Iterable[Entry], billed: Bill) -> list[Traffic]:
    """Regions that are not the same on both: `billed` is by region and hour.

    By the whole time: a line is of the hour in which data moved, an entry of when its job began.
    """
    sums = dict.fromkeys((region for region, _ in billed), 0)
    ours: dict[str, int] = {}
    for (region, _), cost in billed.items():
        sums[region] += cost
    for entry in entries:
        if entry.why is Why.DATA:
            ours[entry.region] = ours.get(entry.region, 0) + entry.cost
    found = [Traffic(name, sums.get(name, 0), ours.get(name, 0)) for name in sorted(sums | ours)]
    return [one for one in found if one.missing]


def corrections(entries: Iterable[Entry], bill: Bill, now: int) -> list[Entry]:
    """Entries that make the ledger the bill, shared by what each payer had of the hour.

    An hour that agrees gets one without money: it is reconciled. What nobody paid for is
    overhead's. Doing it again with the same bill adds nothing: it agrees, and keys are those of
    the hours and of how often each was reconciled, so two that do it at once do it once.
    """
    ours = _posted(entries, bill)
    made: list[Entry] = []
    for where, billed in sorted(bill.items()):
        own = ours.get(where, {})
        missing = billed - sum(own.values())
        if not missing and any(entry.why is Why.RECONCILED for entry in own):
            continue
        often = sum(entry.why is Why.RECONCILED and not entry.cost for entry in own)
        paid = {entry: cost for entry, cost in own.items() if cost > 0}
        parts = share(missing, list(paid.values())) if paid else [missing]
        models: list[Entry | None] = [*paid] or [None]
        for place, (model, part) in enumerate(zip(models, parts, strict=True)):
            if part:
                made.append(_entry(where, part, model=model, key=f"{often}/{place}", now=now))
        made.append(_entry(where, 0, model=None, key=f"{often}/agrees", now=now))
    return made


def _entry(where: tuple[str, int], cost: int, *, model: Entry | None, key: str, now: int) -> Entry:
    machine, hour = where
    return Entry(
        key=f"reconciled/{machine}/{hour}/{key}",
        at=now,
        since=hour,
        kind=Kind.CORRECTION,
        why=Why.RECONCILED,
        job=model.job if model else None,
        attempt=model.attempt if model else 0,
        account=model.account if model else AccountName(OVERHEAD),
        user=model.user if model else UserName(""),
        machine=machine,
        qos=model.qos if model else "",
        partition=model.partition if model else "",
        instance_type=model.instance_type if model else "",
        region=model.region if model else "",
        market=model.market if model else "",
        cost=MicroUsd(cost),
    )
