"""Entries of the ledger as records for readers outside: names, instants, use by TRES, money."""

from typing import Any

from accounting.ledger import Entry, Kind
from accounting.rollup import counts

OF_USE = frozenset({Kind.USAGE, Kind.STEP, Kind.DOWN})


def told(entry: Entry) -> dict[str, Any]:
    """All that an entry has; TRES-seconds by Slurm's names (memory in MiB), money whole."""
    return {
        "key": entry.key,
        "kind": entry.kind.value,
        "why": entry.why.value,
        "job": entry.job,
        "attempt": entry.attempt or None,
        "step": entry.step or None,
        "account": entry.account,
        "user": entry.user,
        "qos": entry.qos,
        "partition": entry.partition,
        "wckey": entry.wckey,
        "reservation": entry.reservation,
        "machine": entry.machine,
        "instance_type": entry.instance_type,
        "region": entry.region,
        "market": entry.market,
        "since": entry.since,
        "at": entry.at,
        "micro_usd": entry.cost,
        "tres_seconds": used(entry),
        "sampled": dict(entry.sampled.read),
        "written": dict(entry.sampled.written),
    }


def used(entry: Entry) -> dict[str, int]:
    """TRES-seconds by name; of money none. Nothing measures energy, and Slurm then tells 0."""
    if entry.kind not in OF_USE:
        return {}
    billed = {} if entry.kind is Kind.DOWN else {"billing": entry.billing_seconds}
    return {**counts(entry.tres_seconds), **billed, "energy": 0}
