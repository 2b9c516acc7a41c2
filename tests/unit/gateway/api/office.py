"""A desk over a real engine with a store in memory, and short words to run programs at it."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from accounting.ids import JobId
from accounting.tres import Tres
from broker.engine import Engine
from broker.model.commands import Command, Many, Once, Submit
from broker.model.errors import Denied, SpzError
from broker.model.ids import NodeName
from broker.model.job import Job, Owner
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import StepSpec, TaskSpec
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from broker.world import World
from gateway.api.desk import Desk
from gateway.api.text import Program
from gateway.api.wire import Answer, Call, Given, Peer
from tests.sim.memory_store import MemoryStore

T = TypeVar("T")

ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice")
BOB = Owner(2002, 2002, "bob", "bob", home="/home/bob")
ROOT = Owner(0, 0, "root", "root", home="/root")
PEOPLE = {owner.uid: owner for owner in (ALICE, BOB, ROOT)}
START = 1_700_000_000
NODES = tuple(
    DeclaredNode(name=NodeName(f"ec2-{n}"), whole=Tres(cpu=4, mem_mib=16000, node=1))
    for n in (1, 2)
)
SITE = Site(
    first_job_id=7,
    partitions=(
        Partition("ec2", default=True, nodes=tuple(n.name for n in NODES), default_time=3600),
        Partition("debug", nodes=(NODES[0].name,)),
    ),
    nodes=NODES,
)


class Clock:
    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        return self.at


class Office:
    """Programs run at its desk; what they ask is decided at once."""

    def __init__(self, site: Site = SITE, *, store: MemoryStore | None = None) -> None:
        self.clock = Clock()
        self.store = store or MemoryStore()
        self.engine = Engine.recovered(
            world=World(site),
            store=self.store,
            market=Quotes({}, Cooldown()),
            epoch=1,
            now=self.clock.now(),
        )
        self.engine.configure(self.clock.now())
        self.asked: list[Command] = []
        self.woken: list[str] = []
        self.requests = 0
        self.desk = Desk(
            engine=self,
            snapshot=lambda: self.engine.snapshot,
            history=None,  # type: ignore[arg-type]
            clock=self.clock,
            wake=self.woken.append,
            names=_owner,
            uids=lambda name: next((o.uid for o in PEOPLE.values() if o.user == name), None),
        )

    def ask(self, command: Command | Many) -> "Future[Any]":
        asked = command.commands if isinstance(command, Many) else (command,)
        self.asked += [one.command if isinstance(one, Once) else one for one in asked]
        answer: Future[Any] = Future()
        (reply,) = self.engine.step([command], self.clock.now(), full_pass=False).replies
        if isinstance(reply, SpzError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)
        return answer

    def run(
        self,
        program: Program,
        *argv: str,
        name: str = "",
        by: Owner = ALICE,
        environ: Mapping[str, str] | None = None,
        files: Mapping[str, Given] | None = None,
    ) -> Answer:
        """The answer of one command."""
        self.requests += 1
        call = Call(
            program=name or program.__module__.rpartition(".")[2],
            argv=argv,
            peer=Peer(by.uid, by.gid),
            request=f"{self.requests:032d}",
            cwd="/home/alice",
            environ=environ or {},
            files=files or {},
        )
        return wait(program(self.desk, call))

    def submit(self, owner: Owner = ALICE, *, hold: bool = True, **fields: object) -> JobId:
        """A job that waits, unless `hold` is false."""
        self.requests += 1
        spec = TaskSpec(**{"name": "wrap", "batch": StepSpec(name="batch"), "hold": hold, **fields})
        asked = Submit(spec=spec, owner=owner, request=f"{self.requests:032d}")
        job: JobId = self.ask(asked).result()
        self.asked.clear()
        return job

    def job(self, job: JobId) -> Job:
        return self.engine.snapshot.jobs[job]

    def change(self, job: JobId, **fields: Any) -> None:
        """Puts a record as if something had happened to it."""
        changed = replace(self.job(job), **fields)
        self.store.jobs[changed.id] = changed
        self.engine.world.load([changed], [])
        self.engine.publish(self.clock.at)

    def states(self) -> dict[int, str]:
        return {job.id: job.shown_state for job in self.engine.snapshot.jobs.values()}


def _owner(uid: int) -> Owner:
    if uid not in PEOPLE:
        raise Denied("Invalid user id")
    return PEOPLE[uid]


def wait(work: Any) -> Any:
    """The result of a coroutine, in an event loop of its own."""

    async def whole() -> Any:
        return await work

    return asyncio.run(whole())
