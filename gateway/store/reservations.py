"""What is read of reservations: they are facts among all others, found by an index."""

from sqlalchemy import select

from gateway.store import tables as t

RESERVATION_FACTS = (
    select(t.events.c.kind, t.events.c.doc).where(t.OF_RESERVATIONS).order_by(t.events.c.seq)
)
