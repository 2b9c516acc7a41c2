"""What a job brings and fetches beside its working directory: paths, and objects of buckets."""

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.model import octets
from broker.model.errors import Refused
from broker.model.job import Job
from broker.model.recovery import Artifact, Fetched
from broker.model.spec import Mount
from broker.stage.bucketside import BucketSide
from broker.stage.objects import Objects
from broker.stage.sides import Side, Where
from broker.stage.sync import Folder, Sync, Told

S3: Final = "s3://"
UNLIMITED = 1 << 62
Bucket = Callable[[str, Job], tuple[Objects, str]]
"""A URL for a job: what it is of, and the key there. Raises Refused where it may not be used."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A job's attempt on one of its nodes."""

    job: Job
    node: str
    """Name and launch number."""
    far: Side
    shared: bool
    """Whether the node has the login node's files."""


@dataclass(frozen=True, slots=True)
class Mounts:
    """Of all jobs; for each node one call at a time."""

    sync: Sync
    bucket: Bucket
    where: Callable[[Job, str], Where]
    """A folder, with the rights of the job's owner."""

    def bring(self, visit: Visit) -> None:
        """Before a step; what is there already stays. Raises Refused, OSError."""
        for mount in visit.job.spec.results:
            if mount.source == visit.job.spec.cwd:
                self._note_input(visit, mount)
        for mount in visit.job.spec.files:
            if mount.source.startswith(S3):
                self._bring_objects(visit, mount)
            elif not visit.shared:
                folder = self._entry(visit, mount.target)
                _must_have_come(self.sync.push(folder, visit.far), mount)

    def fetch(self, visit: Visit) -> Fetched:
        """After a step: what was put into buckets, and what is lost.

        Raises Refused, HereError, OSError.
        """
        stored: list[Artifact] = []
        failed: list[str] = []
        for mount in visit.job.spec.results:
            told = Told()
            if mount.target.startswith(S3):
                told, put = self._put_objects(visit, mount)
                stored += put
            elif not visit.shared:
                told = self.sync.pull(self._entry(visit, mount.source), visit.far)
            failed += [_lost(mount, path, why) for path, why in told.failed.items()]
        return Fetched(tuple(stored), tuple(failed))

    def _note_input(self, visit: Visit, mount: Mount) -> None:
        """What was brought is no result, so it is not put into the bucket as it is."""
        if visit.shared:
            raise Refused(
                f"stage-out={mount.target}: the whole of {mount.source}, which the node shares",
                hint=f"name what is to be stored: stage-out=PATH:{mount.target}",
            )
        marks, folder, node = self.sync.marks, mount.source, visit.node
        known = marks.load(apart(node), folder)
        marks.save(apart(node), folder, {**marks.load(node, folder), **known})

    def _bring_objects(self, visit: Visit, mount: Mount) -> None:
        objects, key = self.bucket(mount.source, visit.job)
        folder = self._entry(visit, mount.target)
        side = BucketSide(objects, key, folder.only or "")
        limits = replace(self.sync.limits, size=UNLIMITED)
        told = replace(self.sync, near=side, limits=limits).push(folder, visit.far)
        _must_have_come(told, mount)

    def _put_objects(self, visit: Visit, mount: Mount) -> tuple[Told, Sequence[Artifact]]:
        objects, key = self.bucket(mount.target, visit.job)
        folder = self._entry(visit, mount.source)
        if mount.source == visit.job.spec.cwd:
            folder = replace(folder, where=self.where(visit.job, mount.source), only=None)
        side = BucketSide(objects, key, folder.only or "")
        folder = replace(folder, node=apart(visit.node), apart=from_buckets(visit.job))
        told = replace(self.sync, near=side).pull(folder, visit.far)
        prefix = mount.target.rstrip("/").removesuffix(key.rstrip("/")).rstrip("/")
        put = [Artifact(f"{prefix}/{one.key}", one.size, one.sha256 or "") for one in side.put]
        return told, put

    def _entry(self, visit: Visit, path: str) -> Folder:
        above, name = posixpath.split(path)
        where = self.where(visit.job, above or "/")
        return Folder(where, visit.node, str(visit.job.id), only=name)


def _lost(mount: Mount, path: str, why: str) -> str:
    return octets.shown(f"{mount.target}: {path}: {why}")


def apart(node: str) -> str:
    """Under which marks of a node's ways to buckets are kept, beside those of its folders."""
    return f"{node}.s3"


def from_buckets(job: Job) -> tuple[str, ...]:
    """Paths below the working directory that come out of buckets: nobody wants them back."""
    root = f"{job.spec.cwd}/"
    targets = [mount.target for mount in job.spec.files if mount.source.startswith(S3)]
    return tuple(path.removeprefix(root) for path in targets if path.startswith(root))


def uses_buckets(job: Job) -> bool:
    """Whether anything of it comes out of one or goes into one."""
    ways = [mount.source for mount in job.spec.files] + [one.target for one in job.spec.results]
    return any(way.startswith(S3) for way in ways)


def _must_have_come(told: Told, mount: Mount) -> None:
    """Raises Refused for what the node could not take."""
    for path, why in told.failed.items():
        raise Refused(f"{mount.source}: {path} cannot be brought: {why}")
