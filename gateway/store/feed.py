"""The ledger for others: each consumer gets every entry in its order, from where it stands."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Protocol

from accounting.ledger import Entry
from broker.model.errors import Busy, Conflict, Refused, Unknown
from gateway.store.rollup import CONSUMER

MOST = 500
"""Entries handed over at a time."""
BROKEN = (Exception, SystemExit)
"""A plugin may break in any way; one that calls `exit` must not take service or thread along."""
PATIENCE = 60.0
"""Seconds after which a plugin that still has not taken a page is told of in the log."""


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

    def last_entry(self) -> int: ...
    def entries_after(self, last: int, most: int) -> Sequence[tuple[int, Entry]]: ...
    def position(self, consumer: str) -> int: ...
    def positions(self) -> Mapping[str, int]: ...
    def keep_position(self, consumer: str, seq: int | None) -> None: ...


def feed(ledger: Ledger, consumer: Consumer, log: Any) -> int:
    """Hands over all that the consumer has not had; how many entries it took."""
    taken, last = 0, 0
    try:
        if consumer.name not in ledger.positions():
            ledger.keep_position(consumer.name, 0)  # nothing is purged that it has not had
        while True:
            own = consumer.position()
            last = ledger.position(consumer.name) if own is None else own
            page = ledger.entries_after(last, MOST)
            if not page:
                return taken
            consumer.receive(page)
            ledger.keep_position(consumer.name, page[-1][0])
            taken += len(page)
    except Busy:
        return taken
    except BROKEN:
        log.exception("accounting.plugin", plugin=consumer.name, after=last)
        return taken


@dataclass(slots=True)
class Feeder:
    """One consumer on a thread of its own, so that it can keep nobody waiting but itself."""

    ledger: Ledger
    consumer: Consumer
    log: Any
    clock: Callable[[], float] = time.monotonic
    busy_since: float | None = None
    _due: Event = field(default_factory=Event)
    _one: Lock = field(default_factory=Lock)
    _thread: Thread | None = None
    _told: bool = False

    def wake(self) -> None:
        """There may be more for it; one that has been at a page for long is told of in the log."""
        self._due.set()
        if self._thread is None:
            name = f"plugin-{self.consumer.name}"
            self._thread = Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        since = self.busy_since
        if since is not None and self.clock() - since > PATIENCE and not self._told:
            self._told = True
            self.log.warning("accounting.plugin_hangs", plugin=self.consumer.name)

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            self.once()

    def once(self) -> int:
        """All that it has not had; how many entries it took."""
        with self._one:
            self.busy_since = self.clock()
            try:
                return feed(self.ledger, self.consumer, self.log)
            finally:
                self.busy_since, self._told = None, False

    def set(self, seq: int) -> None:
        """From where on it gets entries. Raises Refused, Conflict while it is at some."""
        if self.consumer.position() is not None:
            raise Refused(
                f"plugin {self.consumer.name} keeps its position itself, with what it has",
                hint="set it there",
            )
        if not self._one.acquire(blocking=False):
            raise Conflict(f"plugin {self.consumer.name} is taking entries", hint="try again")
        try:
            self.ledger.keep_position(self.consumer.name, seq)
        finally:
            self._one.release()


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a consumer has come, and what it is at."""

    name: str
    position: int
    behind: int
    state: str
    """`waits`, `takes`, `gone` (it is not installed any more), or `service` (sums of reports)."""


class Feeders:
    """All consumers, by name."""

    def __init__(self, ledger: Ledger, consumers: Iterable[Consumer], log: Any) -> None:
        self._ledger, self._log = ledger, log
        self.known: dict[str, Feeder] = {}
        for one in consumers:
            if one.name in {*self.known, CONSUMER}:
                log.error("accounting.plugin_twice", plugin=one.name)
            else:
                self.known[one.name] = Feeder(ledger, one, log)

    def wake(self) -> None:
        for one in self.known.values():
            one.wake()

    def standings(self) -> list[Standing]:
        """By name, those too that are known from former times. Blocks; raises Busy."""
        kept, last = dict(self._ledger.positions()), self._ledger.last_entry()
        found = {**dict.fromkeys(self.known, 0), **kept}
        return [self._standing(name, kept=found[name], last=last) for name in sorted(found)]

    def _standing(self, name: str, *, kept: int, last: int) -> Standing:
        feeder = self.known.get(name)
        if feeder is None:
            state = "service" if name == CONSUMER else "gone"
            return Standing(name, kept, last - kept, state)
        state = "waits" if feeder.busy_since is None else "takes"
        return Standing(name, kept, last - kept, state)

    def set(self, name: str, seq: int) -> None:
        """Entries after this number come next. Raises Unknown, Refused, Conflict, Busy; blocks."""
        feeder = self.known.get(name)
        if feeder is None:
            known = ", ".join(sorted(self.known)) or "none"
            raise Unknown(f"no accounting plugin {name!r}", hint=f"installed: {known}")
        last = self._ledger.last_entry()
        if not 0 <= seq <= last:
            raise Refused(f"no entry has the number {seq}", hint=f"0 to {last}")
        feeder.set(seq)
        feeder.wake()

    def forget(self, name: str) -> None:
        """Entries that only a plugin that is gone has not had may be purged. Raises Unknown,
        Refused for one that is installed, Busy; blocks."""
        if name in self.known:
            raise Refused(f"plugin {name} is installed", hint="uninstall it first")
        if name == CONSUMER:
            raise Refused(f"{name} are those of reports, and no plugin")
        if name not in self._ledger.positions():
            raise Unknown(f"no accounting plugin {name!r} was ever here")
        self._ledger.keep_position(name, None)


def loaded(found: Iterable[Any], log: Any) -> list[Consumer]:
    """The objects that entry points name; one that cannot be made is told in the log."""
    made: list[Consumer] = []
    for each in found:
        try:
            one = each.load()()
            _must_be_named(one)
        except BROKEN:
            log.exception("accounting.plugin_broken", plugin=each.name)
        else:
            made.append(one)
    return made


def _must_be_named(one: Any) -> None:
    """Raises ValueError, AttributeError: its position is kept under its name, which lists show."""
    name = one.name
    if not isinstance(name, str) or name.split() != [name] or not name.isprintable():
        raise ValueError(f"its name is {name!r}: a word is wanted")
