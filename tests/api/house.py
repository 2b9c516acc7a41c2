"""Our own application over a simulation, and who speaks with it."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from accounting.ids import JobId
from broker.model.commands import ASKED, ENDED, Command
from broker.model.errors import Denied, SpzError
from broker.model.facts import JobFact
from broker.model.job import Job, Owner
from broker.optimize.cooldown import Cooldown
from broker.ports import HistoryQuery
from broker.quotes import Quotes
from gateway.api.app import build_app
from gateway.api.desk import Desk
from gateway.api.jobs import router
from gateway.api.keeper import Keeper
from tests.api.asking import ask
from tests.sim.harness import CATALOG, Simulation
from tests.sim.site import SITE
from tests.unit.gateway.api.test_text import Log

ANN = Owner(os.getuid(), os.getgid(), "ann", "ann", home="/home/ann")
BOB = Owner(ANN.uid + 1, 2, "bob", "bob", home="/home/bob")
BOSS = Owner(ANN.uid + 2, 3, "boss", "boss")
PEOPLE = {one.uid: one for one in (ANN, BOB, BOSS)}
RUN_SECONDS = 30


class Past:
    """What the simulation's store kept, as history."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        return (job for job in self.sim.store.jobs.values() if job.id in query.jobs)

    def events(self, job: JobId) -> Sequence[object]:
        kept = (event for _, event in self.sim.store.events)
        return [event for event in kept if isinstance(event, JobFact) and event.job == job]

    def reply(self, request: str) -> str | None:
        return self.sim.store.requests.get(request)

    def open_requests(self) -> Sequence[str]:
        kept = self.sim.store.requests
        asked = [name for name in kept if name.startswith(ASKED)]
        return [kept[one] for one in asked if ENDED + one.removeprefix(ASKED) not in kept]

    def costs(self, jobs: Sequence[JobId]) -> Mapping[JobId, int]:
        found: dict[JobId, int] = {}
        for entry in self.sim.store.entries.values():
            if entry.job in jobs and entry.job is not None:
                found[entry.job] = found.get(entry.job, 0) + entry.cost
        return found


class House:
    """The application over a simulation; `call` speaks as somebody."""

    def __init__(self, *private: str) -> None:
        site = replace(SITE, admins=frozenset({BOSS.uid}), private=frozenset(private))
        self.sim = Simulation(site=site, fates=lambda key, order: (RUN_SECONDS, 0, 0))
        self.desk = Desk(
            engine=self,
            snapshot=lambda: self.sim.engine.snapshot,
            history=Past(self.sim),  # type: ignore[arg-type]
            clock=self.sim.clock,
            names=_owner,
        )
        self.log = Log()
        self.keeper = Keeper(self.desk, self.log)
        self.backups: list[Path] = []
        routes = router(
            market=Quotes({"fake": CATALOG}, Cooldown()),
            providers={"fake": self.sim.cloud},
            backup=self._back_up,
            keeper=self.keeper,
        )
        self.app = build_app(self.desk, {}, log=self.log, routers=[routes])
        self.requests = 0

    def _back_up(self, path: Path) -> None:
        path.write_bytes(b"copy")

    def ask(self, command: Command) -> "Future[Any]":
        self.sim.ask(command)
        self.sim.step()
        reply = next(reply for asked, reply in self.sim.replies if asked is command)
        answer: Future[Any] = Future()
        if isinstance(reply, SpzError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)
        return answer

    def call(
        self, method: str, route: str, body: object = None, *, by: Owner = ANN
    ) -> tuple[int, Any]:
        """Status and body."""
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        answer = ask(self.app, method, route, uid=by.uid, content=content, headers=headers)
        kind = answer.headers["content-type"]
        return answer.status_code, answer.json() if "json" in kind else answer.content

    def launch(self, task: str = "run: x", *, by: Owner = ANN, **more: object) -> tuple[int, Any]:
        return self.call("POST", "/v1/launch", self.body(task, **more), by=by)

    def body(self, task: str, **more: object) -> dict[str, object]:
        self.requests += 1
        usual = {
            "request": f"{self.requests:032d}",
            "task": task,
            "cluster": "dev",
            "cwd": "/home/ann",
            "home": "/home/ann",
            "logs": "/home/ann/sky_logs",
        }
        return {**usual, **more}

    def wait(self, seconds: int) -> None:
        self.sim.run(seconds, until_quiet=False)


def _owner(uid: int) -> Owner:
    if uid not in PEOPLE:
        raise Denied("Invalid user id")
    return PEOPLE[uid]


def refusal(answer: tuple[int, Any]) -> tuple[int, str, str]:
    status, body = answer
    return status, body["error"]["message"], body["error"]["hint"]
