"""`plan(view) -> Plan`: which jobs start where, what is bought for which, why the others wait."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job, Share
from broker.model.offer import Need, Ranked
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import UNLIMITED
from broker.schedule.demand import Demand, demand, need_of
from broker.schedule.eligible import eligible, signature
from broker.schedule.fit import Room, choose
from broker.schedule.gates import gate, partition_gate

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
    ends: Mapping[NodeName, Sequence[tuple[int, Share]]]
    """When what is held will be free at the latest."""
    taken_names: frozenset[NodeName]
    """Elastic names in use."""
    running_elements: Callable[[JobId], int]
    ready: Callable[[Job, int], bool]
    """Whether an array's element has its own dependencies met."""
    quote: Callable[[Need, Partition, Elastic], Quote]
    most_jobs: int = 1000
    """A pass looks at no more."""


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


@dataclass(frozen=True, slots=True)
class Plan:
    start: tuple[Start, ...] = ()
    buy: tuple[Buy, ...] = ()
    wait: Mapping[JobId, Wait] = field(default_factory=dict)


@dataclass(slots=True)
class _Reserved:
    """Room kept for the most important job that has to wait (EASY backfill)."""

    at: int
    nodes: frozenset[NodeName]


class _Pass:
    """State of one pass: what is still free, what is kept free, what was decided."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.rooms = {one.name: one for one in view.rooms}
        self.full: set[object] = set()
        """Asks that found no room; within a pass rooms only shrink."""
        self.names = set(view.taken_names)
        self.reserved: dict[str, _Reserved] = {}
        self.start: list[Start] = []
        self.buy: list[Buy] = []
        self.wait: dict[JobId, Wait] = {}

    def look_at(self, job: Job) -> None:
        """Starts as much of the job as has room; else notes why it waits."""
        reason = gate(job, self.view.now)
        if reason is not None:
            self.wait[job.id] = Wait(reason)
            return
        for task in self._tasks(job):
            waits = self._place(job, task)
            if waits is not None:
                self.wait[job.id] = waits
                return

    def _tasks(self, job: Job) -> Iterator[int | None]:
        """Elements that may start now, in order; None for a job that is no array."""
        if job.array is None or job.array.task is not None:
            yield None
            return
        room = len(job.array.waiting)
        if job.array.limit:
            room = job.array.limit - self.view.running_elements(job.array.base)
        for task in job.array.waiting:
            if job.after and not self.view.ready(job, task):
                self.wait[job.id] = Wait("Dependency")
                continue
            if room <= 0:
                self.wait[job.id] = Wait("JobArrayTaskLimit")
                return
            room -= 1
            yield task

    def _place(self, job: Job, task: int | None) -> Wait | None:
        """Tries its partitions in order; None if it starts or is bought for."""
        waits = Wait("PartitionConfig")
        for name in job.partitions:
            partition = self.view.site.partition(name)
            if partition is None:
                continue
            ask = demand(job.spec, partition)
            reason = partition_gate(job, partition, ask.min_nodes)
            if reason is not None:
                waits = Wait(reason)
                continue
            found = self._in_partition(job, task, partition, ask)
            if found is None:
                return None
            waits = found
        return waits

    def _in_partition(
        self, job: Job, task: int | None, partition: Partition, ask: Demand
    ) -> Wait | None:
        usable = self._usable(job, partition, ask)
        shares = choose(ask, [one for one in usable if self._may_use(one, job, partition)])
        if shares is not None:
            self._take(shares)
            self.start.append(Start(job.id, task, partition.name, shares))
            return None
        if partition.name not in self.reserved:
            self.full.add(signature(job, partition, ask))
        if partition.elastic is not None:
            return self._purchase(job, task, partition, ask)
        if partition.name in self.reserved:
            return Wait("Priority")
        self.reserved[partition.name] = self._reserve(ask, usable)
        return Wait("Resources")

    def _usable(self, job: Job, partition: Partition, ask: Demand) -> list[Room]:
        if partition.elastic is not None and signature(job, partition, ask) in self.full:
            return []
        return [one for one in self.rooms.values() if eligible(one, job, partition)]

    def _take(self, shares: Sequence[Share]) -> None:
        for share in shares:
            one = self.rooms[share.node]
            one.take(share)
            if one.free.cpu <= 0 and not one.node.declared:
                del self.rooms[share.node]

    def _may_use(self, one: Room, job: Job, partition: Partition) -> bool:
        """Backfill: not a node kept for a more important job, unless it is free again by then."""
        kept = self.reserved.get(partition.name)
        if kept is None or one.name not in kept.nodes:
            return True
        return job.time_limit != UNLIMITED and self.view.now + int(job.time_limit) <= kept.at

    def _reserve(self, ask: Demand, usable: Sequence[Room]) -> _Reserved:
        """When and where the waiting job will have room, as jobs reach their limits."""
        rooms = {one.name: _copy(one) for one in usable}
        releases = sorted(
            ((end, name, share) for name in rooms for end, share in self.view.ends.get(name, ())),
            key=lambda release: release[0],
        )
        for end, name, share in releases:
            _give_back(rooms[name], share)
            shares = choose(ask, list(rooms.values()))
            if shares is not None:
                return _Reserved(end, frozenset(share.node for share in shares))
        return _Reserved(FOREVER, frozenset())

    def _purchase(
        self, job: Job, task: int | None, partition: Partition, ask: Demand
    ) -> Wait | None:
        elastic = partition.elastic
        if elastic is None:
            return Wait("Resources")
        names = self._free_names(elastic, ask.min_nodes)
        if names is None:
            return Wait(
                "Resources", f"all {elastic.max_nodes} nodes of {partition.name} are in use"
            )
        seconds = 3600 if job.time_limit == UNLIMITED else int(job.time_limit)
        quote = self.view.quote(need_of(job.spec, ask, seconds), partition, elastic)
        if not quote.rungs:
            return Wait("Resources", quote.explain)
        self.names.update(names)
        self.buy.append(Buy(job.id, task, partition.name, names, quote.rungs, ask))
        return None

    def _free_names(self, elastic: Elastic, count: int) -> tuple[NodeName, ...] | None:
        """The lowest free names."""
        found: list[NodeName] = []
        for number in range(1, elastic.max_nodes + 1):
            name = NodeName(f"{elastic.prefix}{number}")
            if name not in self.names:
                found.append(name)
            if len(found) == count:
                return tuple(found)
        return None


def _copy(one: Room) -> Room:
    return Room(one.node, one.free, set(one.cpu_ids), set(one.gpu_ids), one.holders, one.users)


def _give_back(one: Room, share: Share) -> None:
    one.free = one.free + Tres(share.tres.cpu, share.tres.mem_mib, share.tres.node, share.tres.gres)
    one.cpu_ids |= set(share.cpu_ids)
    one.gpu_ids |= set(share.gpu_ids)
    one.holders -= 1


def plan(view: View) -> Plan:
    """What starts, what is bought, and why the rest waits; nothing is changed."""
    made = _Pass(view)
    for job in view.candidates[: view.most_jobs]:
        made.look_at(job)
    for job in view.candidates[view.most_jobs :]:
        made.wait[job.id] = Wait(gate(job, view.now) or "Priority")
    return Plan(tuple(made.start), tuple(made.buy), made.wait)
