"""`scontrol update job`: what may be changed of which jobs, and what the change comes to."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from accounting.tres import Tres
from broker.decide.commands import NOT_PENDING, OVER, by_record, each
from broker.decide.possible import must_know_features
from broker.decide.reading import standing_of
from broker.decide.reserved import must_admit, possible_here
from broker.decide.rules import Decision, QuoteFor
from broker.decide.submit import BAD_DEPENDENCY, must_be_within
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import ACCESS_DENIED, BadOption, Conflict, Denied, Unknown
from broker.model.job import IMPOSSIBLE, Hold, Job, JobState
from broker.model.lifecycle import Life, apply, life
from broker.model.patch import patch_of, patched
from broker.model.site import Partition, Site
from broker.model.spec import UNLIMITED, Dependency, Limit, TaskSpec
from broker.model.tally import party_of, used_by
from broker.schedule import priority
from broker.schedule.demand import cpus_for_memory, demand, wanted
from broker.schedule.depend import circles
from broker.schedule.gates import must_be_let_in, too_many_cpus
from broker.schedule.limits import Bound, at_submit
from broker.schedule.sums import Known, known_of
from broker.world import World

NOT_NOW = "Requested partition configuration not available now"
"""More cpus than the partition has (22.05)."""
PLAIN = tuple(f.name for f in fields(cmd.Update) if f.name not in {"target", "by", "spec"})
"""Fields that the fact has under the same name."""
ADMIN_ONLY = frozenset({"admin_comment"})
WHENEVER = frozenset({"comment", "admin_comment"})
"""What may be changed of jobs that are over too."""
WHILE_PENDING = frozenset({"partitions", "account", "qos", "begin", "after"})
"""What Slurm (25.11) changes of pending jobs alone; so are all fields of the spec."""

SIZE = frozenset({"resources.min_nodes", "resources.max_nodes"})
CIRCLE = "Circular job dependency"
NO_RESIZE = "Requested operation not supported on this system"
WHILE_OPEN = frozenset(
    {
        *("idle_seconds", "idle_from", "idle_stops", "idle_past_logins"),
        *("files", "buckets", "resources.build"),
    }
)
"""Fields of the spec that may be changed while a job runs."""


def decide_update(world: World, asked: cmd.Update, now: int, *, quote: QuoteFor) -> Decision:
    """Raises Denied for what only operators may raise, Refused for what cannot be."""
    values = {name: getattr(asked, name) for name in PLAIN}
    given = {name: value for name, value in values.items() if value is not None}
    known = known_of(world.site, world.tally, world.charges, now=now)

    def changed(job: Job) -> list[ev.Event]:
        if job.over and given.keys() == {"array_limit"} and not asked.spec:
            return []  # it has had its turn (22.05)
        _must_be_allowed(world.site, job, asked, given=given)
        _must_exist(world.site, asked, job)
        _must_not_circle(world, job, asked.after or ())
        _must_be_had(world.site, dict(asked.spec))
        stands = _standing(world, job, asked, known=known)
        if job.state.holds_nodes and asked.time_limit is not None:
            stands["limit_serial"] = world.last_event + 1 + job.id
        change = given | stands | _new_spec(world, job, asked)
        fact = ev.Changed(job=job.id, at=now, actor=asked.by.uid, **change)
        return [fact, *_held_or_not(world, job, fact, quote=quote)]

    return by_record(each(world, asked.target, asked.by, now=now), changed)


def _must_be_allowed(
    site: Site, job: Job, asked: cmd.Update, *, given: Mapping[str, object]
) -> None:
    if job.over and not (given.keys() <= WHENEVER and not asked.spec):
        raise Conflict(OVER)
    fixed = {path for path, _ in asked.spec} - WHILE_OPEN
    if life(job) is not Life.PENDING:
        if fixed and fixed <= SIZE:
            _must_be_its_size(job, asked)
        elif given.keys() & WHILE_PENDING or fixed:
            raise Conflict(NOT_PENDING)
    if not site.operates(asked.by.uid) and (given.keys() & ADMIN_ONLY or _raises(site, job, asked)):
        raise Denied(ACCESS_DENIED)


def _must_be_its_size(job: Job, asked: cmd.Update) -> None:
    """Machines are not given back one by one, nor added, while a job runs."""
    counts = {count for path, count in asked.spec if path in SIZE}
    if counts != {len(job.shares)}:
        raise Conflict(NO_RESIZE)


def _must_exist(site: Site, asked: cmd.Update, job: Job) -> None:
    """Raises Unknown or Denied for a partition that is not there, or not for who asks (22.05)."""
    reservation = _reservation(asked, job)
    for name in asked.partitions or ():
        partition = site.partition(name)
        if partition is None:
            raise Unknown("Invalid partition name specified")
        must_be_let_in(site, partition, asked.by, reservation=reservation)


def _reservation(asked: cmd.Update, job: Job) -> Any:
    """What it is in then."""
    return dict(asked.spec).get("reservation", job.spec.reservation)


def _must_not_circle(world: World, job: Job, wishes: Iterable[Dependency]) -> None:
    """Raises Conflict for a job that would wait for itself (22.05)."""
    own = {job.id, job.array.base} if job.array else {job.id}
    if any(wish.job in own for wish in wishes):
        raise Conflict(BAD_DEPENDENCY)
    if circles(job.id, wishes, world.jobs):
        raise Conflict(CIRCLE)


def _must_be_had(site: Site, fields_of_spec: Mapping[str, Any]) -> None:
    """Nodes that the site has, where none are bought; there are no licenses."""
    known = {node.name for node in site.nodes}
    bought = any(partition.elastic for partition in site.partitions)
    for path in ("resources.nodelist", "resources.exclude"):
        if not bought and not known.issuperset(fields_of_spec.get(path) or ()):
            raise Unknown("Invalid node name specified")
    if fields_of_spec.get("licenses"):
        raise BadOption("licenses", fields_of_spec["licenses"], "Invalid license specification")


def _raises(site: Site, job: Job, asked: cmd.Update) -> bool:
    """Whether a user asks for more priority, or more time than the job or its partition has."""
    if asked.priority is not None and asked.priority > job.priority:
        return True
    if asked.time_limit is None or job.time_limit == UNLIMITED:
        return False
    if job.state is JobState.PENDING:
        partition = site.partition((asked.partitions or job.partitions)[0])
        least: Any = dict(asked.spec).get("time_min", job.spec.time_min) or asked.time_limit
        return partition is not None and not _within(least, partition.max_time)
    return not _within(asked.time_limit, job.time_limit)


def _within(limit: Limit, most: Limit) -> bool:
    return most == UNLIMITED or (limit != UNLIMITED and limit <= most)


def _standing(world: World, job: Job, asked: cmd.Update, *, known: Known) -> dict[str, Any]:
    """Account and QOS as the books spell them. Raises BadOption for what the user may not have."""
    site = world.site
    if asked.account is None and asked.qos is None:
        return {}
    wish = {
        "account": asked.account or job.account,
        "qos": asked.qos or job.qos,
        "reservation": _reservation(asked, job),
    }
    partition = (asked.partitions or job.partitions)[0]
    stands = standing_of(site, job.spec.model_copy(update=wish), job.owner, partition=partition)
    account, qos = str(stands.account), stands.qos.name
    if not site.operates(asked.by.uid):
        moved = replace(job, account=account, qos=qos)
        known.add(party_of(job), used_by(job), -1)
        _must_be_few(world.site, moved, bounds=at_submit(stands), known=known)
        known.add(party_of(moved), used_by(moved))
    return {"account": account, "qos": qos}


def _must_be_few(site: Site, moved: Job, *, bounds: Iterable[Bound], known: Known) -> None:
    """Only how many jobs are submitted counts where a job moves (22.05). Raises OverLimit."""
    counting = (bound for bound in bounds if not bound.row.denied)
    must_be_within(site, moved, counting, known=known)


def _new_spec(world: World, job: Job, asked: cmd.Update) -> dict[str, Any]:
    """The spec with what was asked, and what it wants then."""
    site = world.site
    partition = site.partition((asked.partitions or job.partitions)[0])
    if partition is None or not (asked.spec or asked.partitions):
        return {}
    fields_asked = dict(asked.spec) | _memory_as_it_was(job, asked)
    patch = patch_of(fields_asked)
    spec = patched(job.spec, patch)
    more = cpus_for_memory(spec.resources, [partition])
    if more:
        patch = patch_of(fields_asked | {f"resources.{name}": n for name, n in more.items()})
        spec = patched(job.spec, patch)
    if spec.reservation != job.spec.reservation:
        must_admit(world, replace(job, spec=spec))
    as_made = spec.resources.model_copy(update={"build": job.spec.resources.build})
    if as_made == job.spec.resources:
        return {"patch": patch}
    return {"patch": patch, "want": _want(site, spec, partition)}


def _want(site: Site, spec: TaskSpec, partition: Partition) -> Tres:
    """Of more cpus than the partition has Slurm says so; of all else the job may wait (22.05)."""
    must_know_features(site, spec.resources.constraint)
    ask = demand(spec, partition)
    want = wanted(ask)
    if too_many_cpus(site, partition, max(want.cpu, ask.min_nodes * ask.min_cpus)):
        raise Conflict(NOT_NOW)
    return want


def _held_or_not(
    world: World, job: Job, changed: ev.Changed, *, quote: QuoteFor
) -> list[ev.JobEvent]:
    """A job that no node could run any more is held for that, until it is changed again (22.05)."""
    waits_so, at, actor = job.reason == IMPOSSIBLE, changed.at, changed.actor
    if life(job) is not Life.PENDING or not (waits_so or (changed.want and job.hold is None)):
        return []
    try:
        possible_here(world, apply(job, changed, version=job.version), quote)
    except BadOption as wrong:
        hold = ev.HoldSet(job=job.id, at=at, actor=actor, hold=job.hold or Hold.USER, priority=0)
        return [hold, ev.Waits(job=job.id, at=at, reason=IMPOSSIBLE, detail=wrong.hint)]
    if not waits_so:
        return []
    value = priority.initial(job.id, held=False)
    return [ev.HoldSet(job=job.id, at=at, actor=actor, hold=None, priority=value)]


def _memory_as_it_was(job: Job, asked: cmd.Update) -> dict[str, Any]:
    """Another partition's default does not change what a job was given when it was submitted."""
    has, want = job.spec.resources, job.want
    told = (has.mem_per_cpu_mib, has.mem_per_node_mib, has.mem_per_gpu_mib)
    if asked.partitions is None or told != (None, None, None):
        return {}
    if any(path.startswith("resources.mem_") for path, _ in asked.spec):
        return {}
    if not (want.mem_mib and want.cpu):
        return {"resources.mem_per_node_mib": "ALL"}
    return {"resources.mem_per_cpu_mib": want.mem_mib // want.cpu}
