"""Requests that take their time: kept on disk until each has come to what it is to."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import ValidationError

from accounting.ids import JobId
from broker.model.commands import ASKED, ENDED, Cancel, Remember, Target, Update
from broker.model.errors import Busy, Conflict, Denied, SpzError, Unknown
from broker.model.job import Job
from broker.model.stopping import StartCluster, StopCluster
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.goals import MOST_GOALS, Asked, End, Goal, Stand, Word, cluster, lines_of, stand_of
from gateway.api.text import Log

LOOK_SECONDS = 0.5
MOST_OPEN = 1000
"""Requests of one user that are not over."""
MOST_HELD = 1 << 22
"""Characters of these together: they are in memory until they are over."""
FIRST_GAP, LONGEST_GAP = 30, 300
"""Seconds between two starts of a cluster for which there is no room."""


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
        if asked.request not in self.open and self._too_many(asked):
            raise Busy("too many requests of yours are not over", hint="`spz api cancel` ends one")
        name, text = ASKED + asked.request, asked.model_dump_json()
        kept = await self.desk.ask(Remember(request=name, text=text))
        if await self.ended(asked.request) is None:
            self.open[asked.request] = Asked.model_validate_json(kept)
        self._news.set()

    def _too_many(self, asked: Asked) -> bool:
        """With this one."""
        mine = [one for one in self.open.values() if one.uid == asked.uid] + [asked]
        return (
            len(mine) > MOST_OPEN
            or sum(len(one.goals) for one in mine) > MOST_GOALS
            or sum(one.characters for one in mine) > MOST_HELD
        )

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
        good = all(stand.good for stand in stands)
        state: Word = "SUCCEEDED" if good else "FAILED"
        await self.end(asked, End(state=state, told=lines_of(asked, stands)))

    async def _stand(self, asked: Asked, goal: Goal, seen: Snapshot) -> Stand:
        stand = stand_of(goal, seen)
        if stand.good is None and goal.within is not None:
            return await self._hurried(asked, goal, stand)
        job = seen.jobs.get(JobId(goal.job))
        if goal.to != "up" or job is None or cluster(goal, seen)[1] != "STOPPED":
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

    async def _hurried(self, asked: Asked, goal: Goal, stand: Stand) -> Stand:
        """Past its time a cluster ends as without grace, once."""
        key, now = (asked.request, goal.job), self.desk.now()
        if key in self._tried or now < asked.at + (goal.within or 0):
            return stand
        self._tried[key] = (1, now)
        owner, job = await self.desk.owner(asked.uid), JobId(goal.job)
        stops = goal.to == "stopped"
        end = StopCluster(job=job, by=owner) if stops else Cancel(target=Target(job), by=owner)
        with suppress(Conflict):  # it ends by itself just now
            await self.desk.ask(end)
        return stand

    async def undo(self, asked: Asked) -> None:
        """What was set for goals that nobody has any more; a cluster that is gone stays so.

        With the rights of whose request it is, whoever cancels it: a goal may name any job.
        """
        now = self.desk.now()
        for goal in asked.goals:
            if goal.undo is None:
                continue
            change = (*goal.undo.model_dump().items(), ("idle_from", now))
            with suppress(Conflict, Unknown, Denied):
                by = await self.desk.owner(asked.uid)
                await self.desk.ask(Update(target=Target(JobId(goal.job)), by=by, spec=change))

    async def _start(self, asked: Asked, job: Job, stand: Stand) -> Stand:
        """Refused is over, unless it is asked for again and again."""
        try:
            await self.desk.ask(StartCluster(job=job.id, by=await self.desk.owner(asked.uid)))
        except Busy:
            raise
        except SpzError as error:
            return Stand(None if asked.again else False, error.message)
        return stand
