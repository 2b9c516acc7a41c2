"""Words for how a job goes on after something went wrong, and what is kept of it elsewhere."""

from dataclasses import dataclass
from enum import StrEnum

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
