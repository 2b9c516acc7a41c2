"""The engine's thread: drains the inbox, steps, hands effects to the workers, answers who asked."""

import heapq
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.effects import follow_due, inhabited
from broker.engine import Engine, Outcome
from broker.model.commands import Command, Many
from broker.model.cycles import Cycles
from broker.model.errors import Busy, SpzError, Unforeseen
from broker.model.events import Event
from broker.model.ids import NodeName
from broker.model.inbox import Message
from broker.model.reports import Report
from broker.ports import Clock
from broker.workers import Workers

MOST_MESSAGES = 512
"""Messages of one step; they are committed together."""
SWEEP_SECONDS = 5.0
"""How often journals are read although nobody called."""
PASS_SHARE = 4
"""A full pass costs at most one part in so many of the thread's time."""
LEAST_PAUSE = 0.02
AFTER_FAILURE = 0.5
SOON = (0.2, 0.7, 2.0)
"""Seconds after which the journal of a node is read on which something was begun or ended."""


class Log(Protocol):
    def error(self, event: str, **fields: object) -> None: ...
    def warning(self, event: str, **fields: object) -> None: ...


@dataclass(frozen=True, slots=True)
class _Asked:
    message: Message
    answer: "Future[Any] | None"


@dataclass(frozen=True, slots=True)
class _Woken:
    node: NodeName


@dataclass(frozen=True, slots=True)
class _Expected:
    node: NodeName


@dataclass(frozen=True, slots=True)
class _Followed:
    node: NodeName


@dataclass(slots=True)
class Heart:
    """Runs an engine; `ask`, `report` and `wake` may be called from any thread."""

    engine: Engine
    clock: Clock
    log: Log
    sweep: Callable[[], None] = lambda: None
    """Compares what providers hold with what we know; called in the pool now and then."""
    tell: Callable[[Sequence[Event]], None] = lambda facts: None
    """Hears every committed fact, in the engine's thread, after who asked was answered."""
    workers: Workers | None = None
    cycles: Cycles = field(default_factory=Cycles)
    _inbox: "queue.SimpleQueue[_Asked | _Woken | _Expected | _Followed | None]" = field(
        default_factory=queue.SimpleQueue
    )
    _woken: set[NodeName] = field(default_factory=set)
    _soon: list[tuple[float, NodeName]] = field(default_factory=list)
    """A heap: when to read which node's journal unasked."""
    _following: set[NodeName] = field(default_factory=set)
    _next_sweep: float = 0.0
    _next_pass: float = 0.0
    _retry_in: float | None = None
    _first_sweep: bool = True
    _stopping: threading.Event = field(default_factory=threading.Event)

    # --- from other threads

    def ask(self, command: Command | Many) -> "Future[Any]":
        """The reply follows the commit; a refusal is the future's exception."""
        answer: Future[Any] = Future()
        # Who asked may go away; what is decided is answered all the same.
        answer.set_running_or_notify_cancel()
        self._inbox.put(_Asked(command, answer))
        return answer

    def report(self, report: Report) -> None:
        self._inbox.put(_Asked(report, None))

    def wake(self, node: NodeName) -> None:
        """The node's journal has news, or it answers now that it has booted."""
        self._inbox.put(_Woken(node))

    def expect(self, node: NodeName) -> None:
        """The journal will have news, and the node cannot say so."""
        self._inbox.put(_Expected(node))

    def followed(self, node: NodeName) -> None:
        """Its journal was read; what was found is in the inbox before this."""
        self._inbox.put(_Followed(node))

    def stop(self) -> None:
        """The step under way is finished; `run` returns."""
        self._stopping.set()
        self._inbox.put(None)

    # --- the thread

    def run(self) -> None:
        """Until `stop`. An error that nothing foresaw ends it: the caller ends the service."""
        while not self._stopping.is_set():
            self._turn(self._drain())
        self._refuse_rest()

    def _turn(self, batch: list[_Asked]) -> None:
        outcome = self._step([asked.message for asked in batch])
        self._answer(batch, outcome)
        if outcome.committed:
            self._act(outcome)
            self.tell([fact for _, fact in self.engine.world.facts])
        else:
            self._again(batch, outcome)

    def _refuse_rest(self) -> None:
        """What still waits when the service ends is told to ask again."""
        while not self._inbox.empty():
            item = self._inbox.get()
            if isinstance(item, _Asked) and item.answer is not None:
                item.answer.set_exception(Busy("the service is stopping", hint="try again"))

    def _drain(self) -> list[_Asked]:
        """What waits in the inbox, or comes before something else is due."""
        batch: list[_Asked] = []
        item = self._wait()
        while item is not None and len(batch) < MOST_MESSAGES:
            if isinstance(item, _Asked):
                batch.append(item)
            elif isinstance(item, _Woken):
                self._woken.add(item.node)
            elif isinstance(item, _Expected):
                now = time.monotonic()
                for pause in SOON:
                    heapq.heappush(self._soon, (now + pause, item.node))
            else:
                self._following.discard(item.node)
            item = None if self._inbox.empty() else self._inbox.get()
        if isinstance(item, _Asked):
            batch.append(item)
        elif item is not None:
            self._inbox.put(item)
        return batch

    def _wait(self) -> _Asked | _Woken | _Expected | _Followed | None:
        now = time.monotonic()
        waits = [1.0, self._next_sweep - now]
        if self.engine.room_made:
            waits.append(self._next_pass - now)
        if self._retry_in is not None:
            waits.append(self._retry_in)
        if self._soon:
            waits.append(self._soon[0][0] - now)
        try:
            return self._inbox.get(timeout=max(0.0, min(waits)))
        except queue.Empty:
            return None

    def _step(self, messages: list[Message]) -> Outcome:
        began = time.monotonic()
        now = self.clock.now()
        full_pass = self._pass_due(began, now)
        outcome = self.engine.step(messages, now, full_pass=full_pass)
        if full_pass:
            cost = time.monotonic() - began
            self.cycles.note(cost)
            self._next_pass = time.monotonic() + max(LEAST_PAUSE, PASS_SHARE * cost)
        return outcome

    def _pass_due(self, monotonic: float, now: int) -> bool:
        if monotonic < self._next_pass:
            return False
        # cool-downs end unannounced
        late = monotonic >= self._next_pass + self.engine.site.pass_interval
        return self.engine.room_made or now >= self.engine.next_begin or late

    def _answer(self, batch: list[_Asked], outcome: Outcome) -> None:
        for asked, reply in zip(batch, outcome.replies, strict=True):
            if isinstance(reply, Unforeseen):
                self.log.error("decision.failed", error=reply.message, exc_info=reply.__cause__)
            if asked.answer is None:
                if isinstance(reply, SpzError) and outcome.committed:
                    self.log.warning(
                        "report.refused", report=type(asked.message).__name__, error=reply.message
                    )
            elif isinstance(reply, SpzError):
                asked.answer.set_exception(reply)
            else:
                asked.answer.set_result(reply)

    def _again(self, batch: list[_Asked], outcome: Outcome) -> None:
        """Nothing was written: reports are told again after a pause, commands were refused."""
        why = next((reply.message for reply in outcome.replies if isinstance(reply, SpzError)), "")
        reports = sum(asked.answer is None for asked in batch)
        self.log.error("store.busy", reports=reports, error=why)
        for asked in batch:
            if asked.answer is None:
                self._inbox.put(asked)
        self._stopping.wait(AFTER_FAILURE)

    def _act(self, outcome: Outcome) -> None:
        if self.workers is None:
            return
        self._retry_in = self.workers.take(outcome.effects, self._woken)
        check = time.monotonic() >= self._next_sweep
        if check:
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            self._woken |= set(self._to_check())
            self.workers.call(self.sweep)
        while self._soon and self._soon[0][0] <= time.monotonic():
            self._woken.add(heapq.heappop(self._soon)[1])
        names = self._woken - self._following
        due = follow_due(self.engine.world, names, check=check)
        self._woken -= names
        self._following |= {effect.node.name for effect in due}
        self.workers.follow(due)

    def _to_check(self) -> list[NodeName]:
        """Every node once after a start, later those on which something lives."""
        if self._first_sweep:
            self._first_sweep = False
            return list(self.engine.world.nodes)
        return inhabited(self.engine.world)
