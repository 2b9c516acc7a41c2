"""What a job asks of its partitions, and which nodes it may have at all, whatever is free."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.constraint import holds, parse, suits
from broker.model.job import Job
from broker.model.node import Node
from broker.model.site import Partition, Site
from broker.model.spec import Resources, TaskSpec, Where
from broker.model.tally import party_of
from broker.schedule.demand import Demand, asked_by, demand
from broker.schedule.fit import Room
from broker.schedule.gates import beyond, capacity, partition_gate


def eligible(one: Room, job: Job, partition: Partition) -> bool:
    """Whether the node serves the partition and is what the job asks for by name or kind."""
    node = one.node
    asked = job.spec.resources
    if partition.name not in node.partitions or node.drain or not node.state.takes_work:
        return False
    if _is_bound(asked) and node.name not in asked.nodelist:
        return False
    if node.name in asked.exclude:
        return False
    return not _is_anothers(one, job, partition) and is_of_kind(node, asked)


def _is_bound(asked: Resources) -> bool:
    """Whether it has to do with the nodes it names; more join them where they are too few."""
    return asked.max_nodes is not None and asked.max_nodes <= len(asked.nodelist)


def _is_anothers(one: Room, job: Job, partition: Partition) -> bool:
    """Whether it is kept for other users: bought machines are, unless the partition shares them."""
    user = job.owner.user
    if partition.exclusive_user and one.users - {user}:
        return True
    if one.node.declared or (partition.elastic is not None and partition.elastic.share_users):
        return False
    return one.node.cause.user not in {"", user}


def is_of_kind(node: Node, asked: Resources) -> bool:
    """Whether the node is what is asked for in cpus, features, place and GPUs, if it were empty."""
    if asked.build != node.build or asked.cpus_exactly not in {None, node.whole.cpu}:
        return False
    if (asked.tmp_mib or 0) > node.tmp_disk_mib:
        return False
    if node.declared and not _has_shape(node, asked):
        return False
    words = frozenset(word.lower() for word in node.features)
    if asked.constraint is not None and not suits(parse(asked.constraint), words):
        return False
    return not asked.any_of or any(_is_one_of(node, words, where) for where in asked.any_of)


def _has_shape(node: Node, asked: Resources) -> bool:
    """Of what is bought the cpus count alone: how they are laid out is not in the catalogue."""
    pairs = (
        (asked.sockets, node.sockets),
        (asked.cores_per_socket, node.cores_per_socket),
        (asked.threads_per_core, node.threads_per_core),
    )
    return all(least is None or least <= have for least, have in pairs)


def is_preferred(node: Node, wish: str) -> bool:
    """Whether the node has the features of `--prefer`."""
    return holds(parse(wish), frozenset(word.lower() for word in node.features))


def _is_one_of(node: Node, words: AbstractSet[str], where: Where) -> bool:
    """A bought node bears its region, zone, type and market as features."""
    named = (where.region, where.zone, where.instance_type, where.market)
    if any(name is not None and name.lower() not in words for name in named):
        return False
    dear = where.max_micro_usd_per_hour
    if dear is not None and node.micro_usd_per_hour > dear:
        return False
    if where.gpu is None:
        return True
    have = {name.lower(): count for name, count in node.whole.gres}
    return have.get(where.gpu.label().lower(), 0) >= where.gpu.count


@dataclass(frozen=True, slots=True)
class Ask:
    """What a job asks of one of its partitions."""

    partition: Partition
    demand: Demand
    gate: str | None
    """Why this partition will not start it as things are."""
    signature: int
    """Two asks of the same signature fit on the same nodes."""


class Asks:
    """What jobs ask, kept while their records stay the same: most of a long queue does."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._known: dict[JobId, tuple[Job, tuple[Ask, ...], int | None]] = {}
        self._numbers: dict[object, int] = {}
        self._demands: dict[object, tuple[Demand, str | None]] = {}
        """By what they follow from, each with why its partition could never serve it."""

    def of(self, job: Job) -> tuple[Ask, ...]:
        """One for each of its partitions that exists, in their order."""
        return self._look_up(job)[1]

    def kind(self, job: Job) -> int | None:
        """Alike for jobs that wait for room alone, and alike; None for those that need a look."""
        return self._look_up(job)[2]

    def closed(self, job: Job) -> bool:
        """Whether none of its partitions will start it as things are."""
        return all(ask.gate is not None for ask in self.of(job))

    def _look_up(self, job: Job) -> tuple[Job, tuple[Ask, ...], int | None]:
        known = self._known.get(job.id)
        if known is not None and known[0] is job:
            return known
        there = (self.site.partition(name) for name in job.partitions)
        asks = tuple(self._ask(job, partition) for partition in there if partition is not None)
        kind = self._number(_kind(job, asks)) if _plain(job) else None
        self._known[job.id] = found = job, asks, kind
        return found

    def _number(self, value: object) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _ask(self, job: Job, partition: Partition) -> Ask:
        wants, never = self._demand(job.spec, partition)
        looks = _signature(job, partition, wants)
        gated = partition_gate(self.site, job, partition, nodes=wants.min_nodes)
        return Ask(partition, wants, gate=gated or never, signature=self._number(looks))

    def _demand(self, spec: TaskSpec, partition: Partition) -> tuple[Demand, str | None]:
        key = asked_by(spec), partition.name
        known = self._demands.get(key)
        if known is None:
            wants = demand(spec, partition)
            self._demands[key] = known = wants, beyond(self.site, partition, wants)
        return known

    def tidy(self, waiting: int) -> None:
        """Begins anew once much more is kept than there are jobs waiting."""
        if len(self._known) > 2 * waiting + 1000:
            self._known, self._numbers, self._demands = {}, {}, {}


def _plain(job: Job) -> bool:
    """Whether nothing but room and limits can keep it waiting, and it is one record of its own."""
    whole_array = job.array is not None and job.array.task is None
    waits = job.hold or job.after or job.spec.begin is not None or job.not_before is not None
    return not (whole_array or waits or job.het is not None or job.spec.volumes)


def _kind(job: Job, asks: tuple[Ask, ...]) -> object:
    return tuple((ask.signature, ask.gate) for ask in asks), party_of(job), job.time_limit, job.want


def _signature(job: Job, partition: Partition, ask: Demand) -> object:
    asked = job.spec.resources
    apart = partition.exclusive_user or (partition.elastic and not partition.elastic.share_users)
    user = job.owner.user if apart else ""
    kind = asked.constraint, asked.any_of, asked.cpus_exactly, asked.tmp_mib, asked.build
    shape = asked.sockets, asked.cores_per_socket, asked.threads_per_core
    where = asked.nodelist, asked.exclude, job.spec.reservation
    return partition.name, ask, kind, shape, where, user


def too_many(asks: Iterable[tuple[Ask, ...]]) -> bool:
    """Whether jobs of one partition each want more nodes of one together than it can ever have."""
    wanted: dict[str, int] = {}
    for ask in (own[0] for own in asks if len(own) == 1):
        name = ask.partition.name
        wanted[name] = wanted.get(name, 0) + ask.demand.min_nodes
        if wanted[name] > capacity(ask.partition):
            return True
    return False
