"""Records as rows: the columns that are filtered on, and the document."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accounting.ledger import Entry
from broker.model.events import Event
from broker.model.facts import JobFact, NodeFact
from broker.model.ids import Digest, NodeName, digest_of
from broker.model.job import Job
from broker.model.node import Node
from broker.model.spec import TaskSpec
from broker.model.tally import Charge, Party
from gateway.store import records

REMEMBERED = 20_000
"""How many specs, and how many blobs, that are known to be in the store are kept in mind."""

NewRow = dict[str, Any]


class Shared:
    """Which specs and blobs the store has already: what many jobs share is written once."""

    def __init__(self) -> None:
        self._blobs: set[Digest] = set()
        self._new_blobs: set[Digest] = set()
        self._known: dict[int, tuple[TaskSpec, str]] = {}
        self._new: dict[int, tuple[TaskSpec, str]] = {}
        self._rows: list[NewRow] = []

    def digest(self, spec: TaskSpec) -> str:
        """By identity: comparing specs costs as much as writing them."""
        found = self._known.get(id(spec)) or self._new.get(id(spec))
        if found:
            return found[1]
        doc = records.spec_text(spec)
        digest = digest_of(doc.encode())
        self._new[id(spec)] = spec, digest
        self._rows.append({"digest": digest, "doc": doc})
        return digest

    def blobs(self, blobs: Mapping[Digest, bytes]) -> list[NewRow]:
        """Those that are not known to be there: they never go."""
        new = [digest for digest in blobs if digest not in self._blobs]
        self._new_blobs.update(new)
        return [{"digest": digest, "bytes": blobs[digest]} for digest in new]

    def unwritten(self) -> list[NewRow]:
        """What `digest` met since the last call."""
        rows, self._rows = self._rows, []
        return rows

    @contextmanager
    def settled(self) -> Iterator[None]:
        """What is written within counts as known only if no error leaves."""
        try:
            yield
            if len(self._known) > REMEMBERED:
                self._known.clear()
            if len(self._blobs) > REMEMBERED:
                self._blobs.clear()
            self._known |= self._new
            self._blobs |= self._new_blobs
        finally:
            self._new, self._new_blobs, self._rows = {}, set(), []


def job(record: Job, shared: Shared) -> NewRow:
    array = record.array
    return {
        **standing(record),
        "array_base": array.base if array else None,
        "array_task": array.task if array else None,
        "user": record.owner.user,
        "uid": record.owner.uid,
        "account": record.account,
        "partition": record.partition,
        "name": record.spec.name,
        "submitted": record.submitted,
        "spec": shared.digest(record.spec),
    }


def standing(record: Job) -> NewRow:
    """What a job's row says of how it stands."""
    return {
        "job_id": record.id,
        "state": record.state.label,
        "over": int(record.over),
        "eligible": record.eligible,
        "started": record.started,
        "ended": record.ended,
        "version": record.version,
        "doc": records.job_text(record),
    }


def goes_on(was: Job | None, record: Job) -> bool:
    """Whether the row of a live job stays the same but for `standing`; what is over may be purged,
    and would have no row."""
    return (
        was is not None
        and not was.over
        and was.spec is record.spec
        and was.array is record.array
        and was.owner is record.owner
        and was.partitions == record.partitions
        and was.account == record.account
    )


def run(record: Job, shared: Shared) -> NewRow:
    """The row of the attempt that the record was left with."""
    return {
        "job_id": record.id,
        "attempt": record.attempt,
        "spec": shared.digest(record.spec),
        "doc": records.job_text(record),
    }


def event(seq: int, fact: Event, *, shared: Shared) -> NewRow:
    spec = records.event_spec(fact)
    return {
        "seq": seq,
        "at": fact.at,
        "kind": type(fact).__name__,
        "job": fact.job if isinstance(fact, JobFact) else None,
        "node": fact.node if isinstance(fact, NodeFact) else None,
        "launch": fact.launch if isinstance(fact, NodeFact) else None,
        "spec": None if spec is None else shared.digest(spec),
        "doc": records.event_text(fact),
    }


def node(record: Node) -> NewRow:
    return {
        "name": record.name,
        "launch": record.launch,
        "gone": 0,
        "doc": records.node_text(record),
    }


def gone(name: NodeName, launch: int) -> NewRow:
    """What marks a machine's row as history."""
    return {"gone_name": name, "gone_launch": launch, "is_gone": 1}


def charge(party: Party, used: Charge) -> NewRow:
    return {**party._asdict(), "doc": records.charge_text(used)}


def entry(record: Entry, seq: int) -> NewRow:
    return {
        "seq": seq,
        "key": record.key,
        "at": record.at,
        "kind": record.kind.value,
        "job": record.job,
        "account": record.account,
        "user": record.user,
        "cost": record.cost,
        "doc": records.entry_text(record),
    }
