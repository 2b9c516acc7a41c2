"""What is read of reservations and volumes: facts among all others, each found by an index."""

from typing import Any

from sqlalchemy import Select, TextClause, select

from gateway.store import tables as t


def _facts(which: TextClause) -> Select[Any]:
    return select(t.events.c.kind, t.events.c.doc).where(which).order_by(t.events.c.seq)


RESERVATION_FACTS = _facts(t.OF_RESERVATIONS)
VOLUME_FACTS = _facts(t.OF_VOLUMES)
