"""What is read of the book's changes: they are facts among all others, found by an index."""

from sqlalchemy import select

from gateway.store import tables as t

BOOK_CHANGES = select(t.events.c.doc).where(t.OF_THE_BOOK).order_by(t.events.c.seq)
