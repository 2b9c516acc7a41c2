"""What the engine's facts say in the log: one line for what an operator would ask about."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.boots import BootsEvent, BootsGone, BootsSet
from broker.model.facts import JobFact
from broker.model.partition import PartitionEvent, PartitionGone, PartitionSet
from broker.model.recovery import Checkpointed, Decided
from broker.model.reservation import ReservationEvent, ReservationGone, ReservationSet
from broker.model.stopping import NodeStarted, NodeStopped
from broker.model.volume import VolumeEvent, VolumeGone, VolumeSet
from sbatch_shim.grammar.arrays import show_indexes
from sbatch_shim.grammar.hostlist import fold

FEW = 20
"""Lines of one step that are written one by one, whatever they say."""
LONGEST_LIST = 1500
"""Characters."""
Told = Callable[[Any], Mapping[str, object]]
"""What a line has beside the job, or the node and its launch number."""


class Log(Protocol):
    def debug(self, event: str, **fields: object) -> object: ...
    def info(self, event: str, **fields: object) -> object: ...
    def warning(self, event: str, **fields: object) -> object: ...


def _nothing(fact: object) -> Mapping[str, object]:
    return {}


def _queued(fact: ev.Queued) -> Mapping[str, object]:
    job = fact.record
    return {"user": job.owner.user, "account": job.account, "partition": job.partition}


def _placed(fact: ev.Placed) -> Mapping[str, object]:
    return {
        "partition": fact.partition,
        "nodes": fold(sorted(str(share.node) for share in fact.shares)),
    }


def _ended(fact: ev.Ended) -> Mapping[str, object]:
    return {
        "state": fact.state.name,
        "exit": str(fact.exit),
        "reason": fact.reason,
        **({} if fact.by is None else {"by": fact.by}),
        **_why(fact),
    }


def _bought(fact: nev.MachineBought) -> Mapping[str, object]:
    machine = fact.machine
    return {
        "machine": machine.id,
        "type": machine.instance_type,
        "zone": machine.zone,
        "market": machine.market.value,
        "micro_usd_per_hour": machine.micro_usd_per_hour,
    }


def _book(fact: ev.BookChanged) -> Mapping[str, object]:
    return {"action": fact.action, "by": fact.by, "where": fact.where}


def _checkpointed(fact: Checkpointed) -> Mapping[str, object]:
    return {"what": fact.what, "number": fact.number, "detail": fact.detail}


def _why(fact: Any) -> Mapping[str, object]:
    return {"why": fact.why} if fact.why else {}


def _volume(fact: VolumeSet) -> Mapping[str, object]:
    one = fact.record
    return {"volume": one.name, "state": one.state.value, "id": one.id, "node": one.host}


def _partition(fact: PartitionSet) -> Mapping[str, object]:
    return {"partition": fact.record.name, "fields": fact.record.fields}


def _boots(fact: BootsSet) -> Mapping[str, object]:
    one = fact.record
    return {"kind": one.name, "failed": one.failed, "until": one.until, "why": one.why}


DEBUG: Mapping[type, tuple[str, Told]] = {ev.Queued: ("job.queued", _queued)}
"""At info a line for each submission was a seventh of what a submission costs; the store has it."""
INFO: Mapping[type, tuple[str, Told]] = {
    ev.Placed: ("job.placed", _placed),
    ev.Started: ("job.started", _nothing),
    ev.Ended: ("job.ended", _ended),
    ev.Requeued: ("job.requeued", _why),
    Checkpointed: ("job.checkpoint", _checkpointed),
    Decided: ("job.decided", lambda fact: {"what": str(fact)}),
    ev.Unplaced: ("job.unplaced", lambda fact: {"reason": fact.reason, "detail": fact.detail}),
    nev.MachineBought: ("node.bought", _bought),
    nev.NodeBooted: ("node.up", _nothing),
    nev.NodeDrain: ("node.drain", lambda fact: {"drain": fact.drain, "reason": fact.reason}),
    NodeStopped: ("node.stopped", lambda fact: {"machine": fact.machine.id}),
    NodeStarted: ("node.started", lambda fact: {"machine": fact.machine.id}),
    nev.NodeDoomed: ("node.let_go", _why),
    nev.NodeGone: ("node.gone", _why),
    ev.BookChanged: ("book.changed", _book),
    ReservationSet: ("reservation.set", lambda fact: {"reservation": fact.record.name}),
    ReservationGone: ("reservation.gone", lambda fact: {"reservation": fact.name}),
    PartitionSet: ("partition.set", _partition),
    PartitionGone: ("partition.as_configured", lambda fact: {"partition": fact.name}),
    BootsSet: ("boots.failed", _boots),
    BootsGone: ("boots.trusted", lambda fact: {"kind": fact.name}),
    VolumeSet: ("volume.set", _volume),
    VolumeGone: ("volume.gone", lambda fact: {"volume": fact.name}),
}
WARNING: Mapping[type, tuple[str, Told]] = {
    nev.LaunchFailed: ("node.launch_failed", lambda fact: {"detail": fact.detail}),
    nev.NodeDown: ("node.down", _why),
}


def of_job(fact: ev.Event) -> tuple[str, Mapping[str, object]] | None:
    """The event and what it says; None for what an operator would not ask about."""
    line = {**DEBUG, **INFO}.get(type(fact))
    return None if line is None else (line[0], line[1](fact))


def chronicle(log: Log, *, verbose: bool = False) -> Callable[[Iterable[ev.Event]], None]:
    """Writes what the committed facts of a step say; `verbose` where the log takes debug."""

    tables = [(INFO, log.info), (WARNING, log.warning)]
    if verbose:
        tables.append((DEBUG, log.debug))

    def tell(facts: Iterable[ev.Event]) -> None:
        said = [
            Said(write, line[0], fact, line[1](fact))
            for fact in facts
            for table, write in tables
            if (line := table.get(type(fact))) is not None
        ]
        if len(said) <= FEW:
            for one in said:
                one.write(one.event, **_subject(one.fact), **one.told)
        else:
            _in_groups(said)

    return tell


class Said(NamedTuple):
    """A line to be: where it goes, its event, what it is about and what it says of that."""

    write: Callable[..., object]
    event: str
    fact: ev.Event
    told: Mapping[str, object]

    @property
    def group(self) -> Hashable:
        """Equal for jobs of which the same is said; one of its own for a node."""
        about = None if isinstance(self.fact, JobFact) else id(self)
        return self.event, about, str(self.told)


def _in_groups(said: Iterable[Said]) -> None:
    """As one by one, but many jobs of which the same is said share a line that lists them."""
    groups: dict[Hashable, list[Said]] = {}
    for one in said:
        groups.setdefault(one.group, []).append(one)
    for alike in groups.values():
        if len(alike) <= FEW:
            for one in alike:
                one.write(one.event, **_subject(one.fact), **one.told)
            continue
        first = alike[0]
        jobs = [one.fact.job for one in alike if isinstance(one.fact, JobFact)]
        for text in _lists(jobs):
            first.write(first.event, jobs=text, **first.told)


def _lists(jobs: Sequence[int]) -> Iterator[str]:
    """Ids as ranges, in parts that are not cut for their length."""
    text = show_indexes(jobs)
    if len(text) <= LONGEST_LIST:
        yield text
        return
    half = len(jobs) // 2
    yield from _lists(jobs[:half])
    yield from _lists(jobs[half:])


def _subject(fact: ev.Event) -> Mapping[str, object]:
    if isinstance(fact, JobFact):
        return {"job": fact.job}
    if isinstance(
        fact, ev.BookChanged | ReservationEvent | VolumeEvent | PartitionEvent | BootsEvent
    ):
        return {}
    return {"node": fact.node, "launch": fact.launch}
