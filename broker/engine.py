"""One inbox, one writer: a step takes messages, decides, commits and says what is to be done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accounting.ids import JobId
from accounting.ledger import Entry
from broker.decide import fading, money, protecting
from broker.decide.accruing import Accruing
from broker.decide.answers import ANSWERED_ONCE, Answers, reply_of
from broker.decide.booking import with_changes
from broker.decide.budgeting import Budgets
from broker.decide.dispatch import decide
from broker.decide.gang import shared_fate
from broker.decide.instants import happened
from broker.decide.overrunning import Overrunning
from broker.decide.passing import (
    configured_nodes,
    dependency_facts,
    dependents,
    due,
    leaves_late,
)
from broker.decide.placing import Placing
from broker.decide.preempting import Preempting
from broker.decide.reports import journal_record, told_of
from broker.decide.stepping import place_steps
from broker.decide.submit import fresh_ids
from broker.decide.viewing import Market, Viewing
from broker.effects import effects_due
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model import reports as rep
from broker.model.boots import BootsGone
from broker.model.effects import Effect
from broker.model.errors import (
    USER_ID_MISSING,
    Busy,
    Denied,
    IllegalTransition,
    LostLease,
    SpzError,
)
from broker.model.facts import JobFact, folded
from broker.model.ids import Digest, NodeName
from broker.model.inbox import Message
from broker.model.job import Job
from broker.model.partition import PartitionSet, laid_over
from broker.model.reservation import ReservationGone, ReservationSet
from broker.model.site import Site
from broker.model.tally import Charges
from broker.model.volume import VolumeGone, VolumeSet
from broker.ports import Counters, Store
from broker.schedule.gates import begin_of, gate
from broker.schedule.plan import plan
from broker.schedule.view import FOREVER
from broker.seen import Seen
from broker.world import Snapshot, World

ENDS_SOMETHING = (
    ev.Ended,
    ev.Released,
    ev.Started,
    ev.Placed,
    ev.Requeued,
    ev.ElementsDropped,
)
LOOKS_AGAIN = (ev.Queued, ev.HoldSet, ev.Changed)
"""After these a job's own dependencies are judged anew."""
CHANGES_RULES = (
    ev.BookChanged,
    PartitionSet,
    ReservationSet,
    ReservationGone,
    VolumeSet,
    VolumeGone,
)
MAKES_ROOM = (ev.Released, nev.NodeBooted, nev.NodeGone, ev.Unplaced, BootsGone, *CHANGES_RULES)
FREE = "None"
"""The reason of a job that nobody has told yet why it waits."""
FREES_NODES = (ev.Released, ev.Unplaced)
CALLS_FOR_A_PASS = frozenset((ev.Waits, ev.Requeued, *LOOKS_AGAIN, *MAKES_ROOM))
SETTLE_SECONDS = 300
"""How often the cost of running machines is brought up to date."""


@dataclass(slots=True)
class Outcome:
    """What a step came to; `replies` stand beside the inbox's messages."""

    effects: list[Effect] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    """An answer, or the SpzError that refused the message."""
    committed: bool = True
    """False: nothing of the step stands (full disk); reports have to be told again."""


@dataclass(slots=True)
class _Batch:
    """What goes to the store beside events and records."""

    entries: list[Entry] = field(default_factory=list)
    blobs: dict[Digest, bytes] = field(default_factory=dict)
    submitted: list[JobId] = field(default_factory=list)


class Engine:
    """Decides for one site. Not safe for several threads: one of them calls `step`."""

    def __init__(
        self, *, world: World, store: Store, market: Market, epoch: int, started_at: int
    ) -> None:
        self.world = world
        self.store = store
        self.market = market
        self.epoch = epoch
        self.started_at = started_at
        self.answers = Answers({})
        self.blocked: set[str] = set()
        """Partitions where somebody waits for room."""
        self.room_made = True
        """Whether a full pass might start something."""
        self.ranked = fading.Ranked(world)
        self.budgets = Budgets(world, store, lambda: self._batch.entries)
        self.viewing = Viewing(world, market, ranked=self.ranked, budgets=self.budgets)
        self.preempting = Preempting(world)
        self.overrunning = Overrunning(world)
        self.accruing = Accruing(world)
        self.next_begin = FOREVER
        self._seen = Seen(world, started_at)
        self._last_due = 0
        self._last_settled = started_at
        self._batch = _Batch()

    @classmethod
    def recovered(
        cls, *, world: World, store: Store, market: Market, epoch: int, now: int
    ) -> "Engine":
        """An engine on what the store holds; declared nodes are as configured."""
        counters = store.counters() or Counters(world.site.first_job_id, 0)
        world.next_job_id = max(counters.next_job_id, world.site.first_job_id)
        world.last_event = counters.last_event
        world.load(store.live_jobs(ended_after=now - world.site.min_job_age), store.live_nodes())
        world.load(store.jobs_named(world.named_dependencies()), ())
        world.site = with_changes(world.site, store.book_changes())
        world.reservations = folded(store.reservation_facts())
        world.volumes = folded(store.volume_facts())
        world.patches = folded(store.partition_facts())
        world.site = laid_over(world.site, world.patches.values())
        world.boots = folded(store.boots_facts())
        fading.load(world, store, now)
        engine = cls(world=world, store=store, market=market, epoch=epoch, started_at=now)
        engine.budgets.note((), now)
        engine.answers = Answers(store.replies(now - 86_400))
        return engine

    # --- what readers see, from any thread

    @property
    def snapshot(self) -> Snapshot:
        """The latest that was committed."""
        return self._seen.snapshot()

    @property
    def site(self) -> Site:
        """That of the latest snapshot, without making one."""
        return self._seen.site

    def publish(self, now: int) -> None:
        """Shows readers the world as it is, which has to be on disk."""
        self._seen.publish(now, self.ranked.at(now).shares)

    # --- one step

    def step(self, inbox: Sequence[Message], now: int, *, full_pass: bool) -> Outcome:
        """Takes the messages in order; all of it is durable when this returns, or none is.

        Raises LostLease when another gateway leads: this one has to stop.
        """
        self.world.begin()
        self._batch = _Batch()
        self.answers.fresh = {}
        replies = [self._handle(message, now) for message in inbox]
        self._let_time_pass(now)
        self._look_at_dependents(now)
        self._plan(now, full_pass=full_pass)
        self._apply(place_steps(list(self.world.changed_jobs()), now), now)
        charges = fading.noted(self.world, self._batch.entries)
        try:
            changed = self._commit(charges)
        except LostLease:
            raise
        except Busy as error:
            self.world.rollback()
            self.room_made = True
            return Outcome(replies=[error] * len(inbox), committed=False)
        self.answers.settle()
        if charges:
            self.world.charges = {**self.world.charges, **charges}
        self.budgets.note(self._batch.entries, now)
        if changed or now != self._seen.at:
            self.publish(now)
        return Outcome(effects=effects_due(self.world), replies=replies)

    def _handle(self, message: Message, now: int) -> Any:
        if isinstance(message, rep.Journal):
            return self._read_journal(message, now)
        if isinstance(message, cmd.Many):
            return [self._handle(one, now) for one in message.commands]
        if isinstance(message, cmd.Once | cmd.Remember):
            return self._once(message, now)
        self.market.heard(message, now)
        known = self.answers.known(message)
        if known is not None:
            return known
        try:
            if isinstance(message, cmd.Reconfigure | cmd.TakeFigures):
                self._take_site(message)
            decision = decide(
                self.world,
                message,
                now,
                quote=self.market.at(now),
                keeper=lambda: self.viewing.keeper(now),
            )
            self._apply(decision.facts, now)
            self._batch.entries += decision.entries
        except SpzError as error:
            return error
        if isinstance(message, ANSWERED_ONCE):
            self._note(message, decision.reply)
        return decision.reply

    def _once(self, message: cmd.Once | cmd.Remember, now: int) -> Any:
        if isinstance(message, cmd.Remember):
            return self.answers.remember(message)
        known = self.answers.find(message.request)
        if known is not None:
            return reply_of(known)
        reply = self._handle(message.command, now)
        self.answers.note_done(message, reply)
        return reply

    def _take_site(self, message: cmd.Reconfigure | cmd.TakeFigures) -> None:
        """What follows for nodes is decided next. Raises Denied."""
        if not self.world.site.is_run_by(message.by.uid):
            raise Denied(USER_ID_MISSING)
        self.room_made = True
        if isinstance(message, cmd.TakeFigures):
            known = self.world.site.offered_features
            words = None if known is None else known | message.words
            self.world.site = replace(self.world.site, rates=message.rates, offered_features=words)
            return
        fresh = [fact for _, fact in self.world.facts if isinstance(fact, ev.BookChanged)]
        self.world.site = with_changes(message.site, [*self.store.book_changes(), *fresh])

    def _note(self, message: cmd.Submit | cmd.AddStep, reply: Any) -> None:
        """A refusal that left a record keeps its script too."""
        self._batch.blobs.update(message.blobs)
        if isinstance(reply, SpzError):
            return
        self.answers.note(message, reply)
        if isinstance(message, cmd.Submit):
            count = 1 + len(message.more)
            self._batch.submitted += [JobId(reply + offset) for offset in range(count)]

    def _apply(self, facts: Iterable[ev.Event], now: int) -> None:
        """Makes facts so, posting what their coming true costs whom."""
        for fact in facts:
            freed = self._freed(fact) if isinstance(fact, FREES_NODES) else []
            meters, entries = money.before(self.world, fact, min(now, fact.at))
            for meter in meters:
                self.world.apply(meter)
            self._batch.entries += entries
            self.world.apply(fact)
            for more in (*money.after(self.world, fact), *protecting.after(self.world, fact)):
                self.world.apply(more)
            if type(fact) in CALLS_FOR_A_PASS:
                self._note_room(fact, now)
            self._note_idle(freed, now)

    def _note_room(self, fact: ev.Event, now: int) -> None:
        """A full pass is due when it might start something, or when a begin time comes."""
        free_now = isinstance(fact, ev.Waits) and fact.reason == FREE
        back = free_now or isinstance(fact, (*LOOKS_AGAIN, ev.Requeued))
        if back and isinstance(fact, JobFact):
            job = self.world.jobs[fact.job]
            self.room_made = self.room_made or self._may_be_placed(job, fact, now)
            if begin_of(job) > now:
                self.next_begin = min(self.next_begin, begin_of(job))
        self.room_made = self.room_made or isinstance(fact, MAKES_ROOM)

    def _may_be_placed(self, job: Job, fact: JobFact, now: int) -> bool:
        """Whether a full pass has to look at it.

        A new job that its partitions keep waiting was told so in its own step.
        """
        if isinstance(fact, ev.Queued) and job.reason != FREE:
            return False
        if isinstance(fact, ev.Queued) and not self.blocked.intersection(job.partitions):
            return gate(job, now) is None and not self.viewing.asks.closed(job)
        return gate(job, now) is None

    def _freed(self, fact: ev.Released | ev.Unplaced) -> list[NodeName]:
        """Nodes that the fact takes from a job."""
        job = self.world.jobs.get(fact.job)
        return [] if job is None else [share.node for share in job.shares]

    def _note_idle(self, names: Iterable[NodeName], now: int) -> None:
        """Elastic nodes that nobody holds any more stand idle from now."""
        for name in names:
            node = self.world.nodes.get(name)
            if node is None or node.declared or self.world.holders.get(name):
                continue
            if node.idle_since is None:
                self.world.apply(
                    nev.NodeIdle(node=name, launch=node.launch, at=now, idle_since=now)
                )

    def _read_journal(self, message: rep.Journal, now: int) -> None:
        node = self.world.present(message.node, message.launch)
        if node is None or node.journal != message.start:
            return
        if node.machine is not None and any(r.get("kind") == "notice" for r in message.records):
            self.market.taken_back(node.machine, now)
        self.world.next_job_id = max(self.world.next_job_id, 1 + told_of(message.records))
        for record in message.records:
            at = happened(self.world, record, now)
            self._apply_each(journal_record(self.world, record, node=node.name, now=at), now)
        place = message.position
        if place != message.start:
            read = nev.JournalRead(node=node.name, launch=node.launch, at=now, position=place)
            self._apply([read], now)

    def _let_time_pass(self, now: int) -> None:
        if now == self._last_due:
            return
        self._last_due = now
        passed = [
            *due(self.world, now),
            *protecting.due(self.world, now),
            *self.budgets.due(now),
            *fading.turned(self.world, now, started_at=self.started_at),
            *self.preempting.due(now),
        ]
        self._apply_each([*passed, *self.overrunning.due(now), *self.accruing.due(now)], now)
        if now >= self._last_settled + SETTLE_SECONDS:
            self._last_settled = now
            meters, entries = money.periodic(self.world, now)
            self._batch.entries += entries
            for meter in meters:
                self.world.apply(meter)
        self.world.forget(now - self.world.site.min_job_age)

    def _apply_each(self, facts: Iterable[ev.Event], now: int) -> None:
        """Facts that do not hang together: one that has been overtaken is left out."""
        for fact in facts:
            try:
                self._apply([fact], now)
            except IllegalTransition:
                continue

    def _look_at_dependents(self, now: int) -> None:
        """Until nothing changes: a job ended for its dependencies has dependents of its own."""
        seen = 0
        while seen < len(self.world.facts):
            fresh = [fact for _, fact in self.world.facts[seen:]]
            seen = len(self.world.facts)
            for fact in fresh:
                if isinstance(fact, ev.Ended | ev.Requeued | ev.Unplaced):
                    self._apply(shared_fate(self.world, fact, now), now)
            changed = {f.job for f in fresh if isinstance(f, ENDS_SOMETHING)}
            again = dependents(self.world, changed)
            again |= {f.job for f in fresh if isinstance(f, LOOKS_AGAIN)}
            for job_id in sorted(again & self.world.pending):
                self._apply(dependency_facts(self.world, self.world.jobs[job_id], now), now)

    # --- planning

    def _plan(self, now: int, *, full_pass: bool) -> None:
        if full_pass:
            candidates = [self.world.jobs[job_id] for job_id in self.world.pending]
            self.viewing.asks.tidy(len(candidates))
            self.room_made = False
        else:
            still = (job_id for job_id in self._batch.submitted if job_id in self.world.pending)
            fresh = (self.world.jobs[job_id] for job_id in still)
            free = (job for job in fresh if job.reason == FREE)
            candidates = [job for job in free if not self.blocked.intersection(job.partitions)]
        candidates = [job for job in candidates if job.hold is None]
        if candidates and leaves_late(self.world, now):
            self.room_made = True
            return
        if not candidates:
            if full_pass:
                self.blocked, self.next_begin = set(), FOREVER
            return
        made = plan(self.viewing.of(sorted(candidates, key=self.ranked.at(now).order), now))
        self._apply(Placing(self.world, fresh_ids(self.world), now).of(made), now)
        self.blocked = set(made.blocked) if full_pass else self.blocked | made.blocked
        self.next_begin = made.next_begin if full_pass else min(self.next_begin, made.next_begin)
        if full_pass and self.world.site.preempts:
            self._preempt(candidates, now)

    def _preempt(self, candidates: Sequence[Job], now: int) -> None:
        """Makes room for the first that waits and may push others out."""
        order = self.ranked.at(now).order
        waits = sorted(
            (self.world.jobs[job.id] for job in candidates if job.id in self.world.pending),
            key=order,
        )
        viewing = self.viewing
        pushed = self.preempting.out(waits, asks=viewing.asks, rooms=viewing.rooms, now=now)
        self._apply_each(pushed, now)

    # --- the store

    def configure(self, now: int) -> None:
        """Brings declared nodes to what the configuration says. Raises Busy."""
        self.world.begin()
        self._batch = _Batch()
        self.answers.fresh = {}
        self._apply(configured_nodes(self.world, now), now)
        self._commit(self.world.charges)
        self._seen.publish(now, {})

    def _commit(self, charges: Charges) -> bool:
        """Writes the step; False if there was nothing to write."""
        world, batch = self.world, self._batch
        if not any((world.facts, batch.entries, batch.blobs, self.answers.fresh, charges)):
            return False
        with self.store.transaction(epoch=self.epoch) as tx:
            tx.append(world.facts)
            tx.put_blobs(batch.blobs)
            tx.save_jobs(world.changed_jobs(), was=world.jobs_before)
            tx.save_runs(world.runs)
            tx.save_nodes(
                [*world.changed_nodes(), *world.gone], [node.identity for node in world.gone]
            )
            tx.post(batch.entries)
            tx.save_charges(charges)
            tx.remember_requests(self.answers.fresh)
            tx.set_counters(Counters(world.next_job_id, world.last_event))
        return True
