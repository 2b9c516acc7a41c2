"""Words for how a job goes on after something went wrong, and what is kept of it elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from accounting.ids import JobId
from broker.model.evolve import evolved
from broker.model.facts import JobFact
from broker.model.job import Job

POLICY = 1
"""Version of the table that decides; it is told with every decision."""


class Failure(StrEnum):
    """What went wrong, as far as evidence tells."""

    APPLICATION = "application"
    DATA = "data"
    WORKER_CRASH = "worker crash"
    NODE_LOSS = "node loss"
    ACCELERATOR = "accelerator"
    COMMUNICATION = "communication"
    NETWORK = "network"
    STORAGE = "storage"
    ARTIFACT = "artifact corruption"
    PREEMPTION = "preemption"
    CORRELATED = "correlated incident"
    CONTROL_PLANE = "control plane"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What follows."""

    FAIL = "fail"
    RETRY = "retry"
    RESTART_GANG = "restart the gang"
    REPLACE_NODE = "replace the node"
    PAUSE = "pause"
    """Back in the queue, held: it has come back too often."""
    FREEZE = "freeze"
    """Back in the queue, held: many were hit at once, and starting again would hit them again."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of a job's that was put into a bucket."""

    url: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of an attempt's results on a node."""

    stored: tuple[Artifact, ...] = ()
    failed: tuple[str, ...] = ()
    """What is lost, and why."""
    beside: tuple[str, ...] = ()
    """What stands beside a file that its user changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(JobFact):
    """What was made of a failure, by which version of the policy, and what that rests on."""

    failure: Failure
    action: Action
    policy: int
    evidence: str
    machine: str = ""
    """Name and launch number of the one that was lost."""

    def __str__(self) -> str:
        return f"{self.failure}: {self.action} ({self.evidence}; policy {self.policy})"


class Copy(StrEnum):
    """What becomes of checkpoints."""

    SAVED = "saved"
    RESTORED = "restored"
    """In place for another attempt."""
    QUARANTINED = "quarantined"
    """Found corrupt and put aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed(JobFact):
    """What became of a checkpoint."""

    what: Copy
    number: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsStored(JobFact):
    """Files of its were put into a bucket, or could not be had; the first of them by name."""

    files: int
    size: int
    artifacts: tuple[Artifact, ...]
    failed: tuple[str, ...] = ()
    lost: int = 0
    """How many failed."""
    beside: tuple[str, ...] = ()
    """Some of what was put beside files that their user had changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDone:
    """What became of a checkpoint."""

    job: JobId
    attempt: int
    what: Copy
    number: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsDone:
    """Results were put into a bucket, or are lost."""

    job: JobId
    attempt: int
    results: Fetched


def _decided(job: Job, event: Decided) -> Job:
    """Of what a program did by itself its exit code tells more."""
    told = job.system_comment if event.failure is Failure.APPLICATION else str(event)
    if not event.machine:
        return evolved(job, system_comment=told)
    return evolved(job, system_comment=told, lost_machine=event.machine, lost_at=event.at)


AFTER: Mapping[type, Callable[[Job, Any], Job]] = {
    Decided: _decided,
    Checkpointed: lambda job, event: job,
    ArtifactsStored: lambda job, event: job,
}
"""The job after each of these."""
