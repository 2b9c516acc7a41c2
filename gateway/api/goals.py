"""What a request is to come to, and how far it has come, from what is."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from accounting.ids import JobId
from broker.model.ids import StepId
from broker.model.job import Job
from broker.model.volume import VolumeState
from broker.world import Snapshot
from gateway.api.job_views import cluster_status, nodes_of
from gateway.observe.processes import birth, lives

MOST_GOALS = 10_000
"""Of one request, and of all of one user's that are not over: each look goes through them."""
MOST_TEXT = 1 << 18
"""Characters of all lines and names of one request."""
Word = Literal["SUCCEEDED", "FAILED", "CANCELLED"]


class Idle(BaseModel):
    """A cluster's autostop, by the fields of its spec."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    idle_seconds: int | None = Field(default=None, ge=0)
    idle_stops: bool = False
    idle_past_logins: bool = False


class Goal(BaseModel):
    """What one thing is to become."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: Literal["up", "stopped", "gone", "over", "ready", "deleted", "told"]
    job: int = 0
    run: int = Field(default=1, ge=1)
    name: str = Field(default="", max_length=1 << 16)
    """Of the cluster or volume; of what else is asked, for people."""
    pid: int = Field(default=0, ge=0)
    """Of the process on this host that does it, and tells its end."""
    birth: str = Field(default="", max_length=64)
    """Of that process: another one of its number is another."""
    undo: Idle | None = None
    """What the cluster has again if this is cancelled before it is so."""
    within: int | None = Field(default=None, ge=0)
    """Seconds after which a cluster is stopped, or let go, whatever it still does."""


class Asked(BaseModel):
    """A verb, as it was begun by a client."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    request: str = Field(min_length=16, max_length=64, pattern=r"^[0-9A-Za-z]+$")
    verb: str = Field(min_length=1, max_length=64)
    goals: tuple[Goal, ...] = Field(max_length=MOST_GOALS)
    said: tuple[str, ...] = Field(default=(), max_length=10_000)
    """What the client did at once."""
    again: bool = False
    """A cluster for which there is no room is started until there is."""
    uid: int = -1
    at: int = 0
    """Whose it is, and since when; the service sets both."""

    @field_validator("goals")
    @classmethod
    def _of_one_process(cls, goals: tuple[Goal, ...]) -> tuple[Goal, ...]:
        """Each look at a process is a read of its own, in the loop that serves everybody."""
        if sum(goal.to == "told" for goal in goals) > 1:
            raise ValueError("a request is done by one process")
        return goals

    @model_validator(mode="after")
    def _of_a_size(self) -> "Asked":
        """It is held in memory until it is over."""
        if self.characters > MOST_TEXT:
            raise ValueError(f"a request has at most {MOST_TEXT} characters")
        return self

    @property
    def characters(self) -> int:
        """Of all its lines and names."""
        return sum(map(len, (*self.said, *(goal.name for goal in self.goals))))


class End(BaseModel):
    """What a request came to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Word
    told: tuple[str, ...] = ()


class Stand(NamedTuple):
    """How far a goal is: None as long as it is open."""

    good: bool | None
    told: str


def cluster(goal: Goal, seen: Snapshot) -> tuple[Job | None, str]:
    """The job, None where it is gone, and its state in SkyPilot's words."""
    job = seen.jobs.get(JobId(goal.job))
    if job is None or job.state.final:
        return None, "GONE"
    return job, cluster_status(job, nodes_of(job, seen))


def _up(goal: Goal, seen: Snapshot) -> Stand:
    job, status = cluster(goal, seen)
    why = f" ({job.detail or job.reason})" if job is not None and status == "STOPPED" else ""
    return Stand(True if status == "UP" else None if job else False, f"{status}{why}")


def _stopped(goal: Goal, seen: Snapshot) -> Stand:
    job, status = cluster(goal, seen)
    return Stand(True if status == "STOPPED" else None if job else False, status)


def _gone(goal: Goal, seen: Snapshot) -> Stand:
    job = seen.jobs.get(JobId(goal.job))
    done = job is None or job.over
    return Stand(True if done else None, "GONE" if done else "TERMINATING")


def _over(goal: Goal, seen: Snapshot) -> Stand:
    job = seen.jobs.get(JobId(goal.job))
    run = job.step(StepId(str(goal.run - 1))) if job is not None else None
    if job is None or job.over or run is None or run.state.final:
        return Stand(True, f"run {goal.run} is over")
    return Stand(None, f"run {goal.run} ends")


def _ready(goal: Goal, seen: Snapshot) -> Stand:
    found = seen.volumes.get(goal.name)
    if found is None or found.state is VolumeState.FAILED:
        return Stand(False, f"FAILED {found.told}" if found else "GONE")
    ready = found.state is VolumeState.READY
    return Stand(True if ready else None, "READY" if ready else found.state.name)


def _deleted(goal: Goal, seen: Snapshot) -> Stand:
    there = goal.name in seen.volumes
    return Stand(None if there else True, "DELETING" if there else "GONE")


def _told(goal: Goal, seen: Snapshot) -> Stand:
    """Done by a process of the client's, which tells its end by itself."""
    if birth(goal.pid) == goal.birth if goal.birth else lives(goal.pid):
        return Stand(None, "under way")
    return Stand(False, f"the process that did it (pid {goal.pid}) ended without a word")


STANDS: Mapping[str, Callable[[Goal, Snapshot], Stand]] = {
    "up": _up,
    "stopped": _stopped,
    "gone": _gone,
    "over": _over,
    "ready": _ready,
    "deleted": _deleted,
    "told": _told,
}


def stand_of(goal: Goal, seen: Snapshot) -> Stand:
    return STANDS[goal.to](goal, seen)


def told(asked: Asked, seen: Snapshot) -> tuple[str, ...]:
    """What was done at once, and a line for each of its goals, as they stand."""
    return lines_of(asked, [stand_of(goal, seen) for goal in asked.goals])


def lines_of(asked: Asked, stands: Iterable[Stand]) -> tuple[str, ...]:
    """The same, of goals that were looked at."""
    return (*asked.said, *map(_line, asked.goals, stands))


def _line(goal: Goal, stand: Stand) -> str:
    return f"{goal.name}: {stand.told}" if goal.name else stand.told
