"""Who leads: the epoch that fences off a gateway that was overtaken. For now one process leads."""

from typing import Any

from broker.model.errors import LostLease
from gateway.store.statements import Writes

ENGINE = "engine"
"""The role of the one writer."""


def check(cursor: Any, writes: Writes, epoch: int) -> None:
    """Raises LostLease if a later epoch has begun; a later one than known begins with this."""
    known = current(cursor, writes)
    if known > epoch:
        raise LostLease(
            f"another gateway leads in epoch {known}, this one was to write in epoch {epoch}",
            hint="this process must stop; the other one serves",
        )
    if known < epoch:
        _put(cursor, writes, {"epoch": epoch, "holder": "", "at": 0})


def take(cursor: Any, writes: Writes, *, holder: str, at: int) -> int:
    """Begins the next epoch; commits of earlier ones are refused from now on."""
    epoch = current(cursor, writes) + 1
    _put(cursor, writes, {"epoch": epoch, "holder": holder, "at": at})
    return epoch


def current(cursor: Any, writes: Writes) -> int:
    """0 in a new store; no other session begins an epoch before this transaction ends."""
    writes.lease.run(cursor, [{"role": ENGINE}])
    found = cursor.fetchone()
    return found[0] if found else 0


def _put(cursor: Any, writes: Writes, row: dict[str, object]) -> None:
    writes.put_lease.run(cursor, [{"role": ENGINE, **row}])
