"""Who leads: the epoch that fences off a gateway that was overtaken. For now one process leads."""

from sqlalchemy import Connection

from broker.model.errors import LostLease
from gateway.store.statements import LEASE, Writes

ENGINE = "engine"
"""The role of the one writer."""


def check(connection: Connection, writes: Writes, epoch: int) -> None:
    """Raises LostLease if a later epoch has begun; a later one than known begins with this."""
    known = current(connection)
    if known > epoch:
        raise LostLease(
            f"another gateway leads in epoch {known}, this one was to write in epoch {epoch}",
            hint="this process must stop; the other one serves",
        )
    if known < epoch:
        _put(connection, writes, {"epoch": epoch, "holder": "", "at": 0})


def take(connection: Connection, writes: Writes, *, holder: str, at: int) -> int:
    """Begins the next epoch; commits of earlier ones are refused from now on."""
    epoch = current(connection) + 1
    _put(connection, writes, {"epoch": epoch, "holder": holder, "at": at})
    return epoch


def current(connection: Connection) -> int:
    """0 in a new store; no other session begins an epoch before this transaction ends."""
    return connection.execute(LEASE, {"role": ENGINE}).scalar() or 0


def _put(connection: Connection, writes: Writes, row: dict[str, object]) -> None:
    connection.execute(writes.put_lease, {"role": ENGINE, **row})
