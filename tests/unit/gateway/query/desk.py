"""A desk without an engine: programs that read, asked in one line."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from accounting.ids import JobId
from broker.model.errors import Unknown
from broker.model.ids import Digest, NodeName
from broker.model.job import Job, Run
from broker.model.node import Node
from broker.model.site import Site
from broker.ports import HistoryQuery
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.wire import Answer, Call, Peer
from tests.unit.gateway.query.records import NODES, NOON, SITE

UIDS = {"alice": 2001, "bob": 2002, "root": 0}


def numbered(name: str) -> int | None:
    """Of users and groups alike."""
    numbers = {str(number): number for number in UIDS.values()}
    return (UIDS | numbers).get(name)


class NoEngine:
    """Nobody may write here."""

    def ask(self, _command: object) -> NoReturn:
        raise AssertionError("a command that reads asked the engine")


@dataclass
class Clock:
    at: int = NOON

    def now(self) -> int:
        return self.at


@dataclass
class Past:
    """What is no longer in memory, as lists."""

    records: Sequence[Job] = ()
    former: Mapping[int, Sequence[Run]] = field(default_factory=dict)
    spent: Mapping[int, int] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    asked: list[HistoryQuery] = field(default_factory=list)
    reserved: Sequence[Any] = ()

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        self.asked.append(query)
        wanted = set(query.jobs)
        for job in self.records:
            whole = job.array or job.het
            base = whole.base if whole else job.id
            if not wanted or job.id in wanted or base in wanted:
                yield job

    def runs(self, job: JobId) -> Sequence[Run]:
        return self.former.get(job, ())

    def events(self, _job: JobId) -> Sequence[Any]:
        return ()

    def costs(self, jobs: Sequence[JobId]) -> Mapping[JobId, int]:
        return {job: self.spent[job] for job in jobs if job in self.spent}

    def entries(self, *, since: int, until: int) -> Iterator[Any]:
        del since, until
        return iter(())

    def book_changes(self) -> Sequence[Any]:
        return ()

    def first_use(self) -> int | None:
        return None

    def reservation_facts(self) -> Sequence[Any]:
        return self.reserved

    def used(self, **_: Any) -> Mapping[Any, int]:
        return {}

    def blob(self, digest: Digest) -> bytes:
        try:
            return self.blobs[digest]
        except KeyError:
            raise Unknown(f"no blob {digest}") from None


def snapshot(
    jobs: Sequence[Job] = (),
    *,
    nodes: Mapping[str, Node] = NODES,
    site: Site = SITE,
    version: int = 1,
) -> Snapshot:
    return Snapshot(
        version=version,
        at=NOON,
        jobs={job.id: job for job in jobs},
        nodes={NodeName(name): node for name, node in nodes.items()},
        next_job_id=700100,
        site=site,
        started_at=NOON - 3600,
    )


def desk_of(snap: Snapshot | Callable[[], Snapshot], past: Past | None = None) -> Desk:
    return Desk(
        engine=NoEngine(),
        snapshot=snap if callable(snap) else lambda: snap,
        history=past or Past(),
        clock=Clock(),
        uids=numbered,
        gids=numbered,
    )


Program = Callable[[Desk, Call], Awaitable[Answer]]


def ask(
    program: Program,
    desk: Desk,
    argv: Sequence[str],
    *,
    uid: int = 2001,
    environ: Mapping[str, str] | None = None,
) -> Answer:
    """The answer to `argv[0]` with the words behind it."""
    call = Call(
        program=argv[0],
        argv=tuple(argv[1:]),
        peer=Peer(uid=uid, gid=uid),
        request="0123456789abcdef",
        environ={"TZ": "UTC", **(environ or {})},
    )

    async def run() -> Answer:
        return await program(desk, call)

    return asyncio.run(run())


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
