"""The ledger for others: each consumer gets every entry in its order, from where it stands."""

from collections.abc import Sequence
from typing import Any, Protocol

from accounting.ledger import Entry

MOST = 500
"""Entries handed over at a time."""


class Consumer(Protocol):
    """An accounting plugin: an object that the entry point group `skypurza.accounting` names.

    Who keeps the number of the last entry together with what it made of it (in one transaction of
    its own) and tells it in `position` gets every entry exactly once; for others the service keeps
    it, and after a crash between the two the last page comes again, under the same numbers.
    """

    name: str

    def position(self) -> int | None:
        """The number of the last entry it has; None: it does not keep it."""
        ...

    def receive(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """Takes entries with their numbers, which grow; what it raises is told in the log, and the
        same entries come again later."""
        ...


class Ledger(Protocol):
    """What entries are read from, and where positions are kept."""

    def entries_after(self, last: int, most: int) -> Sequence[tuple[int, Entry]]: ...
    def position(self, consumer: str) -> int: ...
    def keep_position(self, consumer: str, seq: int) -> None: ...


def feed(ledger: Ledger, consumer: Consumer, log: Any) -> int:
    """Hands over all that the consumer has not had; how many entries it took."""
    taken = 0
    while True:
        own = consumer.position()
        last = ledger.position(consumer.name) if own is None else own
        page = ledger.entries_after(last, MOST)
        if not page:
            return taken
        try:
            consumer.receive(page)
        except Exception:  # border: a plugin may break in any way
            log.exception("accounting.plugin", plugin=consumer.name, after=last)
            return taken
        ledger.keep_position(consumer.name, page[-1][0])
        taken += len(page)
