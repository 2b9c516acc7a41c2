"""`plan(view) -> Plan`: which jobs start where, what is bought for which, why the others wait."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from accounting.ids import JobId
from accounting.tres import sum_of
from broker.model.ids import NodeName
from broker.model.job import ArrayPlace, Job, Share
from broker.model.offer import Need
from broker.model.site import Elastic
from broker.model.spec import UNLIMITED
from broker.schedule import reserved
from broker.schedule.budgets import data_cost
from broker.schedule.demand import expected_seconds, regions
from broker.schedule.disks import Disks
from broker.schedule.eligible import Ask, too_many
from broker.schedule.fit import Room
from broker.schedule.gates import begin_of, gate
from broker.schedule.holding import Purchase, Rungs, takes_all, within
from broker.schedule.limits import Place
from broker.schedule.lots import Lot, Wish, shares_a_machine
from broker.schedule.names import Names
from broker.schedule.pool import Pool, State, chosen
from broker.schedule.settle import Settled, extension, gathering, settle
from broker.schedule.shapes import Shape, liked, shape
from broker.schedule.view import (
    BEHIND,
    FIRST,
    FOR_ROOM,
    FOREVER,
    GATED,
    NOT_FREE,
    Batch,
    Buy,
    Plan,
    Quote,
    Rider,
    Start,
    View,
    Wait,
)


class _Pass:
    """State of one pass: what is still free, what is kept free, what was decided."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.pool = Pool(view)
        self.names = Names(view, self.pool)
        self.edges = reserved.edges(view.reservations.values())
        self.searches = 0
        self.alike: dict[int | None, Wait] = {}
        """Why jobs of a kind wait, by kind; never of None."""
        self.keeping: set[str] = set()
        """Partitions for whose first waiting job nodes are kept."""
        self.start: list[Start] = []
        self.buy: list[Buy] = []
        self.wait: dict[JobId, Wait] = {}
        self.disks = Disks(view.volume_waits)
        self.blocked: set[str] = set()
        self.next_begin = FOREVER
        self.lots: dict[object, Lot] = {}
        """Jobs that can share machines: they are placed together at the end of the pass."""
        self.wishes = 0
        """How many there are in lots, at most."""
        self.shapes: dict[object, Shape] = {}
        """What would be bought for a job, by signature, expected seconds and liking."""

    def look_at(self, job: Job) -> None:
        """Starts as much of the job as has room; else notes why it waits."""
        kind = self.view.asks.kind(job)
        alike = self.alike.get(kind)
        if alike is None:
            self._look_closely(job, kind)
        else:
            self.wait[job.id] = alike

    def _look_closely(self, job: Job, kind: int | None) -> None:
        reason = self._gate(job)
        if reason is not None:
            self.wait[job.id] = GATED.get(reason) or Wait(reason)
            if reason == "BeginTime":
                self.next_begin = min(self.next_begin, begin_of(job))
            return
        held = self.disks.why_not(job)
        if held is not None:
            self.wait[job.id] = Wait(NOT_FREE, held)
            return
        if job.het is not None:
            self.settle()
            self._look_at_gang(job)
            return
        if job.array is None or job.array.task is not None:
            waits = self._place(job, None)
        else:
            waits = self._place_tasks(job, job.array)
        if waits is not None:
            self._note_wait(job, waits)
            if kind is not None and waits is not FIRST:
                self.alike[kind] = waits

    def _gate(self, job: Job) -> str | None:
        view = self.view
        return gate(job, view.now) or reserved.gate(job, view.reservations, view.now)

    def _note_wait(self, job: Job, waits: Wait) -> None:
        self.wait[job.id] = waits
        if waits.reason in FOR_ROOM:
            self.blocked.update(job.partitions)

    # --- gangs

    def _look_at_gang(self, job: Job) -> None:
        """Starts all components that wait, or none; looked at when their first one is."""
        members = self.view.gang(job)
        if not members or members[0].id != job.id:
            return
        if too_many(map(self.view.asks.of, members)):
            self.wait |= {one.id: Wait("PartitionConfig") for one in members}
            return
        pool, known = self.pool, len(self.pool.untils)
        before, starts, buys = State.of(pool), len(self.start), len(self.buy)
        placed, waits = self._place_apart(members)
        apart, pool.apart = pool.apart, set()
        pool.hopeless = before.hopeless
        if waits is None:
            self.buy[buys:] = sorted(self.buy[buys:], key=_scarcity, reverse=True)
            return
        before.restore(pool)
        del self.start[starts:], self.buy[buys:]
        for until in pool.untils[known:]:
            pool.kept |= {name: min(until, pool.kept.get(name, FOREVER)) for name in apart}
        for one in members[len(members) - placed :]:
            self.view.limits.taken_back(one)
        self.wait |= {one.id: waits for one in members}
        if waits.reason in FOR_ROOM:
            self.blocked.update(*(one.partitions for one in members))

    def _place_apart(self, members: Sequence[Job]) -> tuple[int, Wait | None]:
        """Places them, the last one first, until one has to wait: how many, and why it waits."""
        for placed, one in enumerate(reversed(members)):
            reason = self._gate(one)
            waits = Wait(reason) if reason else self._place(one, None)
            if waits is not None:
                return placed, waits
            self.pool.apart |= self._nodes_of(one)
        return len(members), None

    def _nodes_of(self, job: Job) -> set[NodeName]:
        """What this pass has given to the job."""
        given = {
            share.node for start in self.start if start.job == job.id for share in start.shares
        }
        bought = (buy for buy in self.buy if any(rider.job == job.id for rider in buy.riders))
        return given | {name for buy in bought for name in buy.names}

    # --- one job

    def _place_tasks(self, job: Job, array: ArrayPlace) -> Wait | None:
        """Starts elements in order; why the next one waits, None if none does."""
        for task in self._tasks(job, array):
            waits = self._place(job, task)
            if waits is not None:
                return waits
        return self.wait.get(job.id)

    def _tasks(self, job: Job, array: ArrayPlace) -> Iterator[int]:
        """Elements that may start now; notes why one may not."""
        room = len(array.waiting)
        if array.limit:
            room = array.limit - self.view.running_elements(array.base)
        for task in array.waiting:
            reason = self.view.task_waits(job, task) if job.after else None
            if reason is not None:
                self.wait[job.id] = Wait(reason)
                continue
            if room <= 0:
                self.wait[job.id] = Wait("JobArrayTaskLimit")
                return
            room -= 1
            yield task

    def _place(self, job: Job, task: int | None, *, beyond: Ask | None = None) -> Wait | None:
        """Tries its partitions in order, or those beyond one; None if it starts or is bought for.

        One that can share a machine is only put into a lot, which `settle` serves.
        """
        waits, asks = Wait("PartitionConfig"), self.view.asks.of(job)
        for ask in asks if beyond is None else asks[1 + asks.index(beyond) :]:
            barred = ask.gate or self.view.limits.reason(job, ask.partition.name)
            if barred is not None:
                waits = self._barred(job, barred)
                continue
            found = self._in_partition(job, task, ask)
            if found is None:
                return None
            waits = found
        return waits

    def _in_partition(self, job: Job, task: int | None, ask: Ask) -> Wait | None:
        ends = FOREVER if job.time_limit == UNLIMITED else self.view.now + int(job.time_limit)
        pool = self.pool
        behind = sum(ends > until for until in (*pool.untils, *self.edges))
        kind = ask.signature, behind
        if kind in pool.hopeless:
            return pool.hopeless[kind]
        joins = self._joins(job, ask)
        if joins and not ask.partition.nodes:
            return self._join(job, task, ask)
        if self.searches >= self.view.most_searches:
            return BEHIND
        self.searches += 1
        rooms = [one for one in pool.eligible(job, ask, declared=joins) if ends <= pool.keeps(one)]
        shares = self._worthwhile(job, ask, rooms)
        if shares is not None:
            return self._start(job, task, ask, shares=shares)
        if joins:
            return self._join(job, task, ask)
        buys = ask.partition.elastic is not None and not job.spec.reservation
        waits = self._purchase(job, task, ask) if buys else self._keep(job, ask)
        if waits is not None and pool.reserved_away(job, ask):
            waits = Wait(reserved.AWAY)
        if waits is not None and not waits.own:
            pool.hopeless[kind] = BEHIND if waits is FIRST else waits
        return waits

    def _start(
        self, job: Job, task: int | None, ask: Ask, *, shares: tuple[Share, ...]
    ) -> Wait | None:
        """On these nodes, unless what it would hold of them is beyond a limit."""
        name, limits = ask.partition.name, self.view.limits
        place = Place([share.tres for share in shares], [share.node for share in shares])
        outlay = self.pool.outlay(shares, job)
        if sum_of(place.each) != job.want or self._minds(job, name):
            barred = limits.reason(job, name, place, outlay=outlay)
            if barred is not None:
                return self._barred(job, barred)
        self.pool.take(shares, job, name)
        limits.started(job, name, place, outlay=outlay)
        self.start.append(Start(job.id, task, name, shares))
        return None

    def _minds(self, job: Job, partition: str) -> bool:
        """Whether it matters to a limit or a budget which nodes it gets."""
        limits = self.view.limits
        return limits.pays(job, partition) or limits.counts_nodes(job, partition)

    def _barred(self, job: Job, reason: str) -> Wait:
        """A limit or a budget is in the way."""
        return Wait(reason, self.view.limits.named(job, reason), own=True)

    def _keep(self, job: Job, ask: Ask) -> Wait:
        """Keeps the nodes where the first that waits in the partition will have room."""
        if not self._may_keep(job, ask):
            return BEHIND
        self.pool.keep(ask, job)
        return FIRST

    def _may_keep(self, job: Job, ask: Ask) -> bool:
        """Whether it is the first that waits there, and may keep others from nodes."""
        name = ask.partition.name
        if name in self.keeping or not self.view.limits.may_reserve(job, name):
            return False
        self.keeping.add(name)
        return True

    def _worthwhile(self, job: Job, ask: Ask, rooms: list[Room]) -> tuple[Share, ...] | None:
        """Shares of these rooms; of bought machines only if that is cheaper than new ones."""
        shares = chosen(ask, job, rooms)
        elastic = ask.partition.elastic
        if shares is None or elastic is None:
            return shares
        until = self.view.now + expected_seconds(job)
        ground, used = self.pool.ground(job, elastic), {share.node for share in shares}
        bought = [one for one in rooms if not one.node.declared and one.name in used]
        longer = sum(extension(one, ground, until) for one in bought)
        if not bought or not ground.names or longer <= self._shape(job, ask).micro_usd:
            return shares
        return chosen(ask, job, [one for one in rooms if one.node.declared])

    def _purchase(self, job: Job, task: int | None, ask: Ask) -> Wait | None:
        elastic = ask.partition.elastic
        assert elastic is not None
        made = self._shape(job, ask)
        if self.lots and made.nodes + self.wishes > len(self.pool.unused(elastic)):
            self.settle()
        names = tuple(self.pool.unused(elastic)[: made.nodes])
        if len(names) < made.nodes:
            if made.nodes <= self.names.most(elastic):  # they are kept for it
                self.pool.names.update(names)
                if self._may_keep(job, ask):
                    self.pool.keep_machines(elastic, made.nodes - len(names))
            return self.names.in_use(elastic, ask.partition, missing=made.nodes - len(names))
        if made.lacking is not None:
            return Wait(made.lacking.reason, made.lacking.explain)
        rungs, barred = self._within_limits(job, ask, made, names=names)
        if barred:
            return self._barred(job, barred)
        self.pool.names.update(names)
        rider, left = Rider(job.id, task, ask.demand), iter(names)
        batches = tuple(
            Batch(tuple(islice(left, part.nodes)), some)
            for part, some in zip(made.parts, rungs, strict=True)
        )
        self.buy.append(Buy(ask.partition.name, batches, (rider,)))
        return None

    def _within_limits(
        self, job: Job, ask: Ask, made: Shape, *, names: Sequence[NodeName]
    ) -> tuple[list[Rungs], str]:
        """Offers of which it may hold all that it would, which is noted; else why it waits."""
        name, limits, elastic = ask.partition.name, self.view.limits, ask.partition.elastic
        if elastic is None or not (takes_all(ask.demand) or self._minds(job, name)):
            limits.started(job, name, Place(names=names))
            return [part.quote.rungs for part in made.parts], ""
        rates = self.view.site.rates
        whole = Purchase(
            ask.demand, elastic, made.nodes, lambda region: data_cost(job, (region,), rates)
        )
        rungs, most, barred = within(
            whole,
            made.parts,
            lambda one: limits.reason(job, name, Place(one.each, names), outlay=one.outlay),
        )
        if barred is None:
            limits.started(job, name, Place(most.each, names), outlay=most.outlay)
        return rungs, barred or ""

    def _shape(self, job: Job, ask: Ask) -> Shape:
        """What would be bought for the job alone."""
        key = ask.signature, expected_seconds(job), job.spec.resources.prefer, regions(job)
        if key not in self.shapes:
            self.shapes[key] = shape(job, ask.demand, self._quote(job, ask.partition.elastic))
        return self.shapes[key]

    def _quote(self, job: Job, elastic: Elastic | None) -> Callable[[Need], Quote]:
        assert elastic is not None
        wish = job.spec.resources.prefer
        return partial(liked, self.view.quote, elastic=elastic, wish=wish)

    # --- lots

    def _joins(self, job: Job, ask: Ask) -> bool:
        """Whether it is planned together with its like."""
        elastic = ask.partition.elastic
        apart = job.spec.reservation or ask.demand.most_cpus is not None
        if elastic is None or apart or not shares_a_machine(job, ask.demand):
            return False
        if self._minds(job, ask.partition.name):
            return False  # what its machine costs at worst is known only where it is its alone
        return self._shape(job, ask).nodes == 1

    def _join(self, job: Job, task: int | None, ask: Ask) -> Wait | None:
        """Puts the job with its like; why it waits, if there can be no place for it."""
        elastic = ask.partition.elastic
        assert elastic is not None
        made = self._shape(job, ask)
        if made.lacking is not None:
            return Wait(made.lacking.reason, made.lacking.explain)
        user, looks = "" if elastic.share_users else job.owner.user, ask.signature
        if not self.names.may_find_room(made.need, user, signature=looks, elastic=elastic):
            return self._hopeless(ask, self.names.in_use(elastic, ask.partition))
        asked = job.spec.resources
        sort = asked.constraint, asked.prefer, asked.any_of, asked.cpus_exactly, asked.tmp_mib
        key = ask.partition.name, user, sort, asked.exclude, made.need.gpu_type
        if key not in self.lots:
            self.lots[key] = Lot(ask.partition, elastic)
        self.lots[key].add(Wish(job, task, ask), made.need)
        self.wishes += 1
        self.view.limits.started(job, ask.partition.name)
        return None

    def _hopeless(self, ask: Ask, waits: Wait) -> Wait:
        """Notes that nobody who asks alike finds a place any more, however short it runs."""
        for behind in range(len(self.pool.untils) + 1):
            self.pool.hopeless[ask.signature, behind] = waits
        return waits

    def settle(self) -> None:
        """Serves all lots; who finds no place tries the partitions that are left, or waits."""
        while self.lots:
            lot = self.lots.pop(next(iter(self.lots)))
            job, elastic = next(lot.left).job, lot.elastic
            quote = self._quote(job, elastic)
            self._note(lot, settle(lot, self.pool.ground(job, elastic), quote), quote)
            fresh = gathering(lot, self.view.now)
            for wish in list(lot.left):
                self._left_over(wish, elastic, fresh=fresh)
        self.wishes = 0

    def _note(self, lot: Lot, done: Settled, quote: Callable[[Need], Quote]) -> None:
        self.start += done.starts
        names = self.pool.unused(lot.elastic)
        for name, (need, riders) in zip(names, done.buys, strict=False):
            self.pool.names.add(name)
            riding = tuple(wish.rider for wish in riders)
            rungs = quote(need).rungs
            self.buy.append(Buy(lot.partition.name, (Batch((name,), rungs),), riding))
        self.pool.tidy()
        for wish, name in done.waits:
            text = f"{name} is free sooner than a new machine, and costs less"
            self._take_back(wish, Wait("Resources", text))

    def _left_over(self, wish: Wish, elastic: Elastic, *, fresh: bool) -> None:
        """One for which there was no place; those that have just come are bought for together."""
        if fresh:
            self._take_back(wish, None)
            self.next_begin = min(self.next_begin, self.view.now + 1)
            return
        self._take_back(wish, None)
        waits = self.names.in_use(elastic, wish.ask.partition)
        if wish.ask is not self.view.asks.of(wish.job)[-1]:
            other = self._place(wish.job, wish.task, beyond=wish.ask)
            if other is None or other.reason not in FOR_ROOM:
                return
        self._note_wait(wish.job, waits)

    def _take_back(self, wish: Wish, waits: Wait | None) -> None:
        where = wish.ask.partition.name
        self.view.limits.taken_back(wish.job, where)
        if waits is not None:
            self._note_wait(wish.job, waits)


def _scarcity(buy: Buy) -> tuple[bool, int]:
    """What was refused lately and what is dear is asked for first: the others are not had then."""
    best = [batch.rungs[0] for batch in buy.batches]
    cooling = any(one.cooling_until is not None for one in best)
    return cooling, max(one.offer.micro_usd_per_hour for one in best)


def plan(view: View) -> Plan:
    """What starts, what is bought, and why the rest waits; nothing is changed."""
    made = _Pass(view)
    for job in view.candidates:
        made.look_at(job)
    made.settle()
    return Plan(
        start=tuple(made.start),
        buy=tuple(made.buy),
        wait=made.wait,
        blocked=frozenset(made.blocked),
        next_begin=made.next_begin,
        let_go=tuple(made.names.let_go()),
    )
