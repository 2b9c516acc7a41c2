"""A job's files on its nodes: brought before a step, passed on as they grow, fetched at the end."""

import errno
import json
import os
import posixpath
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from accounting.ids import JobId
from broker.model import octets
from broker.model.errors import Refused
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.recovery import Fetched
from broker.ports import EndSeen, Place
from broker.stage.ignore import OF_JOBS, OF_TASKS
from broker.stage.mounts import apart, from_buckets, uses_buckets
from broker.stage.pieces import written
from broker.stage.sides import Far, HereError, Side, Where, identity, same, tails, understood
from broker.stage.sync import Folder, Sync, Told
from broker.stage.upkeep import Log, Upkeep, of

NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)))
"""Why a file could not be written: without it a job is not begun, and its end waits a little."""
Outputs = Callable[[Job, Node], Sequence[str]]
"""Full paths of what a job's batch step writes."""


@dataclass(slots=True)
class Courier:
    """Keeps the submit directories of jobs on nodes that do not share them; may block.

    One call at a time for each node: jobs of one directory share one copy there.
    """

    sync: Sync
    jobs: Callable[[], Mapping[JobId, Job]]
    outputs: Outputs
    log: Log
    upkeep: Upkeep = field(default_factory=Upkeep)
    way: Callable[[Node, Side], Side] = lambda node, far: far
    """How files go to a node: over its connection, or through a bucket."""
    _locks: dict[NodeName, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )
    _grown: dict[NodeName, set[JobId]] = field(default_factory=lambda: defaultdict(set))
    """Who is there, by node."""
    _loaded: bool = False
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def bring(self, job: Job, node: Node, place: Place) -> None:
        """Before a step begins there; safe to repeat.

        Raises Refused where the folder is too large or cannot be read, OSError where the node
        cannot be reached.
        """
        if place.shared and not _travels(job):
            return
        with self._locks[node.name], understood(node.name):
            try:
                if not place.shared:
                    self._bring(job, node, self._far(node, place))
                self.upkeep.bring(job, node, self._far(node, place), shared=place.shared)
            except HereError as error:
                raise Refused(f"files cannot be brought to {node.name}: {error}") from error
            except FileNotFoundError as error:
                raise Refused(
                    f"{error.filename}: no such folder to bring to {node.name}"
                ) from error
        self._living(node.name).add(job.id)

    def pass_on(self, node: Node, place: Place) -> None:
        """What outputs have grown by; results and checkpoints where they are due.

        Raises OSError.
        """
        jobs = self._on(node, place)
        if not jobs:
            return
        far = self._far(node, place)
        with self._locks[node.name], understood(node.name):
            for job in jobs if not place.shared else ():
                self._pass_on(job, node, far)
                if self.upkeep.fetch_due(job, node):
                    self._fetch(job, node, far)
            for job in jobs:
                self.upkeep.now_and_then(job, node, far)

    def fetch(self, ended: Iterable[EndSeen], node: Node, place: Place) -> None:
        """Results of jobs of which something ended there, before anybody hears of the end.

        Late words of an older attempt bring nothing. Raises OSError: then the end is heard of
        later. What cannot be written here is told in the log and left on the node.
        """
        jobs = self.jobs()
        told = [(jobs[one.job], one) for one in ended if one.job in jobs]
        live = {job.id: (job, one) for job, one in told if job.attempt == one.attempt}
        living = self._living(node.name)
        for job, one in live.values():
            if not place.shared or _travels(job):
                with self._locks[node.name], understood(node.name):
                    self._end(job, node, place, well=one.well)
            if job.over or not job.state.holds_nodes:
                living.discard(job.id)

    def _end(self, job: Job, node: Node, place: Place, *, well: bool) -> None:
        far, lost = self._far(node, place), tuple[str, ...]()
        if not place.shared:
            failed = [*self._pass_on(job, node, far), *self._fetch(job, node, far)]
            short = [one for one in failed if one.endswith(NO_ROOM)]
            with self.upkeep.patiently(job, node, "room"):
                if short:
                    raise OSError(errno.ENOSPC, short[0])
            lost = tuple(one for one in failed if one not in short[:1])  # which is told by then
        self.upkeep.at_end(job, node, far, well=well, shared=place.shared)
        self.upkeep.tell(job, node, Fetched(failed=lost))

    def hasten(self, node: NodeName) -> None:
        """What is due now and then on the node is due at once, for it will be taken back."""
        self.upkeep.hasten(node)

    def forget(self, node: NodeName, launch: int) -> None:
        """The machine is gone."""
        self.sync.marks.forget(f"{node}.{launch}")
        self.sync.marks.forget(apart(f"{node}.{launch}"))
        self._grown.pop(node, None)
        self.upkeep.forget(node)

    # --- bringing

    def _bring(self, job: Job, node: Node, far: Side) -> None:
        told = self.sync.push(self._folder(job, node), far)
        self._note(told, "files.brought", job=job, node=node)
        for path, why in told.failed.items():
            if why in NO_ROOM:
                raise HereError(f"{path}: {why}")
        marks, label = self.sync.marks, node.label
        begun = marks.begun(label)
        if job.key in begun:
            return  # for another step, or by a start whose answer was lost: it may have written
        for where, name in self._outputs(job, node):
            with suppress(FileNotFoundError):  # the agent says so, as on any node
                self._begin(job, where, name=name, far=far)
        live = {one.key for one in self.jobs().values()}
        marks.begin(label, {job.key, *(begun & live)})

    def _begin(self, job: Job, where: Where, *, name: str, far: Side) -> None:
        """An output is there, empty or as it was, before the job's first line."""
        here = identity(self.sync.near, where)
        far.carry("make", where)
        if same(self.sync.near, far, where, seen=(here, identity(far, where))):
            return
        if job.spec.output.open_mode != "append":
            self._append(where, name, _more(name, b"", at=0, anew=True))
            return
        at = 0
        while data := _tail(self.sync.near, where, name=name, at=at):
            far.carry("unpack", where, _more(name, data, at=at, anew=at == 0))
            at += len(data)

    # --- passing on

    def _pass_on(self, job: Job, node: Node, far: Side) -> list[str]:
        """What is lost, and why."""
        lost = []
        for where, name in self._outputs(job, node):
            try:
                self._pass_on_one(where, name, far)
            except (HereError, FileNotFoundError) as error:
                self.log.warning("output.lost", job=job.id, path=name, error=str(error))
                lost.append(octets.shown(f"{name}: {error}"))
        return lost

    def _pass_on_one(self, where: Where, name: str, far: Side) -> None:
        near = self.sync.near
        asked = json.dumps([name]).encode("ascii")
        here, there = (json.loads(one.carry("sizes", where, asked)) for one in (near, far))
        at = here[name] or 0
        seen = tuple(here[""]), tuple(there[""])
        if (there[name] or 0) <= at or same(near, far, where, seen=seen):
            return
        while data := _tail(far, where, name=name, at=at):
            self._append(where, name, _more(name, data, at=at))
            at += len(data)

    def _append(self, where: Where, name: str, stream: bytes) -> None:
        said = json.loads(self.sync.near.carry("unpack", where, stream))[name]
        if said != "done":
            raise HereError(f"{where.path}/{name}: {said.removeprefix('error: ')}")

    # --- fetching

    def _fetch(self, job: Job, node: Node, far: Side) -> list[str]:
        """What is lost, and why."""
        try:
            told = self.sync.pull(self._folder(job, node), far)
        except (HereError, FileNotFoundError) as error:
            self.log.warning("files.lost", job=job.id, node=node.name, error=str(error))
            return [octets.shown(str(error))]
        self._note(told, "files.fetched", job=job, node=node)
        beside = tuple(octets.shown(f"{path}.spz-{job.id}") for path in told.beside)
        self.upkeep.tell(job, node, Fetched(beside=beside))
        return [octets.shown(f"{path}: {why}") for path, why in told.failed.items()]

    def _note(self, told: Told, event: str, *, job: Job, node: Node) -> None:
        if told.failed or told.beside:
            facts = {"kept_beside": told.beside[:9], "failed": dict(list(told.failed.items())[:9])}
            self.log.warning(event, job=job.id, node=node.name, **facts)

    # --- what and where

    def _far(self, node: Node, place: Place) -> Side:
        far = Far(place.channel, place.python, place.archive, place.stream, shared=place.shared)
        return self.way(node, far)

    def _on(self, node: Node, place: Place) -> list[Job]:
        """Jobs of which something travels between there and here."""
        jobs = self.jobs()
        found = (jobs[job] for job in sorted(self._living(node.name)) if job in jobs)
        return [job for job in found if not place.shared or _travels(job)]

    def _living(self, node: NodeName) -> set[JobId]:
        """After a restart those that hold the node; from then on as they come and go."""
        with self._loading:
            if not self._loaded:
                self._load()
            return self._grown[node]

    def _load(self) -> None:
        self._loaded = True
        for job in self.jobs().values():
            for share in job.shares if job.state.holds_nodes else ():
                self._grown[share.node].add(job.id)

    def _folder(self, job: Job, node: Node) -> Folder:
        root = job.spec.cwd
        below = (posixpath.join(where.path, name) for where, name in self._written(job, node))
        inside = (path[len(root) + 1 :] for path in below if path.startswith(f"{root}/"))
        outputs, away, rules = frozenset(inside), from_buckets(job), _rules(job)
        where, tag = of(job, root), str(job.id)
        return Folder(where, node.label, tag, outputs, apart=away, rules=rules)

    def _written(self, job: Job, node: Node) -> Iterator[tuple[Where, str]]:
        """Outputs of it and of all who are there: what grows is passed on, and in no other way."""
        jobs = self.jobs()
        others = (jobs[one] for one in self._living(node.name) - {job.id} if one in jobs)
        for one in (job, *others):
            yield from self._outputs(one, node)

    def _outputs(self, job: Job, node: Node) -> Iterator[tuple[Where, str]]:
        """Those that name no file of their own are left out."""
        for path in dict.fromkeys(self.outputs(job, node)):
            folder, name = posixpath.split(path)
            if name and not path.startswith("/dev/"):
                yield of(job, folder), name


def _rules(job: Job) -> tuple[str, ...]:
    """Which files say what is not brought."""
    return OF_TASKS if job.spec.cluster or job.spec.managed else OF_JOBS


def _travels(job: Job) -> bool:
    """Whether anything of it does although the node shares the login node's files."""
    return job.spec.checkpoint is not None or uses_buckets(job)


def _tail(side: Side, where: Where, *, name: str, at: int) -> bytes:
    asked = json.dumps([[name, at]]).encode("ascii")
    return tails(side.carry("tail", where, asked))[0]


def _more(name: str, data: bytes, *, at: int, anew: bool = False) -> bytes:
    head = {"path": name, "kind": "more", "offset": at, "length": len(data), "anew": anew}
    return written([(head, data)])
