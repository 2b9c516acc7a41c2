"""What jobs used, kept as stretches of time that are folded from the events."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

from accounting.ids import JobId
from broker.model import events as ev
from broker.model.job import Job, JobState
from broker.model.lifecycle import apply
from broker.model.site import Site, units

if TYPE_CHECKING:
    from tests.sim.harness import Simulation


@dataclass(frozen=True)
class Stretch:
    """A job that used what it holds, from an instant to another."""

    job: Job
    since: int
    until: int
    factor: float
    """Of its QOS when it was over."""


@dataclass
class History:
    """Keeps its own record of all jobs and of the time for which they used something."""

    jobs: dict[JobId, Job] = field(default_factory=dict)
    past: list[Stretch] = field(default_factory=list)
    going: dict[JobId, int] = field(default_factory=dict)
    """Since when those use something that do."""
    fresh: list[ev.JobEvent] = field(default_factory=list)
    """What happened in the latest step."""
    now: int = 0
    _events: int = 0

    def fold(self, sim: "Simulation") -> None:
        new = sim.store.events[self._events :]
        self._events += len(new)
        self.now = sim.clock.time
        self.fresh = [event for _, event in new if isinstance(event, ev.JobEvent)]
        for number, event in new:
            if isinstance(event, ev.JobEvent):
                before = self.jobs.get(event.job)
                after = self.jobs[event.job] = apply(before, event, version=number)
                self._note(sim.world.site, before, after, event.at)

    def _note(self, site: Site, before: Job | None, after: Job, at: int) -> None:
        if before is not None and before.id in self.going and not _goes(after):
            since = self.going.pop(before.id)
            self.past.append(Stretch(before, since, at, site.book.qos[before.qos].usage_factor))
        if _goes(after):
            self.going.setdefault(after.id, at)

    def seconds(
        self, site: Site, name: str, counts: Callable[[Job], bool], *, keep: float
    ) -> float:
        """TRES-seconds (of `wall`: seconds) of such jobs, as they count now."""
        running = [
            Stretch(job, since, self.now, site.book.qos[job.qos].usage_factor)
            for job, since in ((self.jobs[job], since) for job, since in self.going.items())
        ]
        return sum(
            _amount(site, one.job, name)
            * one.factor
            * _counted(one.until - one.since, self.now - one.until, keep)
            for one in (*self.past, *running)
            if counts(one.job)
        )


def _goes(job: Job) -> bool:
    running = job.state is JobState.RUNNING and bool(job.shares)
    return running and not job.configuring and not job.completing


def _amount(site: Site, job: Job, name: str) -> int:
    if name == "wall":
        return 1
    if name == "billing":
        return units(site, job.alloc, job.partitions[0])
    kind, _, of = name.partition("/")
    if of:
        return dict(job.alloc.gres).get(of, 0)
    return int(getattr(job.alloc, {"mem": "mem_mib"}.get(kind, kind)))


def _counted(seconds: int, ago: int, keep: float) -> float:
    """What so many seconds count, so long after they were over."""
    if keep == 1.0:
        return seconds
    return keep**ago * (1 - keep**seconds) / -log(keep)
