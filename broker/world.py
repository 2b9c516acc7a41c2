"""Live jobs and nodes with their indexes, changed by one writer; snapshots for readers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from accounting.change import changed
from accounting.ids import JobId
from accounting.tres import Tres
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.boots import BootsEvent, FailedBoots
from broker.model.facts import JobFact, after
from broker.model.ids import NodeName
from broker.model.job import Job, JobState, Run, Share, Step, StepState
from broker.model.left import left_behind
from broker.model.lifecycle import apply
from broker.model.node import Node, NodeState
from broker.model.nodelife import apply_node
from broker.model.partition import PartitionEvent, PartitionPatch, PartitionSet, laid_over
from broker.model.reservation import Reservation, ReservationEvent
from broker.model.site import Site, units, with_book
from broker.model.spec import Attached, DependencyKind
from broker.model.tally import Charges, Party, Used, party_of, used_by
from broker.model.volume import NamedVolume, VolumeEvent

MOVING = frozenset(NodeState) - {
    NodeState.POWERED_DOWN,
    NodeState.UP,
    NodeState.DOWN,
    NodeState.STOPPED,
}
"""Nodes for which something has to be done outside."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What readers see: the world as it was committed; `at` in whole seconds UTC."""

    version: int
    at: int
    jobs: Mapping[JobId, Job]
    """Live ones and those that ended within MinJobAge."""
    nodes: Mapping[NodeName, Node]
    """Existing ones; unused elastic names have no record."""
    next_job_id: int
    site: Site
    started_at: int
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    """By name, in the order in which they were made."""
    charges: Charges = field(default_factory=dict)
    """What past jobs used, by whose they were."""
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Fair-share factors by account and user, where they decide the order."""
    volumes: Mapping[str, NamedVolume] = field(default_factory=dict)
    boots: Mapping[str, FailedBoots] = field(default_factory=dict)
    """Kinds of machines that did not come up the last time, by name."""
    sites: int = 0
    """How often the site was replaced: no event tells of another configuration."""

    @property
    def look(self) -> tuple[int, int]:
        """The same as long as nothing but time changes what readers see."""
        return self.version, self.sites


@dataclass(slots=True)
class _Undo:
    """What was there before the step, to go back to when its transaction fails."""

    jobs: dict[JobId, Job | None] = field(default_factory=dict)
    nodes: dict[NodeName, Node | None] = field(default_factory=dict)
    next_job_id: int = 0
    last_event: int = 0
    site: Site | None = None
    reservations: dict[str, Reservation] = field(default_factory=dict)
    volumes: dict[str, NamedVolume] = field(default_factory=dict)
    patches: dict[str, PartitionPatch] = field(default_factory=dict)
    boots: dict[str, FailedBoots] = field(default_factory=dict)


class World:
    """The only home of live state. Reads are free; writes go through `apply` of an event."""

    sites = 0
    facts: list[tuple[int, ev.Event]]
    runs: list[Run]
    gone: list[Node]
    moved_jobs: dict[JobId, None]
    """Those that readers have not seen as they are now, the last one changed at the end."""
    moved_nodes: dict[NodeName, None]
    patches: dict[str, PartitionPatch]
    """What the site's partitions have that the configuration does not say."""
    boots: dict[str, FailedBoots]
    """Never changed in place: readers share it."""
    _undo: _Undo
    last_read: object = None
    """What the site makes of the task that was submitted last, as `broker.decide` keeps it."""

    def __init__(self, site: Site, *, next_job_id: int = 1, last_event: int = 0) -> None:
        self.site, self.next_job_id, self.last_event = site, next_job_id, last_event
        self.jobs: dict[JobId, Job] = {}
        self.nodes: dict[NodeName, Node] = {}
        self.pending: set[JobId] = set()
        self.timed: set[JobId] = set()
        """Pending jobs for which the mere passing of time means something."""
        self.active: set[JobId] = set()
        """Jobs that hold nodes or are not clean yet."""
        self.todo_jobs: set[JobId] = set()
        """Jobs for which something has to be done outside."""
        self.todo_nodes: set[NodeName] = set()
        self.holders: dict[NodeName, dict[JobId, Share]] = {}
        self.elements: dict[JobId, set[JobId]] = {}
        """Array base id to its elements that are in memory."""
        self.waiters: dict[JobId | tuple[str, str], set[JobId]] = {}
        """Job, or (user, name) of a singleton, to those whose dependencies name it."""
        self.singletons: dict[tuple[str, str], set[JobId]] = {}
        """(user, name) to live jobs of that name."""
        self.reservations: dict[str, Reservation] = {}
        """Never changed in place: readers share it."""
        self.volumes: dict[str, NamedVolume] = {}
        """Likewise."""
        self.tally: dict[Party, Used] = {}
        """What users' live jobs come to, by user, account, QOS and partition: for limits."""
        self.charges: Charges = {}
        """What the past jobs of each used. Never changed in place: readers share it."""
        self.ended: dict[JobId, int] = {}
        """Jobs that are over, and since when; in order of ending."""
        self.moved_jobs, self.moved_nodes, self.patches, self.boots = {}, {}, {}, {}
        self.begin()

    # --- one step: begin, apply..., then accept or roll back

    @property
    def site(self) -> Site:
        """What is configured, with what the book's changes have made of it."""
        return self._site

    @site.setter
    def site(self, site: Site) -> None:
        self._site = site
        self.sites += 1

    def begin(self) -> None:
        """Starts to collect what changes."""
        self.facts, self.runs, self.gone = [], [], []
        self._undo = _Undo(
            next_job_id=self.next_job_id,
            last_event=self.last_event,
            site=self.site,
            reservations=self.reservations,
            volumes=self.volumes,
            patches=self.patches,
            boots=self.boots,
        )

    def apply(self, event: ev.Event) -> None:
        """Numbers the event and makes it so. Raises IllegalTransition and changes nothing then."""
        number = self.last_event + 1
        if isinstance(event, JobFact):
            self._apply_job(event, number)
        elif isinstance(event, nev.NodeEvent):
            self._apply_node(event)
        elif isinstance(event, ev.BookChanged):
            self.site = with_book(self.site, changed(self.site.book, event.change))
        elif isinstance(event, ReservationEvent):
            self.reservations = after(self.reservations, event)
        elif isinstance(event, VolumeEvent):
            self.volumes = after(self.volumes, event)
        elif isinstance(event, PartitionEvent):
            self._apply_partition(event)
        elif isinstance(event, BootsEvent):
            self.boots = after(self.boots, event)
        self.last_event = number
        self.facts.append((number, event))

    def _apply_job(self, event: ev.JobEvent, number: int) -> None:
        before = self.jobs.get(event.job)
        after = apply(before, event, version=number)
        self._undo.jobs.setdefault(event.job, before)
        if isinstance(event, ev.Queued):
            self.next_job_id = max(self.next_job_id, event.job + 1)
        if before is not None and after.restarts > before.restarts:
            self.runs.append(Run(left_behind(before, event)))
        self._put_job(event.job, after)

    def _apply_partition(self, event: PartitionEvent) -> None:
        """What ends one is a site that was read anew, without it."""
        self.patches = after(self.patches, event)
        if isinstance(event, PartitionSet):
            self.site = laid_over(self.site, [event.record])

    def _apply_node(self, event: nev.NodeEvent) -> None:
        before = self.nodes.get(event.node)
        after = apply_node(before, event)
        self._undo.nodes.setdefault(event.node, before)
        if after is None and before is not None:
            self.gone.append(before)
        self._put_node(event.node, after)

    def changed_jobs(self) -> Iterator[Job]:
        return (self.jobs[job] for job in self._undo.jobs if job in self.jobs)

    @property
    def jobs_before(self) -> Mapping[JobId, Job | None]:
        """The changed ones as they were at `begin`; None for new ones."""
        return self._undo.jobs

    def changed_nodes(self) -> Iterator[Node]:
        return (self.nodes[name] for name in self._undo.nodes if name in self.nodes)

    def rollback(self) -> None:
        """The world as it was at `begin`."""
        for job_id, job in self._undo.jobs.items():
            self._put_job(job_id, job)
        for name, node in self._undo.nodes.items():
            self._put_node(name, node)
        self.next_job_id, self.last_event = self._undo.next_job_id, self._undo.last_event
        self.site = self._undo.site or self.site
        self.reservations = self._undo.reservations
        self.volumes = self._undo.volumes
        self.patches, self.boots = self._undo.patches, self._undo.boots
        self.begin()

    # --- loading and forgetting

    def load(self, jobs: Iterable[Job], nodes: Iterable[Node]) -> None:
        """Fills a fresh world from the store."""
        for job in jobs:
            self._put_job(job.id, job)
        for node in nodes:
            self._put_node(node.name, node)
        self.begin()

    def forget(self, before: int) -> int:
        """Drops from memory what ended earlier, returns how many; the store keeps them.

        Jobs that others depend on stay: how they ended will be asked again.
        """
        old = []
        for job_id, at in self.ended.items():
            if at >= before:
                break
            if not self._awaited(self.jobs[job_id]):
                old.append(job_id)
        for job_id in old:
            self._put_job(job_id, None)
        return len(old)

    def _awaited(self, job: Job) -> bool:
        base = job.array.base if job.array else job.id
        return job.id in self.waiters or base in self.waiters

    def named_dependencies(self) -> list[JobId]:
        """Ids of jobs and arrays that waiting jobs depend on, or after which others end."""
        wishes = (wish for job_id in self.pending for wish in self.jobs[job_id].after)
        named = {JobId(wish.job) for wish in wishes if wish.job is not None}
        outlived = {JobId(other) for job in self.jobs.values() for other in _outlived(job)}
        return sorted(named | outlived)

    # --- indexes

    def _put_job(self, job_id: JobId, job: Job | None) -> None:
        before = self.jobs.pop(job_id, None)
        self.moved_jobs.pop(job_id, None)
        self.moved_jobs[job_id] = None
        if before is not None:
            self._unindex(before)
        if job is not None:
            self.jobs[job_id] = job
            self._index(job)

    def _unindex(self, job: Job) -> None:
        self.pending.discard(job.id)
        self.active.discard(job.id)
        self.timed.discard(job.id)
        self.todo_jobs.discard(job.id)
        self.ended.pop(job.id, None)
        self._count(job, -1)
        for share in job.shares:
            self.holders[share.node].pop(job.id, None)
        for key, index in self._keys(job):
            there = index.get(key, set())
            there.discard(job.id)
            if not there:
                index.pop(key, None)

    def _index(self, job: Job) -> None:
        if job.over:
            self.ended[job.id] = job.ended or 0
        elif job.state is JobState.PENDING and not job.completing:
            self.pending.add(job.id)
            if job.spec.deadline is not None or any(wish.delay for wish in job.after):
                self.timed.add(job.id)
            if _outlived(job):
                self.timed.add(job.id)
        else:
            self.active.add(job.id)
        if has_work_outside(job):
            self.todo_jobs.add(job.id)
        self._count(job, 1)
        for share in job.shares:
            self.holders.setdefault(share.node, {})[job.id] = share
        for key, index in self._keys(job):
            index.setdefault(key, set()).add(job.id)

    def _count(self, job: Job, sign: int) -> None:
        if not job.over:
            billed = units(self.site, job.alloc, job.partition) if job.shares else 0
            party = party_of(job)
            if party not in self.tally:
                self.tally[party] = Used()
            self.tally[party].add(used_by(job, billed), sign)

    def _keys(self, job: Job) -> Iterator[tuple[object, dict[object, set[JobId]]]]:
        """Every (key, index) under which this record stands."""
        if job.array is not None:
            yield job.array.base, self.elements  # type: ignore[misc]
        if job.over:
            return
        name = job.owner.user, job.spec.name
        for dependency in job.after:
            if dependency.kind is DependencyKind.SINGLETON:
                yield name, self.waiters  # type: ignore[misc]
            elif dependency.job is not None:
                yield JobId(dependency.job), self.waiters  # type: ignore[misc]
        for other in _outlived(job):
            yield JobId(other), self.waiters  # type: ignore[misc]
        yield name, self.singletons  # type: ignore[misc]

    def _put_node(self, name: NodeName, node: Node | None) -> None:
        self.nodes.pop(name, None)
        self.moved_nodes.pop(name, None)
        self.moved_nodes[name] = None
        self.todo_nodes.discard(name)
        if node is None:
            return
        self.nodes[name] = node
        if node.state in MOVING:
            self.todo_nodes.add(name)

    # --- questions

    def free(self, node: Node) -> Tres:
        """What is left of the node for one more job."""
        left = node.whole
        for share in self.holders.get(node.name, {}).values():
            left = left - share.tres
        return left

    def present(self, name: NodeName, launch: int) -> Node | None:
        """The node, if its machine is that one still; None for one of the past."""
        node = self.nodes.get(name)
        return node if node is not None and node.launch == launch else None

    def holders_of(self, name: NodeName) -> list[Job]:
        return [self.jobs[job_id] for job_id in self.holders.get(name, {})]

    def serves(self, volume: NamedVolume) -> bool:
        """Whether a job that has it holds the machine on which it is."""
        if volume.host is None or self.present(volume.host, volume.host_launch) is None:
            return False
        here = Attached(volume=volume.name, path=volume.path)
        return any(here in job.spec.volumes for job in self.holders_of(volume.host))

    def held_names(self) -> frozenset[NodeName]:
        """Names of which a job holds something, also where the machine is gone already."""
        return frozenset(name for name, held in self.holders.items() if held)

    def array_jobs(self, base: JobId) -> list[Job]:
        """Every record of the array that is in memory, by id."""
        return [self.jobs[job_id] for job_id in sorted(self.elements.get(base, ()))]

    def running_elements(self, base: JobId) -> int:
        """Elements that hold nodes, for the array's % limit."""
        return sum(1 for job in self.elements.get(base, ()) if job in self.active)


def has_work_outside(job: Job) -> bool:
    """Whether the state of the job asks for something to be done on nodes."""
    if job.completing:
        return bool(job.kill_cause)
    if not job.state.holds_nodes:
        return False
    return bool(job.signals or job.notices or job.limit_serial) or any(
        step.state is StepState.PENDING
        or ((step.kill_cause or step.limit_serial or to_begin(step)) and not step.state.final)
        for step in job.steps
    )


def to_begin(step: Step) -> bool:
    """Whether a step of several nodes has not begun on all of them."""
    return bool(step.more) and len(step.parts) < len(step.shares)


def _outlived(job: Job) -> tuple[int, ...]:
    """Jobs after whose end this one ends too."""
    return job.spec.managed.outlives if job.spec.managed else ()
