"""`plan(view) -> Plan`: which jobs start where, what is bought for which, why the others wait."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from accounting.ids import JobId
from broker.model.ids import NodeName
from broker.model.job import ArrayPlace, Job, Share
from broker.model.offer import Need, Ranked
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import UNLIMITED
from broker.schedule.demand import Demand, expected_seconds, need_of
from broker.schedule.eligible import Ask, Asks, eligible
from broker.schedule.fit import Room, choose
from broker.schedule.gates import begin_of, capacity, gate
from broker.schedule.limits import Keeper

FOREVER = 10**12
"""An instant after everything: the end of what has no time limit."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Ranked offers for a need, or why there are none."""

    rungs: tuple[Ranked, ...]
    explain: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """All that planning looks at; instants in whole seconds UTC."""

    now: int
    site: Site
    candidates: Sequence[Job]
    """Jobs that could start, the most important first."""
    rooms: Sequence[Room]
    """Nodes that take work, in the order in which they are filled."""
    ends: Callable[[NodeName], Sequence[tuple[int, Share]]]
    """When what is held of a node will be free at the latest."""
    taken_names: frozenset[NodeName]
    """Elastic names in use."""
    running_elements: Callable[[JobId], int]
    task_waits: Callable[[Job, int], str | None]
    """Why an array's element waits for its own dependencies, None if it does not."""
    quote: Callable[[Need, Partition, Elastic], Quote]
    gang: Callable[[Job], Sequence[Job]]
    """A heterogeneous job's components that wait, the leader first."""
    limits: Keeper
    """Limits of QOS and associations; the pass notes there what it starts."""
    asks: Asks
    most_searches: int = 1000
    """A pass searches the nodes for room no more often; what fits nowhere is searched for once."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job, or one element of an array, gets room on nodes that exist."""

    job: JobId
    task: int | None
    partition: str
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Buy:
    """Nodes of these names are to be bought for it from the first rung that works."""

    job: JobId
    task: int | None
    partition: str
    names: tuple[NodeName, ...]
    rungs: tuple[Ranked, ...]
    ask: Demand


@dataclass(frozen=True, slots=True)
class Wait:
    reason: str
    detail: str = ""


FOR_ROOM = ("Resources", "Priority")
"""Why those wait whom a new job must not overtake."""
FIRST = Wait("Resources")
BEHIND = Wait("Priority")
GATED = {reason: Wait(reason) for reason in ("Dependency", "BeginTime")}
"""Values shared by the many that wait for the same reason."""


@dataclass(frozen=True, slots=True)
class Plan:
    start: tuple[Start, ...] = ()
    buy: tuple[Buy, ...] = ()
    wait: Mapping[JobId, Wait] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    """Partitions in which somebody waits who could start if there were room."""
    next_begin: int = FOREVER
    """When the first of those may start that wait for their begin time."""


class _Pass:
    """State of one pass: what is still free, what is kept free, what was decided."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.rooms = {one.name: one for one in view.rooms}
        self.searches = 0
        self.hopeless: dict[tuple[int, int], Wait] = {}
        """Asks that found no room, and why their like waits: within a pass rooms only shrink."""
        self.alike: dict[int | None, Wait] = {}
        """Why jobs of a kind wait, by kind; never of None."""
        self.names = set(view.taken_names)
        self.unused: dict[tuple[str, int], list[NodeName]] = {}
        """Elastic names that were free when last looked at, lowest first."""
        self.kept: dict[NodeName, int] = {}
        """Nodes kept for the first job that has to wait, and until when (EASY backfill)."""
        self.untils: list[int] = []
        self.keeping: set[str] = set()
        """Partitions for whose first waiting job nodes are kept."""
        self.start: list[Start] = []
        self.buy: list[Buy] = []
        self.wait: dict[JobId, Wait] = {}
        self.apart: set[NodeName] = set()
        """Nodes of the gang under way: its components share none (Slurm 25.11)."""
        self.blocked: set[str] = set()
        self.next_begin = FOREVER

    def look_at(self, job: Job) -> None:
        """Starts as much of the job as has room; else notes why it waits."""
        kind = self.view.asks.kind(job)
        alike = self.alike.get(kind)
        if alike is None:
            self._look_closely(job, kind)
        else:
            self.wait[job.id] = alike

    def _look_closely(self, job: Job, kind: int | None) -> None:
        reason = gate(job, self.view.now)
        if reason is not None:
            self.wait[job.id] = GATED.get(reason) or Wait(reason)
            if reason == "BeginTime":
                self.next_begin = min(self.next_begin, begin_of(job))
            return
        if job.het is not None:
            self._look_at_gang(job)
            return
        if job.array is None or job.array.task is not None:
            waits = self._place(job, None)
        else:
            waits = self._place_tasks(job, job.array)
        if waits is not None:
            self.wait[job.id] = waits
            if waits.reason in FOR_ROOM:
                self.blocked.update(job.partitions)
            if kind is not None and waits is not FIRST:
                self.alike[kind] = waits

    def _look_at_gang(self, job: Job) -> None:
        """Starts all components that wait, or none; looked at when their first one is."""
        members = self.view.gang(job)
        if not members or members[0].id != job.id:
            return
        if self._beyond(members):
            self.wait |= {one.id: Wait("PartitionConfig") for one in members}
            return
        before, known = _State.of(self), len(self.untils)
        placed, waits = self._place_apart(members)
        apart, self.apart = self.apart, set()
        self.hopeless = before.hopeless
        if waits is None:
            return
        before.restore(self)
        for until in self.untils[known:]:
            self.kept |= {name: min(until, self.kept.get(name, FOREVER)) for name in apart}
        for one in members[len(members) - placed :]:
            self.view.limits.started(one, one.want, sign=-1)
        self.wait |= {one.id: waits for one in members}
        if waits.reason in FOR_ROOM:
            self.blocked.update(*(one.partitions for one in members))

    def _place_apart(self, members: Sequence[Job]) -> tuple[int, Wait | None]:
        """Places them, the last one first, until one has to wait: how many, and why it waits."""
        for placed, one in enumerate(reversed(members)):
            reason = gate(one, self.view.now)
            waits = Wait(reason) if reason else self._place(one, None)
            if waits is not None:
                return placed, waits
            self.apart |= self._nodes_of(one)
        return len(members), None

    def _beyond(self, members: Sequence[Job]) -> bool:
        """Whether they want more nodes of one partition together than it can ever have."""
        wanted: dict[str, int] = {}
        for ask in (asks[0] for asks in map(self.view.asks.of, members) if len(asks) == 1):
            name = ask.partition.name
            wanted[name] = wanted.get(name, 0) + ask.demand.min_nodes
            if wanted[name] > capacity(ask.partition):
                return True
        return False

    def _nodes_of(self, job: Job) -> set[NodeName]:
        """What this pass has given to the job."""
        given = {
            share.node for start in self.start if start.job == job.id for share in start.shares
        }
        return given | {name for buy in self.buy if buy.job == job.id for name in buy.names}

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

    def _place(self, job: Job, task: int | None) -> Wait | None:
        """Tries its partitions in order; None if it starts or is bought for."""
        waits = Wait("PartitionConfig")
        for ask in self.view.asks.of(job):
            barred = ask.gate or self.view.limits.reason(job, ask.partition.name)
            if barred is not None:
                waits = Wait(barred)
                continue
            found = self._in_partition(job, task, ask)
            if found is None:
                self.view.limits.started(job, job.want)
                return None
            waits = found
        return waits

    def _in_partition(self, job: Job, task: int | None, ask: Ask) -> Wait | None:
        ends = FOREVER if job.time_limit == UNLIMITED else self.view.now + int(job.time_limit)
        behind = sum(ends > until for until in self.untils) if self.untils else 0
        kind = ask.signature, behind
        if kind in self.hopeless:
            return self.hopeless[kind]
        if self.searches >= self.view.most_searches:
            return BEHIND
        self.searches += 1
        free = (one for one in self.rooms.values() if one.name not in self.apart)
        may_have = (one for one in free if ends <= self.kept.get(one.name, FOREVER))
        shares = choose(ask.demand, [r for r in may_have if eligible(r, job, ask.partition)])
        if shares is not None:
            self._take(shares, job)
            self.start.append(Start(job.id, task, ask.partition.name, shares))
            return None
        if ask.partition.elastic is not None:
            waits = self._purchase(job, task, ask)
            if waits is not None:
                self.hopeless[kind] = waits
            return waits
        self.hopeless[kind] = BEHIND
        return BEHIND if ask.partition.name in self.keeping else self._keep(job, ask)

    def _take(self, shares: Sequence[Share], job: Job) -> None:
        for share in shares:
            one = self.rooms[share.node]
            one.take(share)
            one.users |= {job.owner.user}
            if one.free.cpu <= 0 and not one.node.declared:
                del self.rooms[share.node]

    def _keep(self, job: Job, ask: Ask) -> Wait:
        """Keeps the nodes where it will have room first, as jobs reach their limits."""
        self.keeping.add(ask.partition.name)
        free = (one for one in self.rooms.values() if one.name not in self.apart)
        usable = [one for one in free if eligible(one, job, ask.partition)]
        rooms = {one.name: one.copy() for one in usable}
        releases = sorted(
            ((end, name, share) for name in rooms for end, share in self.view.ends(name)),
            key=lambda release: release[0],
        )
        for end, name, share in releases:
            rooms[name].give_back(share)
            shares = choose(ask.demand, list(rooms.values()))
            if shares is not None:
                self.untils.append(end)
                for taken in shares:
                    self.kept[taken.node] = min(end, self.kept.get(taken.node, FOREVER))
                break
        return FIRST

    def _purchase(self, job: Job, task: int | None, ask: Ask) -> Wait | None:
        elastic = ask.partition.elastic
        if elastic is None:
            return Wait("Resources")
        names = self._free_names(elastic, ask.demand.min_nodes)
        if names is None:
            text = f"all {elastic.max_nodes} nodes of {ask.partition.name} are in use"
            return Wait("Resources", text)
        need = need_of(job.spec, ask.demand, expected_seconds(job))
        quote = self.view.quote(need, ask.partition, elastic)
        if not quote.rungs:
            return Wait("Resources", quote.explain)
        self.names.update(names)
        self.buy.append(Buy(job.id, task, ask.partition.name, names, quote.rungs, ask.demand))
        return None

    def _free_names(self, elastic: Elastic, count: int) -> tuple[NodeName, ...] | None:
        """The lowest free names."""
        key = elastic.prefix, elastic.max_nodes
        if key not in self.unused:
            numbers = range(1, elastic.max_nodes + 1)
            self.unused[key] = [NodeName(f"{elastic.prefix}{number}") for number in numbers]
        free = self.unused[key] = [name for name in self.unused[key] if name not in self.names]
        return tuple(free[:count]) if len(free) >= count else None


@dataclass(slots=True)
class _State:
    """What a pass stood at before a gang was tried."""

    rooms: dict[NodeName, Room]
    names: set[NodeName]
    hopeless: dict[tuple[int, int], Wait]
    starts: int
    buys: int

    @classmethod
    def of(cls, made: _Pass) -> "_State":
        return cls(
            rooms={name: one.copy() for name, one in made.rooms.items()},
            names=set(made.names),
            hopeless=dict(made.hopeless),
            starts=len(made.start),
            buys=len(made.buy),
        )

    def restore(self, made: _Pass) -> None:
        """Takes back what was given; nodes that are kept for the gang stay so."""
        made.rooms, made.names = self.rooms, self.names
        del made.start[self.starts :], made.buy[self.buys :]
        made.unused = {}


def plan(view: View) -> Plan:
    """What starts, what is bought, and why the rest waits; nothing is changed."""
    made = _Pass(view)
    for job in view.candidates:
        made.look_at(job)
    return Plan(
        start=tuple(made.start),
        buy=tuple(made.buy),
        wait=made.wait,
        blocked=frozenset(made.blocked),
        next_begin=made.next_begin,
    )
