"""Volumes: disks that outlive machines, made, attached and deleted by name; words for all of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from accounting.ids import AccountName, JobId
from accounting.ledger import Meter
from broker.model.build import Build, Volume
from broker.model.facts import RecordGone, RecordSet
from broker.model.ids import NodeName
from broker.model.job import Job, Owner
from broker.model.spec import Attached


class VolumeState(StrEnum):
    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"
    """It could not be made; `told` says why."""
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedVolume:
    """Instants in whole seconds UTC."""

    name: str
    owner: Owner
    account: AccountName
    provider: str
    asked_at: int
    """With the name its identity: one that was deleted may be made again."""
    gib: int
    tier: str | None = None
    """SkyPilot's word for its kind; None is plain gp3."""
    labels: tuple[tuple[str, str], ...] = ()
    region: str
    zone: str
    """The zone's id."""
    state: VolumeState = VolumeState.CREATING
    told: str = ""
    id: str = ""
    """The provider's."""
    host: NodeName | None = None
    """The node on which it is mounted, or was when the machine ended."""
    host_launch: int = 0
    path: str = ""
    """Where it is mounted."""
    used_at: int | None = None
    meter: Meter | None = None
    """None while nobody bills it."""

    @property
    def key(self) -> str:
        return f"{self.name}.{self.asked_at}"

    @property
    def disk(self) -> Volume:
        """What it is made of, in EC2's words."""
        return Build(disk_tier=self.tier).volume(self.gib)


# --- asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyVolume:
    """Makes it unless it is there. Reply: its name. Raises Denied, Conflict (of another size)."""

    by: Owner
    name: str
    gib: int
    tier: str | None
    labels: tuple[tuple[str, str], ...]
    provider: str
    region: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteVolume:
    """Raises Unknown, Denied, Conflict (a job that is not over has it)."""

    by: Owner
    name: str
    purge: bool = False
    """Forgets it at once, whatever the provider says."""


# --- seen outside


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMade:
    name: str
    asked_at: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNotMade:
    name: str
    asked_at: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDropped:
    """The provider has it no more."""

    name: str
    asked_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttached:
    """It is mounted there."""

    name: str
    asked_at: int
    node: NodeName
    launch: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDetached:
    name: str
    asked_at: int


VolumeOrder = ApplyVolume | DeleteVolume
VolumeSeen = VolumeMade | VolumeNotMade | VolumeDropped | VolumeAttached | VolumeDetached


# --- facts


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSet(RecordSet):
    """A volume is asked for or has changed."""

    record: NamedVolume


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGone(RecordGone):
    """It is deleted, or forgotten."""


VolumeEvent = VolumeSet | VolumeGone


# --- whose they are


def names_of(wanted: Iterable[Attached]) -> frozenset[str]:
    return frozenset(one.volume for one in wanted)


def users_of(name: str, jobs: Iterable[Job]) -> list[JobId]:
    """Jobs that are not over and have it among theirs."""
    return [job.id for job in jobs if not job.over and name in names_of(job.spec.volumes)]


def holds(job: Job) -> bool:
    """Whether nobody else may have its volumes now: it has machines, or ones that are stopped."""
    return bool(job.shares or job.kept)
