"""Requests that take their time: what each is to come to, kept on disk until it has."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from accounting.ids import JobId
from broker.model.commands import ASKED, ENDED, Remember
from broker.model.errors import Busy, SpzError
from broker.model.ids import StepId
from broker.model.job import Job
from broker.model.stopping import StartCluster
from broker.model.volume import VolumeState
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.job_views import cluster_status, nodes_of
from gateway.api.text import Log
from gateway.observe.processes import birth, lives

LOOK_SECONDS = 0.5
MOST_OPEN = 1000
"""Requests of one user that are not over."""
MOST_TEXT = 1 << 18
"""Characters of all lines and names of one request."""
FIRST_GAP, LONGEST_GAP = 30, 300
"""Seconds between two starts of a cluster for which there is no room."""
Word = Literal["SUCCEEDED", "FAILED", "CANCELLED"]


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


class Asked(BaseModel):
    """A verb, as it was begun by a client."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    request: str = Field(min_length=16, max_length=64, pattern=r"^[0-9A-Za-z]+$")
    verb: str = Field(min_length=1, max_length=64)
    goals: tuple[Goal, ...] = Field(max_length=10_000)
    said: tuple[str, ...] = Field(default=(), max_length=10_000)
    """What the client did at once."""
    again: bool = False
    """A cluster for which there is no room is started until there is."""
    uid: int = -1
    """Whose it is; the service sets it."""

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
        if sum(map(len, (*self.said, *(goal.name for goal in self.goals)))) > MOST_TEXT:
            raise ValueError(f"a request has at most {MOST_TEXT} characters")
        return self


class End(BaseModel):
    """What a request came to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Word
    told: tuple[str, ...] = ()


class Stand(NamedTuple):
    """How far a goal is: None as long as it is open."""

    good: bool | None
    told: str


# --- how goals stand, from what is


def _cluster(goal: Goal, seen: Snapshot) -> tuple[Job | None, str]:
    """The job, None where it is gone, and its state in SkyPilot's words."""
    job = seen.jobs.get(JobId(goal.job))
    if job is None or job.state.final:
        return None, "GONE"
    return job, cluster_status(job, nodes_of(job, seen))


def _up(goal: Goal, seen: Snapshot) -> Stand:
    job, status = _cluster(goal, seen)
    why = f" ({job.detail or job.reason})" if job is not None and status == "STOPPED" else ""
    return Stand(True if status == "UP" else None if job else False, f"{status}{why}")


def _stopped(goal: Goal, seen: Snapshot) -> Stand:
    job, status = _cluster(goal, seen)
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


def told(asked: Asked, seen: Snapshot) -> tuple[str, ...]:
    """What was done at once, and a line for each of its goals, as they stand."""
    goals = (_line(goal, STANDS[goal.to](goal, seen)) for goal in asked.goals)
    return (*asked.said, *goals)


def _line(goal: Goal, stand: Stand) -> str:
    return f"{goal.name}: {stand.told}" if goal.name else stand.told


# --- the keeper


@dataclass(slots=True)
class Keeper:
    """Sees requests through that are not over; all in the event loop."""

    desk: Desk
    log: Log
    open: dict[str, Asked] = field(default_factory=dict)
    _tried: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """How often a cluster was started for a request, and not before when again."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, asked: Asked) -> None:
        """On disk when this returns; the first of its id stands.

        Raises Busy for a user's too many.
        """
        mine = sum(one.uid == asked.uid for one in self.open.values())
        if mine >= MOST_OPEN and asked.request not in self.open:
            raise Busy("too many requests of yours are not over", hint="`spz api cancel` ends one")
        name, text = ASKED + asked.request, asked.model_dump_json()
        kept = await self.desk.ask(Remember(request=name, text=text))
        if await self.ended(asked.request) is None:
            self.open[asked.request] = Asked.model_validate_json(kept)
        self._news.set()

    async def find(self, request: str) -> Asked | None:
        kept = self.open.get(request)
        text = None if kept else await self.desk.read(self.desk.history.reply, ASKED + request)
        return kept if text is None else self._fitting(text)

    def _fitting(self, text: str) -> Asked | None:
        """None, and a line in the log, for one that another version of the service kept."""
        try:
            return Asked.model_validate_json(text)
        except ValidationError:
            self.log.exception("request.unfit")
        return None

    async def ended(self, request: str) -> End | None:
        """None as long as it is open, or for none."""
        text = await self.desk.read(self.desk.history.reply, ENDED + request)
        return None if text is None else End.model_validate_json(text)

    async def end(self, asked: Asked, end: End) -> None:
        """The first end stands."""
        name, text = ENDED + asked.request, end.model_dump_json()
        await self.desk.ask(Remember(request=name, text=text))
        self.open.pop(asked.request, None)
        self._tried = {key: one for key, one in self._tried.items() if key[0] != asked.request}

    async def take_up(self) -> None:
        """Those that an earlier service left open; what does not fit is passed over alone."""
        for text in await self.desk.read(self.desk.history.open_requests):
            asked = self._fitting(text)
            if asked is not None:
                self.open.setdefault(asked.request, asked)

    async def run(self) -> None:
        """Until it is cancelled: what an earlier service left open first."""
        while not await self._taken_up():
            await self.desk.pause(LOOK_SECONDS)
        while True:
            if not self.open:
                self._news.clear()
                await self._news.wait()
            await self.look()
            await self.desk.pause(LOOK_SECONDS)

    async def _taken_up(self) -> bool:
        try:
            await self.take_up()
        except Busy:
            return False
        except Exception:  # border: told in the log, then tried again
            self.log.exception("requests.unread")
            return False
        return True

    async def look(self) -> None:
        """Starts what is to be started, and notes what has come to an end.

        Each for itself: what goes wrong with one is its end, and nobody else's.
        """
        for asked in list(self.open.values()):
            try:
                await self._look(asked)
            except Busy:  # it is looked at again
                continue
            except SpzError as error:  # such as: whose it was is no user of this host any more
                await self._failed(asked, error.message)
            except Exception as error:  # border: the keeper goes on with the others
                self.log.exception("request.broken", request=asked.request, verb=asked.verb)
                why = f"it could not be seen through: {type(error).__name__}: {error}"
                await self._failed(asked, why)

    async def _failed(self, asked: Asked, why: str) -> None:
        """Over; where not even that can be kept it is looked at again."""
        try:
            await self.end(asked, End(state="FAILED", told=(*asked.said, why)))
        except Busy:
            return
        except Exception:  # border: the same
            self.log.exception("request.endless", request=asked.request, verb=asked.verb)

    async def _look(self, asked: Asked) -> None:
        """Raises what its user's rights, the engine or a fault of ours raise."""
        seen = await self.desk.seen(asked.uid)
        stands = [await self._stand(asked, goal, seen) for goal in asked.goals]
        if any(stand.good is None for stand in stands):
            return
        lines = (*asked.said, *map(_line, asked.goals, stands))
        good = all(stand.good for stand in stands)
        await self.end(asked, End(state="SUCCEEDED" if good else "FAILED", told=lines))

    async def _stand(self, asked: Asked, goal: Goal, seen: Snapshot) -> Stand:
        stand = STANDS[goal.to](goal, seen)
        job = seen.jobs.get(JobId(goal.job))
        if goal.to != "up" or job is None or _cluster(goal, seen)[1] != "STOPPED":
            return stand
        times, due = self._tried.get((asked.request, goal.job), (0, 0))
        if times and not asked.again:
            return Stand(False, stand.told)
        now = self.desk.now()
        if now < due:
            return stand
        gap = min(FIRST_GAP << min(times, 8), LONGEST_GAP)
        self._tried[asked.request, goal.job] = (times + 1, now + gap)
        return await self._start(asked, job, stand)

    async def _start(self, asked: Asked, job: Job, stand: Stand) -> Stand:
        """Refused is over, unless it is asked for again and again."""
        try:
            await self.desk.ask(StartCluster(job=job.id, by=await self.desk.owner(asked.uid)))
        except Busy:
            raise
        except SpzError as error:
            return Stand(None if asked.again else False, error.message)
        return stand
