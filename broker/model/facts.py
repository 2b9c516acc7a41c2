"""What every fact about a job or a node has: time, actor, reason."""

from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.ids import NodeName

SYSTEM = -1
"""The actor of what nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """What every fact about a job has; `actor` is a uid or SYSTEM."""

    job: JobId
    at: int
    actor: int = SYSTEM
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFact:
    """What every fact about a node has; a machine's identity is name and launch number."""

    node: NodeName
    launch: int
    at: int
    actor: int = SYSTEM
    why: str = ""
