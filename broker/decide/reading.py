"""What a site makes of a user's task: judged once for all jobs of a loop."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accounting.assoc import InvalidAccount, InvalidQos, Standing
from accounting.ids import JobId
from accounting.tres import Tres
from broker.decide.possible import must_know_features
from broker.model.errors import BadOption, Denied, Refused
from broker.model.job import Hold, Job, Owner
from broker.model.site import Partition, Site
from broker.model.spec import TaskSpec
from broker.schedule.demand import Demand, cpus_for_memory, demand, wanted
from broker.schedule.gates import limit_of, must_be_let_in, partition_gate, shut
from broker.schedule.limits import Bound, at_submit, stands_in
from broker.schedule.view import TARGETS
from broker.world import World
from sbatch_shim.grammar.values import read_sampling


@dataclass(slots=True, kw_only=True)
class Reading:
    """All that depends on the site, the task and the user alone."""

    site: Site
    spec: TaskSpec
    owner: Owner
    partitions: tuple[Partition, ...]
    bounds: tuple[Bound, ...]
    """Limits that are looked at when such a job is submitted."""
    record: Job
    """The job without its id and what time makes of it; its spec may be the site's version."""
    shut: str | None
    """Why none of its partitions starts it as things are (25.11), None where one might."""
    sampled: bool
    """Whether its memory is looked at as often as the site wants."""
    possible: bool = False
    """Whether declared nodes were found that could run it: they still are there."""

    def holds(self, site: Site, spec: TaskSpec, owner: Owner) -> bool:
        """By identity, but for the owner: comparing specs costs as much as reading them."""
        same = spec is self.spec or spec is self.record.spec
        return same and self.site is site and self.owner == owner


def reading_of(world: World, spec: TaskSpec, owner: Owner) -> Reading:
    """Of the last task it is known still: loops submit the same over and over.

    Raises BadOption and Denied with Slurm's texts (25.11).
    """
    known = world.last_read
    if not isinstance(known, Reading) or not known.holds(world.site, spec, owner):
        world.last_read = known = _read(world.site, spec, owner)
    return known


def _read(site: Site, spec: TaskSpec, owner: Owner) -> Reading:
    asked, (partitions, refused) = spec, _partitions(site, spec, owner)
    more = cpus_for_memory(spec.resources, partitions)
    if more:
        spec = spec.model_copy(update={"resources": spec.resources.model_copy(update=more)})
    stands = standing_of(site, spec, owner, partition=partitions[0].name)
    if refused is not None:
        raise refused
    must_know_features(site, spec.resources.constraint)
    if spec.resources.prefer not in TARGETS:
        must_know_features(site, spec.resources.prefer)
    ask = demand(spec, partitions[0])
    hold = Hold.USER if spec.hold else None
    record = Job(
        id=JobId(0),
        spec=spec,
        owner=owner,
        account=str(stands.account),
        qos=stands.qos.name,
        partitions=tuple(partition.name for partition in partitions),
        submitted=0,
        time_limit=limit_of(spec.time_limit, partitions[0]),
        want=_counted(site, wanted(ask)),
        hold=hold,
        reason=hold.value if hold else "None",
        after=spec.after,
        comment=spec.comment,
    )
    asks = [(one, demand(spec, one)) for one in partitions]
    _must_be_within_partitions(site, record, asks)
    return Reading(
        site=site,
        spec=asked,
        owner=owner,
        partitions=partitions,
        bounds=at_submit(stands),
        record=record,
        shut=shut(site, record, asks),
        sampled=_is_sampled(site, spec, ask),
    )


def _must_be_within_partitions(
    site: Site, record: Job, asks: Sequence[tuple[Partition, Demand]]
) -> None:
    """What would only wait is refused where the site says so (EnforcePartLimits, 22.05)."""
    tasks = record.spec.resources.tasks_per_node
    if tasks is not None and tasks > site.max_tasks_per_node:
        raise BadOption("ntasks-per-node", str(tasks), "Task count specification invalid")
    if site.enforce == "NO":
        return
    gates = [partition_gate(site, record, one, nodes=ask.min_nodes) for one, ask in asks]
    broken = [ENFORCED[gate] for gate in gates if gate in ENFORCED]
    if broken and (site.enforce == "ALL" or len(broken) == len(gates)):
        raise Refused(broken[0])


ENFORCED = {
    "AccountNotAllowed": "Invalid account or account/partition combination specified",
    "QOSNotAllowed": "Invalid qos specification",
    "PartitionTimeLimit": "Requested time limit is invalid (missing or exceeds some limit)",
    "PartitionNodeLimit": "Node count specification invalid",
}
"""What a job would wait for, and what is said instead."""


def _is_sampled(site: Site, spec: TaskSpec, ask: Demand) -> bool:
    """Where memory is counted, tasks are looked at no more seldom than the site does (22.05)."""
    text = spec.option("acctg-freq")
    counted = any(one is not None for one in (ask.mem_per_node, ask.mem_per_cpu, ask.mem_per_gpu))
    seconds = read_sampling(text or "").get("task")
    return not counted or seconds is None or 0 < seconds <= site.gather_seconds


def _counted(site: Site, want: Tres) -> Tres:
    """GPU types that no declared node has are not counted, where nothing is bought (25.11)."""
    if any(partition.elastic for partition in site.partitions):
        return want
    types = {name for node in site.nodes for name, _ in node.whole.gres}
    gres = tuple((name, count) for name, count in want.gres if name in types or ":" not in name)
    return replace(want, gres=gres)


def _partitions(
    site: Site, spec: TaskSpec, owner: Owner
) -> tuple[tuple[Partition, ...], Denied | None]:
    """Those named that let the user in: one is enough (EnforcePartLimits=NO). With none that does
    all of them, and why; accounts and QOS are looked at before that counts (22.05).
    """
    named = [site.partition(name) for name in spec.partitions] or [site.default_partition]
    let_in: list[Partition] = []
    refused: Denied | None = None
    for name, partition in zip(spec.partitions or ("",), named, strict=True):
        if partition is None:
            raise _no_partition(site, name)
        try:
            must_be_let_in(site, partition, owner, reservation=spec.reservation)
            let_in.append(partition)
        except Denied as error:
            refused = refused or error
    if let_in:
        return tuple(let_in), None
    return tuple(filter(None, named)), refused


def _no_partition(site: Site, name: str) -> BadOption:
    if not name:
        return BadOption("partition", "", "No partition specified or system default partition")
    return BadOption(
        "partition",
        name,
        "Invalid partition name specified",
        hint="partitions here: " + ", ".join(p.name for p in site.partitions),
    )


def standing_of(site: Site, spec: TaskSpec, owner: Owner, *, partition: str) -> Standing:
    """Raises BadOption for an account or QOS that the task may not have."""
    try:
        found = stands_in(site, owner.user, partition=partition, account=spec.account, qos=spec.qos)
    except InvalidAccount as error:
        raise BadOption("account", spec.account or "", str(error)) from error
    except InvalidQos as error:
        raise BadOption("qos", spec.qos or "", str(error)) from error
    if "RequiresReservation" in found.qos.flags and not spec.reservation:
        raise BadOption("qos", found.qos.name, str(InvalidQos(owner.user, found.qos.name)))
    return found
