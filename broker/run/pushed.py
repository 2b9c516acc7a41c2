"""What agents posted of their journals, until it is committed; any thread may ask.

The engine takes it as if it had been read over the node's channel: by the same effect, from the
same position, one report at a time for a node.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from broker.model.errors import Busy
from broker.model.events import Event
from broker.model.ids import NodeName
from broker.model.node import Node
from broker.model.nodeevents import JournalRead, NodeGone
from broker.model.reports import Journal, NodeTrouble

QUIET_SECONDS = 30.0
"""After so long without a word a node's journal is read over its channel again."""
FIRST_SECONDS = 10.0
"""The same from its first contact on: not every network lets agents out."""
MOST_HELD = 64 << 20
"""Bytes of what was posted and is not committed, of all nodes together."""


@dataclass(slots=True)
class _Mail:
    """What a node posted; `size` in bytes."""

    report: Journal | NodeTrouble
    size: int
    committed: "Future[int]" = field(default_factory=Future)
    """The position up to which the journal is committed."""


@dataclass(slots=True)
class Pushes:
    """At most one letter of each node; instants are monotonic seconds."""

    clock: Callable[[], float] = time.monotonic
    tell: Callable[[str, NodeName], None] = lambda event, node: None
    """Hears in one word how reports come from now on, and of which node."""
    ways: Counter[str] = field(default_factory=Counter)
    """How often something new came by each way, `push` or `ssh`."""
    _mail: dict[NodeName, _Mail] = field(default_factory=dict)
    _heard: dict[NodeName, tuple[int, float]] = field(default_factory=dict)
    _fallen_back: dict[NodeName, int] = field(default_factory=dict)
    """Launches of nodes that should post and are swept."""
    _doubted: set[NodeName] = field(default_factory=set)
    _began: float = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    # --- from the door

    def hear(self, node: Node) -> None:
        """The agent of this node lives and has posted."""
        with self._lock:
            self._heard[node.name] = node.launch, self.clock()
            back = self._fallen_back.pop(node.name, None) is not None
        if back:
            self.tell("reports.pushed", node.name)

    def put(self, node: Node, report: Journal | NodeTrouble, size: int) -> "Future[int]":
        """Until it is committed. The same once more is the same letter. Raises Busy."""
        with self._lock:
            known = self._mail.get(node.name)
            if known is not None and known.report == report:
                return known.committed
            held = sum(one.size for one in self._mail.values()) - (known.size if known else 0)
            if held + size > MOST_HELD:
                raise Busy("too many reports wait", hint="try again")
            mail = self._mail[node.name] = _Mail(report, size)
            # Who waits may go away; it is committed all the same.
            mail.committed.set_running_or_notify_cancel()
            return mail.committed

    def doubt(self, node: Node) -> bool:
        """Its agent is dead, or its journal another one: whoever looks at it next begins it again.
        Whether that is news.
        """
        with self._lock:
            news = self._heard.pop(node.name, None) is not None
            if news:
                self._doubted.add(node.name)
        return news

    # --- for who follows

    def expect(self, node: Node) -> None:
        """It was told where to post just now."""
        with self._lock:
            at = self.clock() - QUIET_SECONDS + FIRST_SECONDS
            self._heard[node.name] = node.launch, at

    def letter(self, node: Node) -> Journal | NodeTrouble | None:
        """What it posted, if that goes on where the store stands; stays until it is committed.

        Else who posted it hears at once where that is.
        """
        with self._lock:
            mail = self._mail.get(node.name)
            if mail is None:
                return None
            report, ours = mail.report, mail.report.launch == node.launch
            late = ours and isinstance(report, Journal) and report.start != node.journal
            if late or not ours or isinstance(report, NodeTrouble):
                del self._mail[node.name]
        if late:
            mail.committed.set_result(node.journal)
        return None if late or not ours else report

    def lately(self, node: Node) -> bool:
        """Whether it posts, so that nobody need read."""
        launch, at = self._heard.get(node.name, (None, 0.0))
        return launch == node.launch and self.clock() - at < QUIET_SECONDS

    def doubted(self, node: Node) -> bool:
        """Whether its agent is to be begun again, not its journal read alone; told once."""
        with self._lock:
            known = node.name in self._doubted
            self._doubted.discard(node.name)
        return known

    def swept(self, node: Node) -> None:
        """Its journal was read over the channel although it should post."""
        with self._lock:
            known = self._fallen_back.get(node.name) == node.launch
            new = not known and self.clock() - self._began >= QUIET_SECONDS
            if new:
                self._fallen_back[node.name] = node.launch
        if new:
            self.tell("reports.swept", node.name)

    def fallen_back(self, node: Node) -> bool:
        """Whether it should post and is swept."""
        return self._fallen_back.get(node.name) == node.launch

    # --- from the engine

    def committed(self, facts: Iterable[Event]) -> None:
        """Whoever waits for a commit hears of it; of machines that are gone nothing is kept."""
        for fact in facts:
            if isinstance(fact, JournalRead):
                self._end(fact.node, fact.position)
            elif isinstance(fact, NodeGone):
                self._forget(fact.node)

    def _end(self, node: NodeName, position: int) -> None:
        with self._lock:
            mail = self._mail.get(node)
            report = None if mail is None else mail.report
            over = isinstance(report, Journal) and position >= report.position
            if mail is None or not over:
                return
            del self._mail[node]
            self.ways["push"] += 1
        mail.committed.set_result(position)

    def _forget(self, node: NodeName) -> None:
        with self._lock:
            self._mail.pop(node, None)
            self._heard.pop(node, None)
            self._doubted.discard(node)
            self._fallen_back.pop(node, None)
