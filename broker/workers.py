"""The bounded thread pool: effect in, report out. Decides nothing."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from accounting.ids import JobId
from broker.model import effects as ef
from broker.model.errors import Refused, SpzError
from broker.model.ids import NodeName, step_key
from broker.model.node import Node
from broker.model.reports import Booted, Journal, Report, StepRefused
from broker.ports import EndSeen, Files, Provider, Reach, Volumes
from broker.provision import power
from broker.provision.failover import launch
from broker.provision.reconcile import terminate
from broker.run import disks, steps
from broker.run.bootstrap import prepare
from broker.run.pushed import Pushes
from broker.run.steps import Orders

THREADS = 32
FIRST_PAUSE = 0.1
"""Seconds before an effect that came to nothing is tried again; doubles up to LONGEST_PAUSE."""
LONGEST_PAUSE = 10.0
LONGEST_OF: Mapping[type, float] = {
    ef.Prepare: 1.0,
    ef.StartMachine: 1.0,
    ef.StopMachine: 2.0,
    ef.AttachVolume: 1.0,
    ef.DetachVolume: 2.0,
}
"""Of what comes true by itself, and somebody waits for: a machine boots."""


class Log(Protocol):
    def warning(self, event: str, **fields: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What effects are performed with."""

    providers: Mapping[str, Provider]
    reach: Reach
    orders: Orders
    kill_wait: int
    files: Files | None = None
    """None: every node shares the login node's, and nothing else travels."""
    volumes: Mapping[str, Volumes] = field(default_factory=dict)
    """By provider."""
    pushes: Pushes = field(default_factory=Pushes)
    """What agents posted; nothing where none does."""


def perform(effect: ef.Effect, outside: Outside) -> Report | None:
    """Does it, and says what was seen; None: nothing to tell, or not done yet.

    Raises OSError when a node cannot be reached; the effect stays due then.
    """
    match effect:
        case ef.Launch():
            return launch(effect, outside.providers)
        case ef.Terminate():
            return terminate(effect, outside.providers)
        case ef.StopMachine():
            return power.stop(effect, outside.providers)
        case ef.StartMachine():
            return power.start(effect, outside.providers)
        case ef.Prepare():
            return _prepare(effect, outside)
        case ef.MakeVolume() | ef.DropVolume() | ef.AttachVolume() | ef.DetachVolume():
            return _perform_on_volume(effect, outside)
        case _:
            return _perform_on_node(effect, outside)


def _perform_on_volume(effect: ef.OfVolume, outside: Outside) -> Report:
    match effect:
        case ef.MakeVolume():
            return disks.make(effect, outside.volumes)
        case ef.DropVolume():
            return disks.drop(effect, outside.volumes)
        case ef.AttachVolume():
            return disks.attach(effect, outside.volumes, outside.reach)
        case ef.DetachVolume():
            return disks.detach(effect, outside.volumes, outside.reach)


def _perform_on_node(effect: ef.OnNode, outside: Outside) -> Report | None:
    match effect:
        case ef.StartStep():
            return _start(effect, outside)
        case ef.KillStep():
            steps.kill_step(effect, outside.reach, grace=outside.kill_wait)
            return None
        case ef.Kill():
            steps.kill(effect, outside.reach, grace=outside.kill_wait)
            return None
        case ef.SendSignal():
            return steps.signal(effect, outside.reach)
        case ef.SendNotice():
            return steps.notify(effect, outside.reach)
        case ef.TellLimit():
            return steps.tell_limit(effect, outside.reach)
        case ef.Follow():
            return _follow(effect, outside)


def _prepare(effect: ef.Prepare, outside: Outside) -> Report | None:
    """An agent that was told where to post is given a moment for it."""
    found = prepare(effect.node, outside.reach, outside.providers.values())
    if isinstance(found, Booted) and outside.reach.place(effect.node).push is not None:
        outside.pushes.expect(effect.node)
    return found


def _start(effect: ef.StartStep, outside: Outside) -> Report:
    """What the node does not have of the job's files is brought first."""
    job, node = effect.job, effect.node
    place = outside.reach.place(node)
    if outside.files is not None:
        try:
            outside.files.bring(job, node, place)
        except Refused as error:
            key = step_key(job.id, job.attempt, effect.step)
            hint = f" ({error.hint})" if error.hint else ""
            return StepRefused(key=key, message=f"{error.message}{hint}", node=node.name)
    return steps.start(effect, outside.reach, outside.orders)


def _follow(effect: ef.Follow, outside: Outside) -> Report | None:
    """An end is told of once its results are here: until then the journal is read again."""
    found, node = steps.follow(effect, outside.reach, outside.pushes), effect.node
    place = outside.reach.place(node)
    if outside.files is None:
        return found
    records = found.records if isinstance(found, Journal) else ()
    if any(record.get("kind") == "notice" for record in records):
        outside.files.hasten(node.name)
    ended = [one for record in records for one in _ended(record)]
    if ended:
        outside.files.fetch(ended, node, place)
    elif effect.check:
        outside.files.pass_on(node, place)
    return found


def _ended(record: Mapping[str, object]) -> Iterator[EndSeen]:
    """Whose step, or all of whose steps, came to an end by this line of a journal."""
    if record.get("kind") in {"exited", "gone"}:
        job, _, attempt = str(record.get("attempt", "")).partition("/")
        if job.isdecimal() and attempt.isdecimal():
            well = (
                record["kind"] == "exited" and not record.get("code") and not record.get("signal")
            )
            yield EndSeen(JobId(int(job)), int(attempt), well)


UNTIL_UNDUE = (ef.StartStep, ef.KillStep, ef.Kill)
"""Done once; what follows is told by the journal, so they are not repeated while still due."""


def _hosts(effect: ef.StartStep | ef.KillStep | ef.Kill) -> tuple[Node, ...]:
    return effect.nodes if isinstance(effect, ef.Kill) else (effect.node,)


@dataclass(slots=True)
class _Tried:
    """How an effect that is due stands: under way, done, or to be tried again at a time."""

    running: bool = False
    done: bool = False
    pause: float = FIRST_PAUSE
    noted: float = 0.0
    not_before: float = 0.0


class Tries:
    """Which due effects are under way, done, to be tried again; instants in monotonic seconds."""

    def __init__(self) -> None:
        self._tried: dict[str, _Tried] = {}

    def claim(self, due: Iterable[ef.Effect], now: float) -> list[ef.Effect]:
        """Those to be begun now; they count as under way until `note` tells of them."""
        wanted = {effect.token: effect for effect in due}
        settled = [t for t, tried in self._tried.items() if t not in wanted and not tried.running]
        for token in settled:
            del self._tried[token]
        return [
            effect
            for token, effect in wanted.items()
            if not self._is_early(effect) and self._claim(token, now)
        ]

    def _is_early(self, effect: ef.Effect) -> bool:
        """Whether what it ends is being bought just now."""
        bought = self._tried.get(effect.after) if isinstance(effect, ef.Terminate) else None
        return bought is not None and bought.running

    def _claim(self, token: str, now: float) -> bool:
        tried = self._tried.setdefault(token, _Tried())
        if tried.running or tried.done or now < tried.not_before:
            return False
        tried.running = True
        return True

    def note(self, effect: ef.Effect, now: float, *, seen: bool, failed: bool) -> None:
        """How it went: `seen` if something is reported, `failed` if nothing could be done."""
        tried = self._tried.get(effect.token)
        if tried is None:
            return
        tried.running = False
        tried.done = not failed and (seen or isinstance(effect, UNTIL_UNDUE))
        if not tried.done:
            tried.noted = now
            tried.not_before = now + tried.pause
            longest = LONGEST_OF.get(type(effect), LONGEST_PAUSE)
            tried.pause = min(2 * tried.pause, longest)

    def hasten(self, effects: Iterable[ef.Effect]) -> None:
        """What they wait for may have come true: they are tried again as after a first failure."""
        for tried in filter(None, (self._tried.get(effect.token) for effect in effects)):
            tried.pause = FIRST_PAUSE
            tried.not_before = min(tried.not_before, tried.noted + FIRST_PAUSE)

    def wait(self, now: float) -> float | None:
        """Seconds until something is to be tried again; None if nothing is."""
        waits = [t.not_before - now for t in self._tried.values() if not (t.running or t.done)]
        return max(0.0, min(waits)) if waits else None


@dataclass(slots=True)
class Workers:
    """Performs due effects, each at most once at a time, failing ones with growing pauses."""

    outside: Outside
    report: Callable[[Report], None]
    """Called from the pool's threads."""
    followed: Callable[[NodeName], None]
    """Called after a journal was read, whatever came of it."""
    log: Log
    expect: Callable[[NodeName], None] = lambda node: None
    """Called when something was begun or ended on a node whose agent cannot call us."""
    missed: Callable[[], None] = lambda: None
    """Called after a node's journal could not be read, or one that boots did not answer yet."""
    threads: int = THREADS
    _tries: Tries = field(default_factory=Tries)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="worker")

    def take(self, due: Sequence[ef.Effect], woken: Set[NodeName] = frozenset()) -> float | None:
        """Starts what is due and not under way; seconds until something is to be tried again.

        Nodes that have news of themselves, and boot, are not waited for any longer.
        """
        now = time.monotonic()
        boots = [one for one in due if isinstance(one, ef.Prepare) and one.node.name in woken]
        with self._lock:
            self._tries.hasten(boots)
            ready = self._tries.claim(due, now)
            wait = self._tries.wait(now)
        for effect in ready:
            self._pool.submit(self._perform, effect)
        return wait

    def follow(self, due: Iterable[ef.Follow]) -> None:
        """Reads journals; the caller has at most one under way for a node."""
        for effect in due:
            self._pool.submit(self._follow, effect)

    def call(self, job: Callable[[], None]) -> None:
        """Runs something else that blocks in the pool."""
        self._pool.submit(self._call, job)

    def _call(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # border: a worker survives whatever it is given
            self.log.warning("worker.failed", error=repr(error))

    def _follow(self, effect: ef.Follow) -> None:
        if not self._perform(effect):
            self._call(self.missed)
        self.followed(effect.node.name)

    def _perform(self, effect: ef.Effect) -> bool:
        """Whether it could be done."""
        seen: Report | None = None
        failed = False
        try:
            seen = perform(effect, self.outside)
        except OSError as error:
            failed = True
            self.log.warning("effect.unreachable", effect=effect.token, error=str(error))
        except Exception as error:  # border: a worker survives whatever an effect meets
            failed = True
            self.log.warning("effect.failed", effect=effect.token, error=repr(error))
        with self._lock:
            self._tries.note(effect, time.monotonic(), seen=seen is not None, failed=failed)
        if seen is not None:
            self.report(seen)
        elif isinstance(effect, ef.Prepare):
            self._call(self.missed)
        if not failed and isinstance(effect, UNTIL_UNDUE):
            for node in _hosts(effect):
                self._expect(node)
        return not failed

    def _expect(self, node: Node) -> None:
        with suppress(OSError, SpzError):  # gone meanwhile
            if not self.outside.reach.place(node).calls:
                self.expect(node.name)

    def stop(self) -> None:
        """Lets what is under way end; starts nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
