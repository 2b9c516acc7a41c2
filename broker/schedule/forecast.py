"""When waiting jobs will have room, if every job runs to its limit: for `squeue --start`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count

from accounting.ids import JobId
from broker.model.ids import NodeName
from broker.model.job import Job, JobState, Share
from broker.model.node import Node
from broker.model.site import Site
from broker.model.spec import UNLIMITED
from broker.schedule.eligible import Asks, eligible
from broker.schedule.fit import choose, room
from broker.schedule.gates import gate
from broker.schedule.priority import order

MOST = 100
"""Jobs that are looked at; who stands further back learns nothing."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a job would start, in whole seconds UTC, and on which nodes."""

    start: int
    nodes: tuple[str, ...]


def forecast(
    site: Site, jobs: Mapping[JobId, Job], nodes: Mapping[NodeName, Node], *, now: int
) -> dict[JobId, Forecast]:
    """Of jobs that wait for room alone, the most important first, each behind those before it.

    Nobody overtakes here, so a job may start earlier. Arrays are told of by their next element.
    """
    line = _Line(site, jobs, nodes, now=now)
    waiting = sorted((job for job in jobs.values() if _waits(job, now)), key=order)
    found = {}
    for job in waiting[:MOST]:
        told = line.place(job)
        if told is not None:
            found[job.id] = told
    return found


def _waits(job: Job, now: int) -> bool:
    """Whether it waits for room; an array at its limit of tasks waits for itself."""
    if job.state is not JobState.PENDING or job.completing or job.reason == "JobArrayTaskLimit":
        return False
    return gate(job, now) is None


class _Line:
    """The nodes as they will be, at an instant that only goes on."""

    def __init__(
        self,
        site: Site,
        jobs: Mapping[JobId, Job],
        nodes: Mapping[NodeName, Node],
        *,
        now: int,
    ) -> None:
        self.asks = Asks(site)
        self.at = now
        self.serial = count()
        held: dict[NodeName, list[Share]] = {}
        self.ends: list[tuple[int, int, Share]] = []
        for job in jobs.values():
            for share in job.shares:
                held.setdefault(share.node, []).append(share)
                if job.time_limit != UNLIMITED:
                    end = (job.started or now) + int(job.time_limit)
                    self.ends.append((max(end, now), next(self.serial), share))
        heapify(self.ends)
        whole = sorted(nodes.values(), key=lambda node: (node.weight, node.name))
        self.rooms = {node.name: room(node, held.get(node.name, ())) for node in whole}

    def place(self, job: Job) -> Forecast | None:
        """Waits for room for the job and takes it; None, and no time passes, if it never comes."""
        before = self.at, list(self.ends), {name: one.copy() for name, one in self.rooms.items()}
        while True:
            shares = self._fit(job)
            if shares is not None:
                return self._take(job, shares)
            if not self.ends:
                self.at, self.ends, self.rooms = before
                return None
            self.at, _, share = heappop(self.ends)
            if share.node in self.rooms:
                self.rooms[share.node].give_back(share)

    def _fit(self, job: Job) -> tuple[Share, ...] | None:
        for ask in self.asks.of(job):
            if ask.gate is None:
                may_have = [r for r in self.rooms.values() if eligible(r, job, ask.partition)]
                shares = choose(ask.demand, may_have)
                if shares is not None:
                    return shares
        return None

    def _take(self, job: Job, shares: Iterable[Share]) -> Forecast:
        names = []
        for share in shares:
            self.rooms[share.node].take(share)
            names.append(str(share.node))
            if job.time_limit != UNLIMITED:
                heappush(self.ends, (self.at + int(job.time_limit), next(self.serial), share))
        return Forecast(self.at, tuple(names))
