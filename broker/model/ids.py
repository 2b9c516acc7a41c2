"""Names of the things the broker deals with."""

from hashlib import sha256
from typing import NewType

from accounting.ids import JobId

NodeName = NewType("NodeName", str)
Digest = NewType("Digest", str)
"""SHA-256 in hex of bytes kept in the store's blob table (scripts, environments)."""
StepId = NewType("StepId", str)
"""`batch`, `extern`, or a number as text, as Slurm names steps."""

BATCH = StepId("batch")
EXTERN = StepId("extern")


def digest_of(content: bytes) -> Digest:
    """The name under which the store keeps these bytes."""
    return Digest(sha256(content).hexdigest())


def attempt_key(job: JobId, attempt: int) -> str:
    """The token under which an attempt is known on nodes and to providers, such as `4711/1`."""
    return f"{job}/{attempt}"


def step_key(job: JobId, attempt: int, step: StepId) -> str:
    """The token under which a step is known to the agent, such as `4711/1/batch`."""
    return f"{job}/{attempt}/{step}"


def parse_step_key(key: str) -> tuple[JobId, int, StepId]:
    """The parts of a step key. Raises ValueError for any other text."""
    job, attempt, step = key.split("/")
    return JobId(int(job)), int(attempt), StepId(step)
