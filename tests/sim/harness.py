"""The engine, a fake cloud and everything between them, in virtual time and without threads."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accounting.ids import JobId
from broker.effects import follow_due, inhabited
from broker.engine import Engine, Outcome
from broker.model import commands as cmd
from broker.model import effects as ef
from broker.model import reports as rep
from broker.model.errors import Busy, IllegalTransition, LostLease, Unforeseen
from broker.model.ids import NodeName, StepId
from broker.model.inbox import Message
from broker.model.job import Job, Owner
from broker.model.node import Node
from broker.model.offer import Machine, Market, Offer
from broker.model.site import Site
from broker.model.spec import UNLIMITED, StepSpec, TaskSpec
from broker.optimize.bundled import bundled
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.ports import Place
from broker.providers.fake import Delays, FakeCloud
from broker.providers.fake_agent import Fate, Fates
from broker.provision.reconcile import difference
from broker.quotes import Quotes
from broker.run.launch import StepOrder
from broker.schedule.view import FOREVER
from broker.workers import Outside, Tries, perform
from broker.world import World
from tests.sim.memory_store import MemoryStore

START = 1_800_000_000
PASS_SECONDS = 10
"""A full pass is made at least so often."""
CATALOG = bundled("fake")

Ask = Callable[["Simulation"], Sequence[cmd.Command]]
"""What is asked at an instant, seen from the world as it is then."""


class Clock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> int:
        return self.time


class Orders:
    """What agents are told: the limits, and whether the step only waits."""

    def order(self, job: Job, step: StepId, node: Node, *, gang: Sequence[Job] = ()) -> StepOrder:
        limit = None if job.time_limit == UNLIMITED else int(job.time_limit)
        found = job.step(step)
        return StepOrder(
            uid=job.owner.uid,
            gid=job.owner.gid,
            user=job.owner.user,
            cwd=b"/",
            time_limit=limit,
            kill_wait=30,
            label=f"{job.spec.name} {job.array.task if job.array else ''}",
            hold=step == "batch" and job.spec.batch is None,
            further=bool(found and found.more and found.shares[0].node != node.name),
        )

    def door(self, job: Job, node: Node) -> StepOrder:
        """Nothing runs here that others could enter."""
        return StepOrder(uid=job.owner.uid, gid=job.owner.gid, user=job.owner.user, cwd=b"/")


@dataclass(frozen=True, slots=True)
class Chaos:
    """How unreliable the way between engine and outside is."""

    delay: int = 0
    """Seconds that an effect, and then its report, may take at most."""
    lost_wakes: float = 0.0
    """Share of journals' news that nobody hears of before the next sweep."""
    full_disk: float = 0.0
    """Share of steps whose transaction fails."""
    crash: float = 0.0
    """Share of steps after which the service is killed and started again."""
    takeover: float = 0.0
    """Share of steps after which another gateway leads, and the old one does not know it yet."""


CALM = Chaos()
USUAL = Delays(boot=40, stop=5)


@dataclass(slots=True)
class _Errand:
    """An effect on its way: performed at one instant, its report heard at a later one."""

    effect: ef.Effect
    at: int
    heard: int


@dataclass(slots=True)
class _Asked:
    """A command of a client who asks again until there is an answer."""

    message: cmd.Command
    at: int


@dataclass
class Simulation:
    """Drives everything; `check` is called after every step."""

    site: Site
    fates: Fates
    seed: int = 0
    chaos: Chaos = CALM
    delays: Delays = USUAL
    sweep_every: int = 15
    pass_every: int = 1
    """Least seconds between full passes."""
    full_every: int = PASS_SECONDS
    catalog: Catalog = CATALOG
    check: Callable[["Simulation"], None] = lambda sim: None
    clock: Clock = field(default_factory=Clock)
    store: MemoryStore = field(default_factory=MemoryStore)
    printed: list[JobId] = field(default_factory=list)
    """Ids that clients have seen."""
    replies: list[tuple[cmd.Command, Any]] = field(default_factory=list)
    steps: int = 0
    epoch: int = 1

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.begun: set[str] = set()
        """Keys of all steps that any agent has ever begun, a second node's part by itself."""
        self.cloud = FakeCloud(self.clock, [], fates=self._fate, delays=self.delays)
        self.ground = FakeCloud(self.clock, [], fates=self._fate, delays=Delays(boot=0))
        """Where declared nodes stand; nobody bills for it, nobody sweeps it."""
        identities = [(node.name, 0) for node in self.site.nodes]
        self.ground.launch(_FLOOR, identities, token="declared")
        providers = {"fake": self.cloud}
        self.outside = Outside(
            providers=providers, reach=self, orders=Orders(), kill_wait=self.site.kill_wait
        )
        self.script: list[tuple[int, Ask]] = []
        self.asked: list[_Asked] = []
        self.start()

    def place(self, node: Node) -> Place:
        return (self.ground if node.declared else self.cloud).place(node)

    # --- the service

    def start(self) -> None:
        """The service as it comes up: nothing is known but what the store holds."""
        market = Quotes({"fake": self.catalog}, Cooldown())
        self.engine = Engine.recovered(
            world=World(self.site),
            store=self.store,
            market=market,
            epoch=self.epoch,
            now=self.clock.time,
        )
        self.store.full = False
        self.engine.configure(self.clock.time)
        self.tries = Tries()
        self.errands: list[_Errand] = []
        self.reports: list[tuple[int, rep.Report]] = []
        self.woken: set[NodeName] = set(self.world.nodes)
        self.next_sweep = self.clock.time
        self.last_pass = 0

    def crash(self) -> None:
        """Killed and started again; what was under way is done or not, and nobody hears of it."""
        used = self.world.charges
        for errand in self.errands:
            if self.rng.random() < 0.5:
                self._perform(errand.effect)
        self.start()
        assert self.world.charges == used, "a restart has changed what counts as used"

    def usurp(self) -> None:
        """Another gateway takes over; the old one, and what it was about to do, learn it late."""
        old, errands = self.engine, self.errands
        self.epoch += 1
        self.store.epoch = self.epoch
        self.start()
        self.step()
        for errand in errands:
            self._perform(errand.effect)
        events = len(self.store.events)
        spec = TaskSpec(name="late", batch=StepSpec(name="batch"))
        late = cmd.Submit(spec=spec, owner=Owner(1, 1, "late", "late"), request="late")
        try:
            old.step([late], self.clock.time, full_pass=True)
        except LostLease:
            assert len(self.store.events) == events
            return
        raise AssertionError("a gateway that does not lead any more has written")

    def _fate(self, key: str, order: Mapping[str, Any]) -> Fate:
        part = f"{key} further" if order.get("further") else key
        assert part not in self.begun, f"{part} was begun twice"
        self.begun.add(part)
        return Fate(*self.fates(key, order))

    @property
    def world(self) -> World:
        return self.engine.world

    # --- asking

    def at(self, seconds: int, ask: Ask) -> None:
        """Asks then, counted from the beginning."""
        self.script.append((START + seconds, ask))
        self.script.sort(key=lambda entry: entry[0])

    def submit_at(self, seconds: int, asked: cmd.Submit) -> None:
        """The same of a submission that is known beforehand."""
        self.at(seconds, lambda _: [asked])

    def ask(self, *messages: cmd.Command) -> None:
        self.asked += [_Asked(message, self.clock.time) for message in messages]

    # --- time

    def run(self, seconds: int, *, until_quiet: bool = True) -> None:
        """Goes on for so long, or until nothing is left to do."""
        end = self.clock.time + seconds
        while self.clock.time < end:
            self.step()
            if until_quiet and self.quiet():
                return
            self.clock.time = min(self._next(), end)

    def quiet(self) -> bool:
        """Nothing is asked for, nothing waits for its time, no machine is left."""
        world = self.world
        if world.active or self.script or self.asked or self.engine.room_made:
            return False
        elastic = any(not node.declared for node in world.nodes.values())
        waiting = any(job.reason == "BeginTime" for job in self._pending())
        hopeful = any(job.reason in HOPEFUL for job in self._pending())
        return not (elastic or waiting or hopeful)

    def _pending(self) -> Iterable[Job]:
        return (self.world.jobs[job_id] for job_id in self.world.pending)

    def _next(self) -> int:
        now = self.clock.time
        instants = [errand.at for errand in self.errands]
        instants += [heard for heard, _ in self.reports]
        instants += [asked.at for asked in self.asked]
        instants += [self.next_sweep, self.last_pass + self.full_every, self.engine.next_begin]
        instants += self._idle_ends()
        instants += [at for at, _ in self.script[:1]]
        instants += [at for at in (self.cloud.next_event(), self.ground.next_event()) if at]
        wait = self.tries.wait(now)
        if wait is not None:
            instants.append(now + max(1, round(wait)))
        if self.engine.room_made:
            instants.append(self.last_pass + self.pass_every)
        if self.woken:
            instants.append(now + 1)
        return max(now + (0 if self._due() else 1), min(*instants, FOREVER))

    def _idle_ends(self) -> list[int]:
        """When machines that stand idle are let go."""
        return [
            node.idle_since + node.idle_seconds
            for node in self.world.nodes.values()
            if node.idle_since is not None and node.idle_seconds is not None
        ]

    def _due(self) -> bool:
        now = self.clock.time
        return any(errand.at <= now for errand in self.errands) or any(
            heard <= now for heard, _ in self.reports
        )

    # --- one step

    def step(self) -> None:
        self._do_errands()
        now = self.clock.time
        while self.script and self.script[0][0] <= now:
            _, ask = self.script.pop(0)
            self.ask(*ask(self))
        reports = [report for heard, report in self.reports if heard <= now]
        asked = [one for one in self.asked if one.at <= now]
        self.store.full = self.rng.random() < self.chaos.full_disk
        outcome = self._engine_step([*reports, *(one.message for one in asked)])
        self.store.full = False
        if outcome.committed:
            self.reports = [(heard, report) for heard, report in self.reports if heard > now]
        self._answer(asked, outcome.replies[len(reports) :])
        if outcome.committed:
            self._act(outcome)
        self.steps += 1
        self.check(self)
        if self.rng.random() < self.chaos.crash:
            self.crash()
        if self.rng.random() < self.chaos.takeover:
            self.usurp()

    def _engine_step(self, inbox: list[Message]) -> Outcome:
        now, engine = self.clock.time, self.engine
        wanted = engine.room_made or now >= min(engine.next_begin, self.last_pass + self.full_every)
        full = wanted and now >= self.last_pass + self.pass_every
        if full:
            self.last_pass = now
        outcome = engine.step(inbox, now, full_pass=full)
        for message, reply in zip(inbox, outcome.replies, strict=True):
            assert not isinstance(reply, IllegalTransition | Unforeseen), (message, reply)
        return outcome

    def _answer(self, asked: list[_Asked], replies: Sequence[Any]) -> None:
        for one, reply in zip(asked, replies, strict=True):
            if isinstance(reply, Busy):
                one.at = self.clock.time + 1
                continue
            if self.rng.random() < self.chaos.crash:
                one.at = self.clock.time + 1  # the reply was lost: asked again
                continue
            self.asked.remove(one)
            self.replies.append((one.message, reply))
            if isinstance(one.message, cmd.Submit) and not isinstance(reply, Exception):
                self.printed.append(reply)

    # --- outside

    def _act(self, outcome: Outcome) -> None:
        now = self.clock.time
        for effect in self.tries.claim(outcome.effects, now):
            at = now + self._delay()
            self.errands.append(_Errand(effect, at, at + self._delay()))
        if self.rng.random() >= self.chaos.lost_wakes:
            self.woken |= self.cloud.news() | self.ground.news()
        check = now >= self.next_sweep
        if check:
            self.next_sweep = now + self.sweep_every
            self.woken |= set(inhabited(self.world))
            self._sweep()
        for effect in follow_due(self.world, self.woken, check=check):
            at = now + self._delay()
            self.errands.append(_Errand(effect, at, at + self._delay()))
        self.woken.clear()

    def _delay(self) -> int:
        return self.rng.randint(0, self.chaos.delay) if self.chaos.delay else 0

    def _do_errands(self) -> None:
        now = self.clock.time
        ready = [errand for errand in self.errands if errand.at <= now]
        self.errands = [errand for errand in self.errands if errand.at > now]
        self.rng.shuffle(ready)
        for errand in ready:
            seen, failed = self._perform(errand.effect)
            if not isinstance(errand.effect, ef.Follow):
                self.tries.note(errand.effect, now, seen=seen is not None, failed=failed)
            if seen is not None:
                self.reports.append((max(now, errand.heard), seen))

    def _perform(self, effect: ef.Effect) -> tuple[rep.Report | None, bool]:
        try:
            return perform(effect, self.outside), False
        except OSError:
            return None, True

    def _sweep(self) -> None:
        nodes, machines = self.engine.snapshot.nodes, self.cloud.machines()
        found = difference(nodes, machines)
        old = self.clock.time - self.sweep_every
        self.cloud.terminate([m for m in found.stray if m.launched_at < old])
        self.reports += [(self.clock.time + self._delay(), lost) for lost in found.lost]
        self.reports += [(self.clock.time + self._delay(), told) for told in found.repriced]

    def paid_machines(self) -> list[Machine]:
        """Those that exist now."""
        return [m for m in self.cloud.machines() if m.terminated_at is None]


HOPEFUL = frozenset({"None", "Resources", "Priority", "JobArrayTaskLimit", "Dependency"})
_FLOOR = Offer("ground", "here", ("",), "host", Market.ON_DEMAND, 0, 1, 1)
