"""What programs and routes may use: the snapshot, the engine's inbox, history, names."""

import asyncio
import grp
import os
import platform
import pwd
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from accounting.ids import JobId
from broker.model.commands import Command, Many, Once, Repeated
from broker.model.cycles import Cycles
from broker.model.errors import Denied
from broker.model.ids import Digest, NodeName, digest_of
from broker.model.job import Owner
from broker.model.site import Site
from broker.optimize.cooldown import Cooling
from broker.ports import Clock, History, Reach
from broker.run.pushed import Pushes
from broker.schedule.accrued import accrued
from broker.schedule.gates import in_its_groups
from broker.world import Snapshot
from gateway.api.auth import may_write, someone_elses
from gateway.api.crowd import Looks
from gateway.api.holders import Bells, Holders
from gateway.api.wire import Call
from gateway.api.zone import zone_of
from gateway.observe.times import RequestTimes
from gateway.query.privacy import SEES_ALL, Viewer, seen, viewer
from sbatch_shim.grammar.instants import Zone
from sbatch_shim.grammar.values import read_digits

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4
NAMES_KEPT = 30.0
"""Seconds that what the user database said about a uid is believed."""


class Archive(Protocol):
    """Where old records go; both block, and raise OSError and Busy."""

    @property
    def ages(self) -> Mapping[str, int]:
        """Seconds by kind of record, as configured."""
        ...

    def dump(self, ages: Mapping[str, int], folder: Path | None) -> Mapping[str, int]: ...

    def load(self, path: Path) -> int:
        """Raises ValueError for a file that is no archive."""
        ...


class Engine(Protocol):
    """The one writer, seen from the desk."""

    def ask(self, command: Command | Many) -> "Future[Any]":
        """The reply follows the commit; a refusal is the future's exception."""
        ...


def blob(content: bytes) -> tuple[Digest, bytes]:
    """The pair under which the store keeps these bytes."""
    return digest_of(content), content


def owner_of(uid: int) -> Owner:
    """The user as the host's databases have it. Raises Denied if they have none."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        raise Denied(
            "Invalid user id", hint=f"this host has no user of uid {uid}", slurm_errno=2010
        ) from None
    return Owner(
        uid=uid,
        gid=user.pw_gid,
        user=user.pw_name,
        group=group_name(user.pw_gid),
        home=user.pw_dir,
        shell=user.pw_shell or "/bin/sh",
        groups=tuple(os.getgrouplist(user.pw_name, user.pw_gid)),
    )


NOBODY = (1 << 32) - 1


def uid_named(name: str) -> int | None:
    """The uid of a user's name or number; None where the host knows none, as in Slurm (22.05)."""
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):  # ValueError: a NUL in it, or no text at all
        return _known(_id(name), pwd.getpwuid)


def _known(number: int | None, look: Callable[[int], object]) -> int | None:
    """The number if the host's database has an entry for it."""
    try:
        if number is not None:
            look(number)
    except KeyError:
        return None
    return number


def _id(text: str) -> int | None:
    """A uid or gid as the kernel has them: 32 bits, of which the last one says nobody."""
    number = read_digits(text)
    return number if number is not None and number < NOBODY else None


def gid_named(name: str) -> int | None:
    """The gid of a group's name or number; None where the host knows none, as in Slurm (22.05)."""
    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        return _known(_id(name), grp.getgrgid)


def group_name(gid: int) -> str:
    """The group's name, or its number where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _host() -> str:
    return platform.node().partition(".")[0]


def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS, thread_name_prefix="reader")


def once(call: Call, command: Command) -> Command:
    """For a command line that is sent again because its answer was lost: not done again then.

    What it is about names it: how much a limit grows, and which jobs have a name, may differ then.
    """
    if not isinstance(command, Repeated):
        return command
    about = (getattr(command, name, "") for name in ("target", "job", "jobs", "step", "name"))
    words = (call.request, type(command).__name__, *map(str, about))
    return Once(request=" ".join(words), command=command)


@dataclass(slots=True, kw_only=True)
class Desk:
    """Handed to every program and route; all of it may be used from the event loop."""

    engine: Engine
    snapshot: Callable[[], Snapshot]
    """The latest that was committed."""
    history: History
    clock: Clock
    present: Callable[[], Site] | None = None
    """The snapshot's site, where it is to be had without a snapshot; else that is made for it."""
    wake: Callable[[NodeName], None] = lambda node: None
    """Called when a node's agent has news; must not block."""
    reach: Reach | None = None
    """The way to nodes, for what tasks write and read; None where nothing interactive runs."""
    bells: Bells = field(default_factory=Bells)
    """Rung when a node, or a step's io file, has news."""
    pushes: Pushes = field(default_factory=Pushes)
    """What agents post."""
    holders: Holders = field(default_factory=Holders)
    """Which allocations are held by a command that is connected."""
    relayed: dict[str, int] = field(default_factory=dict)
    """How far the io files of steps were passed on to their own command, by key."""
    looks: Looks = field(default_factory=Looks)
    """Which logs are being read, by their owners."""
    names: Callable[[int], Owner] = owner_of
    uids: Callable[[str], int | None] = uid_named
    gids: Callable[[str], int | None] = gid_named
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    times: RequestTimes = field(default_factory=RequestTimes)
    """How long requests took."""
    cycles: Cycles = field(default_factory=Cycles)
    """What planning has cost."""
    cooling: Callable[[], Sequence[Cooling]] = tuple
    """What is not bought for a while because it was refused."""
    host: str = field(default_factory=_host)
    """Short name of this machine, where jobs are submitted."""
    gpu_types: tuple[str, ...] = ()
    """Types of GPUs that can be bought."""
    warn_ignored: bool = True
    """Whether an option without effect here is told in a warning."""
    mails: bool = True
    """Whether there is a program that sends mail."""
    archive: Archive | None = None
    """Takes out old records, and puts them back."""
    reread: Callable[[Owner], Sequence[str]] | None = None
    """Takes the configuration anew, for who asks; names settings that wait for the next start."""
    _pool: ThreadPoolExecutor = field(default_factory=_readers)
    _owners: dict[int, tuple[float, Owner]] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        """That of the latest snapshot."""
        return self.snapshot().site if self.present is None else self.present()

    def now(self) -> int:
        """Whole seconds UTC."""
        return self.clock.now()

    def wake_io(self, key: str) -> None:
        """The io file of the step of this key has grown."""
        self.bells.ring(key)

    async def ask(self, command: Command | Many) -> Any:
        """The engine's reply, once it is on disk. Raises what the engine raises."""
        return await asyncio.wrap_future(self.engine.ask(command))

    async def ask_once(self, call: Call, command: Command) -> Any:
        """The same; what a command line that is sent again would do twice is done once."""
        return await self.ask(once(call, command))

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls what blocks (history, user database) in the pool of readers."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    async def costs(self, jobs: Sequence[JobId]) -> dict[JobId, int]:
        """Micro-dollars of these jobs so far: what was posted, and what has run up since."""
        return await self.read(self.costs_of, jobs)

    def costs_of(self, jobs: Sequence[JobId]) -> dict[JobId, int]:
        """The same, for who reads already; blocks."""
        posted, seen = self.history.costs(jobs), self.snapshot()
        since = accrued(seen.jobs.values(), seen.nodes, self.now())
        sums = ((job, posted.get(job, 0) + since.get(job, 0)) for job in jobs)
        return {job: cost for job, cost in sums if cost}

    async def owner(self, uid: int) -> Owner:
        """Who this uid is. Raises Denied if the host does not know it."""
        known = self._owners.get(uid)
        if known is not None and self.monotonic() - known[0] < NAMES_KEPT:
            return known[1]
        owner = await self.read(self.names, uid)
        self._owners[uid] = (self.monotonic(), owner)
        return owner

    async def hidden(self, uid: int) -> frozenset[str]:
        """Partitions that are shown to this uid only where all are asked for (`--all`)."""
        parts = self.site.partitions
        out = {part.name for part in parts if part.hidden}
        if any(part.allow_groups is not None for part in parts):
            by = await self.owner(uid)
            out |= {part.name for part in parts if not in_its_groups(self.site, part, by)}
        return frozenset(out)

    async def viewer(self, uid: int) -> Viewer:
        """What PrivateData lets this uid see. Raises Denied if the host does not know it."""
        return viewer(self.site, await self.owner(uid)) if self.site.private else SEES_ALL

    async def seen(self, uid: int) -> Snapshot:
        """The latest snapshot, with the jobs and reservations that this uid may see."""
        snap = self.snapshot()
        return seen(snap, await self.viewer(uid)) if snap.site.private else snap

    async def barred(self, uid: int) -> Denied | None:
        """Why this uid may not submit or change anything here: it is somebody's own service."""
        served = self.site.service_uid
        if served is None or may_write(self.site, uid):
            return None
        return someone_elses((await self.owner(served)).user)

    async def uid(self, name: str) -> int | None:
        """The uid of a user's name or number, None if the host does not know it."""
        return await self.read(self.uids, name)

    def zone(self, call: Call) -> Zone:
        """The zone in which this client reads and writes moments (seconds ahead of UTC)."""
        return zone_of(call.environ.get("TZ"))

    def close(self) -> None:
        """Lets go of the readers; running reads are waited for."""
        self._pool.shutdown(cancel_futures=True)
