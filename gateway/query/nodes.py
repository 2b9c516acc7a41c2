"""Nodes as sinfo and scontrol see them: declared ones, bought ones, and names still unused."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntFlag

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node, NodeState
from broker.model.reservation import Reservation, Reservations
from broker.model.site import Partition, Site
from broker.world import Snapshot
from gateway.query.context import Context
from sbatch_shim.grammar.arrays import show_indexes


class Flag(IntFlag):
    """A node's flags beside its base state, in the order of Slurm's bits (sinfo sorts by them)."""

    RESERVED = 1 << 5
    CLOUD = 1 << 7
    DRAIN = 1 << 9
    COMPLETING = 1 << 10
    NOT_RESPONDING = 1 << 11
    POWERED_DOWN = 1 << 12
    POWERING_UP = 1 << 14
    MAINTENANCE = 1 << 15
    POWERING_DOWN = 1 << 18


BASE_NUMBERS = {"DOWN": 1, "IDLE": 2, "ALLOCATED": 3, "MIXED": 5}
SHORT = {"DOWN": "down", "IDLE": "idle", "ALLOCATED": "alloc", "MIXED": "mix"}
SHOWN_FLAGS = (
    Flag.CLOUD,
    Flag.COMPLETING,
    Flag.DRAIN,
    Flag.MAINTENANCE,
    Flag.RESERVED,
    Flag.POWERED_DOWN,
    Flag.POWERING_UP,
    Flag.POWERING_DOWN,
    Flag.NOT_RESPONDING,
)
"""In the order in which scontrol joins them behind the base."""
MARKS = (
    (Flag.POWERING_DOWN, "%"),
    (Flag.POWERED_DOWN, "~"),
    (Flag.POWERING_UP, "#"),
    (Flag.NOT_RESPONDING, "*"),
    (Flag.MAINTENANCE, "$"),
)
"""What stands behind a short state."""
STATE_FLAGS = {
    NodeState.POWERED_DOWN: Flag.POWERED_DOWN,
    NodeState.LAUNCHING: Flag.POWERING_UP,
    NodeState.BOOTING: Flag.POWERING_UP,
    NodeState.UP: Flag(0),
    NodeState.DOWN: Flag.NOT_RESPONDING,
    NodeState.TERMINATING: Flag.POWERING_DOWN,
    NodeState.STOPPING: Flag.POWERING_DOWN,
    NodeState.STOPPED: Flag.POWERED_DOWN,
    NodeState.STARTING: Flag.POWERING_UP,
}


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with what jobs hold of it; `record` None for an elastic name that is not in use."""

    name: NodeName
    partitions: tuple[str, ...]
    record: Node | None
    used: Tres
    base: str
    flags: Flag
    reservation: str = ""
    """One that is active on it."""
    gpu_ids: tuple[int, ...] = ()
    """Its GPUs that jobs hold."""

    @property
    def whole(self) -> Tres:
        return self.record.whole if self.record else Tres()

    @property
    def number(self) -> int:
        """Slurm's number of the state with its flags."""
        return BASE_NUMBERS[self.base] | self.flags

    @property
    def long(self) -> str:
        """sinfo's %T: `mixed`, `draining`, `idle~`."""
        return self._word(self.base.lower(), ("drained", "draining", "completing", "reserved"))

    @property
    def short(self) -> str:
        """sinfo's %t: `mix`, `drng`, `idle~`."""
        return self._word(SHORT[self.base], ("drain", "drng", "comp", "resv"))

    def _word(self, base: str, flagged: tuple[str, str, str, str]) -> str:
        """A mark stands behind it; a reserved node that is idle says only that."""
        word = base
        drained, draining, completing, reserved = flagged
        kept = self.flags & (Flag.RESERVED | Flag.MAINTENANCE)
        if kept and self.base == "IDLE" and not self.flags & (Flag.DRAIN | Flag.COMPLETING):
            return "maint" if Flag.MAINTENANCE in kept else reserved
        if Flag.DRAIN in self.flags:
            word = drained if self.base in {"IDLE", "DOWN"} else draining
        elif Flag.COMPLETING in self.flags and self.base != "ALLOCATED":
            word = completing
        return word + next((mark for flag, mark in MARKS if flag in self.flags), "")

    @property
    def joined(self) -> str:
        """scontrol's `IDLE+CLOUD+POWERED_DOWN`."""
        return "+".join([self.base, *(f.name or "" for f in SHOWN_FLAGS if f in self.flags)])

    @property
    def kind(self) -> str:
        """How sinfo counts it: `allocated`, `idle`, `other`."""
        if self.base == "DOWN":
            return "other"
        if self.base == "IDLE":
            return "other" if Flag.DRAIN in self.flags else "idle"
        return "allocated"

    def cpus(self) -> tuple[int, int, int, int]:
        """Allocated, idle, other, total."""
        total, used = self.whole.cpu, self.used.cpu
        rest = total - used
        closed = self.base == "DOWN" or Flag.DRAIN in self.flags
        return used, 0 if closed else rest, rest if closed else 0, total


def is_here(view: NodeView) -> bool:
    """Whether the node is this host: a declared one, or a local machine, which is a folder."""
    record = view.record
    if record is None or record.machine is None:
        return record is not None and record.declared
    return not record.machine.address or "/" in record.machine.address


def host_of(view: NodeView, ctx: Context) -> str:
    """The name of the host that the node is."""
    return ctx.host if ctx.host and is_here(view) else str(view.name)


def load_of(view: NodeView, ctx: Context) -> float | None:
    """The load of the last minute; None where it is not measured."""
    return ctx.load if is_here(view) else None


def free_of(view: NodeView, ctx: Context) -> int | None:
    """MiB that nothing uses; None where it is not measured."""
    return ctx.free_mib if is_here(view) else None


def used_gres(node: NodeView) -> str:
    """`gpu:a10g:1(IDX:0)`: how many of each kind a node's jobs hold, and which."""
    if node.record is None or not node.record.gres_text:
        return "(null)"
    used = dict(node.used.gres)
    kinds = [item.rpartition(":")[0] for item in node.record.gres_text.split(",")]
    ids = show_indexes(node.gpu_ids) or "N/A"
    return ",".join(
        f"{kind}:{used.get(kind, 0)}(IDX:{ids if used.get(kind) else 'N/A'})" for kind in kinds
    )


def node_views(snap: Snapshot) -> list[NodeView]:
    """Every node of the site, declared ones first, then elastic names by number."""
    used, completing = _usage(snap.jobs.values())
    held = holding(snap.reservations, snap.at)
    homes = _homes(snap.site)
    names = [*homes, *(name for name in snap.nodes if name not in homes)]
    views = [
        _view(name, snap.nodes.get(name), used.get(name, Tres()), homes=homes, busy=completing)
        for name in names
    ]
    gpus = _gpu_ids(snap.jobs.values())
    views = [
        replace(view, gpu_ids=gpus[view.name]) if view.name in gpus else view for view in views
    ]
    return [_reserved(view, held[view.name]) if view.name in held else view for view in views]


def _gpu_ids(jobs: Iterable[Job]) -> dict[NodeName, tuple[int, ...]]:
    found: dict[NodeName, tuple[int, ...]] = {}
    for job in jobs:
        for share in job.shares:
            if share.gpu_ids:
                found[share.node] = (*found.get(share.node, ()), *share.gpu_ids)
    return found


def holding(known: Reservations, now: int) -> dict[NodeName, list[Reservation]]:
    """Of each node the reservations that are active on it."""
    found: dict[NodeName, list[Reservation]] = {}
    for one in known.values():
        for name in one.nodes if one.active(now) else ():
            found.setdefault(name, []).append(one)
    return found


def _reserved(view: NodeView, active: list[Reservation]) -> NodeView:
    flags = view.flags | Flag.RESERVED
    if any(one.has("MAINT") for one in active):
        flags |= Flag.MAINTENANCE
    return replace(view, flags=flags, reservation=active[0].name)


def _homes(site: Site) -> dict[NodeName, list[str]]:
    """Every name a node has or may get, with the partitions it is in."""
    homes: dict[NodeName, list[str]] = {node.name: [] for node in site.nodes}
    for part in site.partitions:
        for name in part_nodes(part):
            homes.setdefault(name, []).append(part.name)
    return homes


def part_nodes(part: Partition) -> Iterator[NodeName]:
    """Names of the partition's declared nodes, then of its elastic ones."""
    yield from part.nodes
    if part.elastic:
        for number in range(1, part.elastic.max_nodes + 1):
            yield NodeName(f"{part.elastic.prefix}{number}")


def _usage(jobs: Iterable[Job]) -> tuple[dict[NodeName, Tres], set[NodeName]]:
    """What jobs hold of each node, and where one of them is cleaned up."""
    used: dict[NodeName, Tres] = {}
    completing: set[NodeName] = set()
    for job in jobs:
        for share in job.shares:
            used[share.node] = used.get(share.node, Tres()) + share.tres
            if job.completing:
                completing.add(share.node)
    return used, completing


def _view(
    name: NodeName,
    record: Node | None,
    used: Tres,
    *,
    homes: Mapping[NodeName, list[str]],
    busy: set[NodeName],
) -> NodeView:
    flags = STATE_FLAGS[record.state] if record else Flag.POWERED_DOWN
    if record is None or not record.declared:
        flags |= Flag.CLOUD
    if record is not None and record.drain:
        flags |= Flag.DRAIN
    if name in busy:
        flags |= Flag.COMPLETING
    partitions = tuple(homes.get(name, ())) or (record.partitions if record else ())
    return NodeView(name, partitions, record, used, base=_base(record, used), flags=flags)


def _base(record: Node | None, used: Tres) -> str:
    if record is not None and record.state is NodeState.DOWN:
        return "DOWN"
    if record is None or not used.cpu:
        return "IDLE"
    return "ALLOCATED" if used.cpu >= record.whole.cpu else "MIXED"
