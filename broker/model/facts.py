"""What every fact has: time, actor, and a reason or a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from accounting.ids import JobId
from broker.model.ids import NodeName

R = TypeVar("R")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSet:
    """Something with a name is as its record says from now on; `actor` is a uid or SYSTEM."""

    at: int
    actor: int = SYSTEM
    record: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGone:
    """What had that name is no more."""

    at: int
    actor: int = SYSTEM
    name: str


def after(known: Mapping[str, R], fact: RecordSet | RecordGone) -> dict[str, R]:
    """The records after the fact, by name; what was known stays as it is."""
    if isinstance(fact, RecordSet):
        return {**known, fact.record.name: fact.record}
    return {name: one for name, one in known.items() if name != fact.name}


def folded(facts: Iterable[RecordSet | RecordGone]) -> dict[str, Any]:
    """The records that are there after these facts, in the order in which they came."""
    known: dict[str, Any] = {}
    for fact in facts:
        known = after(known, fact)
    return known
