"""Which nodes a job would take, and what of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from accounting.tres import GresCounts, Tres, gres_counts
from broker.model.constraint import holds, suits
from broker.model.ids import NodeName
from broker.model.job import Share
from broker.model.node import Node
from broker.model.spec import Gres
from broker.schedule.demand import Demand


@dataclass(slots=True)
class Room:
    """A node with what is free of it; changes while a plan is made."""

    node: Node
    free: Tres
    cpu_ids: set[int]
    """Free ones."""
    gpu_ids: set[int]
    holders: int
    users: frozenset[str] = frozenset()
    held: dict[str, int] = field(default_factory=dict)
    """Cpus that jobs hold of it, by partition, where one may hold no more than so many."""

    @property
    def name(self) -> NodeName:
        return self.node.name

    def take(self, share: Share, partition: str = "") -> None:
        """Less of it is free."""
        self.held[partition] = self.held.get(partition, 0) + share.tres.cpu
        self.free = self.free - share.tres
        self.cpu_ids -= set(share.cpu_ids)
        self.gpu_ids -= set(share.gpu_ids)
        self.holders += 1

    def give_back(self, share: Share, partition: str = "") -> None:
        """What was taken is free again."""
        self.held[partition] = self.held.get(partition, 0) - share.tres.cpu
        self.free = self.free + share.tres
        self.cpu_ids |= set(share.cpu_ids)
        self.gpu_ids |= set(share.gpu_ids)
        self.holders -= 1

    def copy(self) -> "Room":
        """One whose changes leave this one alone."""
        ids = set(self.cpu_ids), set(self.gpu_ids)
        return Room(self.node, self.free, *ids, self.holders, self.users, dict(self.held))


def room(node: Node, shares: Iterable[Share]) -> Room:
    """The node's room beside those who hold shares of it."""
    held = list(shares)
    gpus = dict(node.whole.gres).get("gpu", 0)
    made = Room(node, node.whole, set(range(node.whole.cpu)), set(range(gpus)), 0)
    for share in held:
        made.take(share)
    return made


def choose(ask: Demand, rooms: Sequence[Room]) -> tuple[Share, ...] | None:
    """Shares on the fewest of `rooms`, in their order; None if it does not fit.

    As Slurm 25.11 (cons_tres, no -N): one node if one has room, else nodes are filled in order.
    Nodes that are named come first; others join all of them where they are too few.
    """
    if ask.named:
        rooms = sorted(rooms, key=lambda one: one.name not in ask.named)
    if len(ask.ways) > 1:
        return _one_way(ask, rooms)
    if not ask.kinds:
        return _fewest(ask, rooms)
    sorted_out = _of_kinds(ask, [one for one in rooms if _most(ask, one, 1, part=())])
    shares = _fewest(ask, sorted_out)
    taken = {share.node for share in shares or ()}
    return shares if _are_of_kinds(ask, [one for one in rooms if one.name in taken]) else None


def _one_way(ask: Demand, rooms: Sequence[Room]) -> tuple[Share, ...] | None:
    """Nodes that are all the same of what they may be, the first that has room."""
    for way in ask.ways:
        alike = [one for one in rooms if suits(way, _words(one))]
        shares = choose(replace(ask, ways=(way,)), alike)
        if shares:
            return shares
    return None


def _of_kinds(ask: Demand, rooms: Sequence[Room]) -> list[Room]:
    """Those first that are of the sorts asked for, as many of each; the scarcest sort chooses."""
    words = {one.name: _words(one) for one in rooms}
    suited = {
        kind: [one for one in rooms if holds(kind, words[one.name])] for kind in set(ask.kinds)
    }
    first: list[Room] = []
    for kind in sorted(ask.kinds, key=lambda kind: len(suited[kind]) - kind.count):
        left = [one for one in suited[kind] if one not in first]
        left.sort(key=lambda one: sum(holds(other, words[one.name]) for other in ask.kinds))
        first += left[: kind.count]
    return [*first, *(one for one in rooms if one not in first)]


def _are_of_kinds(ask: Demand, rooms: Sequence[Room]) -> bool:
    words = [_words(one) for one in rooms]
    return all(sum(holds(kind, have) for have in words) >= kind.count for kind in ask.kinds)


def _words(one: Room) -> frozenset[str]:
    return frozenset(word.lower() for word in one.node.features)


def _fewest(ask: Demand, rooms: Sequence[Room]) -> tuple[Share, ...] | None:
    if ask.min_nodes == 1 and ask.max_nodes is None:
        for one in rooms:
            shares = _spread(ask, [one], count=1)
            if shares:
                return shares
    most = min(len(rooms), ask.tasks if ask.max_nodes is None else ask.max_nodes)
    if ask.gpus:  # each of the nodes has one of them (22.05)
        most = min(most, sum(gpu.count for gpu in ask.gpus))
    rising = range(ask.min_nodes, most + 1)
    wishes = rising if ask.fewest or not ask.max_nodes else reversed(rising)
    for count in wishes:
        shares = _spread(ask, rooms, count=count)
        if shares:
            return shares
    return None


def _spread(ask: Demand, rooms: Sequence[Room], *, count: int) -> tuple[Share, ...] | None:
    """Exactly `count` nodes: each is filled, leaving one task for every node still to come."""
    tasks, gpus = max(ask.tasks, count), ask.gpus
    shares: list[Share] = []
    for one in rooms:
        rest = count - len(shares)
        if rest == 0:
            break
        part = _part(gpus, rest)
        most = _most(ask, one, tasks - (rest - 1), part=part)
        if most == 0:
            continue
        shares.append(share_of(ask, one, most, part=part))
        tasks -= most
        gpus = _less(gpus, part)
    if len(shares) < count or tasks or not _are_named(ask, shares):
        return None
    return tuple(shares)


def _are_named(ask: Demand, shares: Sequence[Share]) -> bool:
    """Whether none of the named nodes was passed over for another."""
    taken = {share.node for share in shares}
    return taken >= ask.named or taken <= ask.named


def even_shares(ask: Demand, rooms: Sequence[Room]) -> tuple[Share, ...]:
    """Shares of all of `rooms`, which are large enough: the first ones take what is over."""
    shares, tasks, gpus = [], ask.tasks, ask.gpus
    for rest, one in zip(range(len(rooms), 0, -1), rooms, strict=True):
        part = _part(gpus, rest)
        here = max(1, -(-tasks // rest))
        shares.append(share_of(ask, one, here, part=part))
        tasks -= here
        gpus = _less(gpus, part)
    return tuple(shares)


def _part(gpus: tuple[Gres, ...], rest: int) -> tuple[Gres, ...]:
    """This node's part of the job's GPUs: even, the first nodes take what is over."""
    return tuple(g.model_copy(update={"count": -(-g.count // rest)}) for g in gpus if g.count)


def _less(gpus: tuple[Gres, ...], part: tuple[Gres, ...]) -> tuple[Gres, ...]:
    taken = {g.label(): g.count for g in part}
    return tuple(g.model_copy(update={"count": g.count - taken.get(g.label(), 0)}) for g in gpus)


def _most(ask: Demand, one: Room, tasks: int, *, part: tuple[Gres, ...]) -> int:
    """How many of `tasks` the node has room for."""
    most = min(tasks, ask.tasks_per_node or tasks)
    if ask.whole_node and one.holders:
        return 0
    most = min(most, _by_shape(ask, one, most))
    if not ask.overcommit:
        most = min(most, one.free.cpu // ask.cpus_per_task)
    while most > 0 and not _fits(ask, one, most, part=part):
        most -= 1
    return most


def _by_shape(ask: Demand, one: Room, tasks: int) -> int:
    """How many of `tasks` the limits for a socket and for a core leave."""
    if ask.tasks_per_socket is not None:
        tasks = min(tasks, ask.tasks_per_socket * one.node.sockets)
    if ask.tasks_per_core is not None:
        tasks = min(tasks, ask.tasks_per_core * max(1, one.free.cpu // one.node.threads_per_core))
    return tasks


def _fits(ask: Demand, one: Room, tasks: int, *, part: tuple[Gres, ...]) -> bool:
    least = _typed(ask.for_tasks(tasks, one.node.whole, part), one.node.whole.gres)
    cpus = one.node.whole.cpu if ask.whole_node else least.cpu
    return ask.may_hold(cpus, one.held.get(ask.partition, 0)) and least.fits(one.free)


def share_of(ask: Demand, one: Room, tasks: int, *, part: tuple[Gres, ...]) -> Share:
    """What `tasks` tasks take of the node: the lowest free cpus and GPUs."""
    tres = _typed(ask.on_node(tasks, one.node.whole, part), one.node.whole.gres)
    gpus = dict(tres.gres).get("gpu", 0)
    return Share(
        node=one.name,
        launch=one.node.launch,
        tres=tres,
        cpu_ids=tuple(sorted(one.cpu_ids)[: tres.cpu]),
        gpu_ids=tuple(sorted(one.gpu_ids)[:gpus]),
        tasks=tasks,
    )


def _typed(tres: Tres, node: GresCounts) -> Tres:
    """Names of types as the node spells them; an untyped count gets the node's only type."""
    spelled = {name.lower(): name for name, _ in node}
    counts = {spelled.get(name.lower(), name): count for name, count in tres.gres}
    for base, count in list(counts.items()):
        types = [name for name, _ in node if name.startswith(f"{base}:")]
        if ":" not in base and len(types) == 1:
            counts[types[0]] = count
    return Tres(tres.cpu, tres.mem_mib, tres.node, gres_counts(counts))
