"""Why a job runs where it runs, or does not: from its choice, its detail and its events."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from broker.model import events as ev
from broker.model.job import Job, JobState
from broker.model.node import Node
from broker.model.offer import Machine
from broker.model.recovery import ArtifactsStored, Checkpointed, Decided
from broker.world import Snapshot
from gateway.query.dollars import beside, usd
from gateway.query.prices import old_price
from gateway.query.shownode import SWEPT

SHARED = "room on "
"""How the choice of a job begins that was put on a machine which was there."""
BATCHES = "\n\n"
"""Between machines of several sorts in a choice."""
SHOWN_EVENTS = (ev.Unplaced, ev.Requeued, ev.Ended, Decided, Checkpointed, ArtifactsStored)


@dataclass(frozen=True, slots=True)
class Rung:
    """An offer as it was ranked when the job was placed."""

    instance_type: str
    region: str
    zones: str
    market: str
    micro_usd_per_hour: int
    expected_micro_usd: int
    reason: str

    def told(self) -> dict[str, object]:
        """Its fields by name, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        zones = self.zones.split("+")
        where = f"any of {len(zones)} zones" if len(zones) > 1 else self.zones
        place = f"{self.region} ({where})" if where else self.region
        price = usd(self.micro_usd_per_hour)
        return f"{self.instance_type} in {place}, {self.market}, {price} an hour"


def rungs(choice: str) -> tuple[Rung, ...]:
    """The offers that a choice lists; none where a machine was there already."""
    return tuple(filter(None, map(_rung, choice.splitlines())))


def _rung(line: str) -> Rung | None:
    parts = line.split("|", 6)
    if len(parts) != 7:
        return None
    kind, region, zones, market, price, expected, reason = parts
    return Rung(kind, region, zones, market, int(price), int(expected), reason)


def why(
    job: Job,
    *,
    seen: Snapshot,
    events: Sequence[ev.Event],
    cost: int | None,
    swept: Callable[[Node], bool],
) -> Iterator[str]:
    """A few lines for people; every figure is one that was recorded.

    `swept` says of which nodes reports should come by themselves and do not.
    """
    yield f"Job {job.id} ({job.spec.name}): {_standing(job)}"
    if job.choice.startswith(SHARED):
        yield from _on_a_machine_there(job, seen, events)
    else:
        yield from _bought(job, seen)
    if job.state is JobState.PENDING:
        yield f"  waits: {job.reason}{_told(job.detail)}"
    nodes = (seen.nodes[share.node] for share in job.shares if share.node in seen.nodes)
    silent = [node.name for node in nodes if swept(node)]
    if silent:
        yield f"  {','.join(silent)}: {SWEPT}"
    for event in events:
        if isinstance(event, SHOWN_EVENTS) and (line := _history(event)):
            yield f"  {line}"
    if cost is not None:
        yield f"  cost so far: {usd(cost)}" if not job.over else f"  cost: {usd(cost)}"


def _standing(job: Job) -> str:
    where = f" on {','.join(job.last_node_names)}" if job.last_node_names else ""
    return f"{job.shown_state}{where}"


def _told(detail: str) -> str:
    return f" - {detail}" if detail else ""


def _bought(job: Job, seen: Snapshot) -> Iterator[str]:
    batches = [found for batch in job.choice.split(BATCHES) if (found := rungs(batch))]
    if len(batches) > 1:
        yield from _of_sorts(batches)
    elif batches:
        yield from _alike(job, seen, *batches[0])


def _of_sorts(batches: Sequence[Sequence[Rung]]) -> Iterator[str]:
    """Machines that differ, bought for one job."""
    for first, *others in batches:
        yield f"  chosen: {first}"
        after = f"; then {others[0]}" if others else ""
        yield f"    because: {first.reason}, {usd(first.expected_micro_usd)} expected{after}"
    whole = sum(first.expected_micro_usd for first, *_ in batches)
    yield f"  together: {usd(whole)} expected for the whole job"


def _alike(job: Job, seen: Snapshot, first: Rung, *others: Rung) -> Iterator[str]:
    yield f"  chosen: {first}"
    yield f"  because: {first.reason}, {usd(first.expected_micro_usd)} expected for the whole job"
    machine = _machine(job, seen)
    if machine and (machine.instance_type, machine.region) != (first.instance_type, first.region):
        got = f"{machine.instance_type} in {machine.region} ({machine.zone})"
        yield f"  got: {got}, those before it refused{_told(job.detail)}"
    elif machine:
        yield f"  got: zone {machine.zone}"
    if others:
        yield f"  runner-up: {others[0]}: {others[0].reason}"
    else:
        yield "  runner-up: none, nothing else serves"


def _machine(job: Job, seen: Snapshot) -> Machine | None:
    """The first that it holds; None once it holds none."""
    nodes = (seen.nodes[share.node] for share in job.shares if share.node in seen.nodes)
    return next((node.machine for node in nodes if node.machine), None)


def _on_a_machine_there(job: Job, seen: Snapshot, events: Sequence[ev.Event]) -> Iterator[str]:
    yield f"  chosen: {job.choice}, which was there with room: nothing had to be bought"
    names = job.choice.removeprefix(SHARED).split(",")
    node = seen.nodes.get(names[0])  # type: ignore[call-overload]
    if node is not None and node.machine is not None:
        machine = node.machine
        yield (
            f"  it is: {machine.instance_type} in {machine.region} ({machine.zone}), "
            f"{machine.market.value}, {usd(node.micro_usd_per_hour)} an hour "
            f"for all that is on it{beside(old_price([node], seen.site, seen.at))}"
        )


def _results(event: ArtifactsStored) -> Iterator[str]:
    if event.files:
        yield f"stored {event.files} files, {event.size} bytes, such as {event.artifacts[0].url}"
    if event.lost:
        yield f"lost {event.lost} results, such as {event.failed[0]}"
    if event.beside:
        yield f"kept what you changed meanwhile; the job's own stands beside it: {event.beside[0]}"


def _history(event: ev.Event) -> str:
    """What happened to the job that a user would ask about; empty for what goes without saying."""
    if isinstance(event, ev.Unplaced):
        return f"put back: {event.reason}{_told(event.detail)}"
    if isinstance(event, ev.Requeued):
        return f"requeued{_told(event.why)}"
    if isinstance(event, Decided):
        return f"decided: {event}"
    if isinstance(event, ArtifactsStored):
        return "; ".join(_results(event))
    if isinstance(event, Checkpointed):
        return f"checkpoint {event.number} {event.what}{_told(event.detail)}"
    if isinstance(event, ev.Ended):
        by = f", asked by uid {event.by}" if event.by is not None else ""
        reason = "" if event.reason in {"", "None"} else f" ({event.reason})"
        return f"ended: {event.state.label}{reason}, exit {event.exit}{by}{_told(event.why)}"
    return ""
