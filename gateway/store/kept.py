"""What is read of the book, reservations, volumes, partitions, boots: facts by an index each."""

from typing import Any

from sqlalchemy import Select, TextClause, select

from gateway.store import tables as t


def _facts(which: TextClause) -> Select[Any]:
    return select(t.events.c.kind, t.events.c.doc).where(which).order_by(t.events.c.seq)


BOOK_FACTS = _facts(t.OF_THE_BOOK)
RESERVATION_FACTS = _facts(t.OF_RESERVATIONS)
PARTITION_FACTS = _facts(t.OF_PARTITIONS)
VOLUME_FACTS = _facts(t.OF_VOLUMES)
BOOTS_FACTS = _facts(t.OF_BOOTS)
