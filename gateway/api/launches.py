"""From a task's text to a command for the engine: a new cluster, or a run in one that is there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from broker.decide.possible import NOT_AVAILABLE
from broker.decide.rules import QuoteFor
from broker.model.build import USUAL, Build
from broker.model.commands import AddStep, Submit, Target, Update
from broker.model.errors import BadOption, BadSpec, Conflict, Denied, SpzError, Unknown
from broker.model.job import Job, Owner
from broker.model.offer import Machine, Need
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Mount, TaskSpec, Value
from broker.model.stopping import StartCluster
from broker.schedule.demand import demand, need_of
from broker.world import Snapshot
from gateway.api.job_views import Json, clusters, nodes_of, offer_view
from gateway.api.reuse import EXPECTED_SECONDS, gpus_of, must_do, must_hold
from gateway.translate.refusals import FIRST_LINES
from gateway.translate.skypilot import Task, read_file
from gateway.translate.skypilot_documents import Given
from gateway.translate.skypilot_files import own_buckets, volumes
from gateway.translate.skypilot_notes import must_be_possible
from gateway.translate.skypilot_run import LOCAL, Origin, Within, absolute, gpus_asked, run_of
from gateway.translate.skypilot_slurm import slurm_fields
from gateway.translate.skypilot_task import (
    settled,
    sizes_said,
    translate,
    working_directory,
)
from gateway.translate.volumes import lacking

SHOWN_CANDIDATES = 5
IDLING = ("idle_seconds", "idle_stops", "idle_past_logins")


class Market(Protocol):
    """What could be bought; `broker.quotes.Quotes` is one."""

    def at(self, now: int) -> QuoteFor: ...


class LaunchRequest(BaseModel):
    """A task as typed, and from where; bytes that are no UTF-8 travel as lone surrogates."""

    model_config = ConfigDict(extra="forbid")

    request: str = Field(min_length=16, max_length=64, pattern=r"^[0-9A-Za-z]+$")
    """The same for every try of one command."""
    task: str
    cluster: str | None = None
    overrides: dict[str, Any] = {}
    envs: dict[str, str] = {}
    secrets: dict[str, str] = {}
    cwd: str
    home: str
    logs: str
    environ: dict[str, str] = {}
    host: str = ""
    commit: str | None = Field(default=None, max_length=64)
    """Of the repository where it was typed."""
    setup: bool = True
    """False leaves `setup` out (`--no-setup`)."""
    dry_run: bool = False


@runtime_checkable
class Opens(Protocol):
    """A provider whose machines are closed to the world but for what is opened."""

    def open_ports(self, machines: Sequence[Machine], ports: tuple[str, ...]) -> None:
        """These, and no others; safe to repeat. Raises Refused, OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """Ports that machines which are there are to have open."""

    provider: str
    machines: tuple[Machine, ...]
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """What a request comes to."""

    command: Submit | AddStep
    cluster: str
    notes: tuple[str, ...]
    cwd: str
    spec: TaskSpec | None = None
    """None for a run in a cluster that is there."""
    workdir: str | None = None
    """What is brought to machines elsewhere."""
    first: tuple[Update | StartCluster, ...] = ()
    """What has to be asked before: a run needs files that the cluster does not get yet, or the
    cluster is stopped."""
    after: tuple[Update, ...] = ()
    """What is asked then; not before, or an autostop might overtake the run."""
    opening: Opening | None = None
    """What has to be done before that."""

    @property
    def runs(self) -> bool:
        """Whether anything is started; a task may only ask for a machine."""
        return self.spec is None or bool(self.spec.steps)


def planned(
    asked: LaunchRequest, owner: Owner, seen: Snapshot, *, answered: str | None = None
) -> Planned:
    """A run in the owner's cluster of that name if there is one, else a new cluster.

    `answered` is what the same request was answered with before: the cluster that is there is
    then its own. Raises BadSpec, and Conflict for a cluster that is too small or not up yet.
    """
    task = one_task(asked)
    name = asked.cluster or made_up_name(asked.request, owner.user)
    where = origin(asked, seen.site, task)
    made = translate(task, where, cluster=name, with_setup=asked.setup)
    admin = owner.uid in seen.site.admins
    made = settled(made, known=seen.volumes, owner=owner, admin=admin)
    there = None if _made_it(answered) else find_cluster(seen, owner, name)
    if there is None:
        command = Submit(spec=made.spec, owner=owner, request=asked.request, blobs=made.blobs)
        workdir = _workdir(task, where)
        return Planned(command, name, made.notes, made.spec.cwd, made.spec, workdir=workdir)
    must_do(there, made, seen, said=sizes_said(task))
    plan = _run_in(there, owner, asked=asked, where=where, notes=made.notes)
    plan = replace(plan, after=_idles(there, owner, made.spec))
    build = _grown(there, made.spec.resources.build or USUAL)
    if build is None:
        return plan
    opens = Update(target=Target(there.id), by=owner, spec=(("resources.build", asdict(build)),))
    return replace(plan, opening=_opening(there, seen, build), first=(opens, *plan.first))


def _idles(there: Job, owner: Owner, asked: TaskSpec) -> tuple[Update, ...]:
    """The task's autostop is the cluster's from now on; a task without one changes nothing."""
    if asked.idle_seconds is None:
        return ()
    change = tuple((name, getattr(asked, name)) for name in IDLING)
    return (Update(target=Target(there.id), by=owner, spec=change),)


def _grown(there: Job, asked: Build) -> Build | None:
    """As the cluster's machines are once they have the ports open that they lack; None: all are."""
    has = there.spec.resources.build or USUAL
    closed = tuple(port for port in asked.ports if port not in has.ports)
    return replace(has, ports=(*has.ports, *closed)) if closed else None


def _opening(there: Job, seen: Snapshot, build: Build) -> Opening | None:
    """None where nothing is closed: declared nodes are as their site has them.

    Raises Conflict where others may use the same machines.
    """
    elastic = getattr(seen.site.partition(there.partition), "elastic", None)
    if elastic is None:
        return None
    if elastic.share_users and there.spec.resources.build is None:
        raise Conflict(
            f"cluster {there.spec.cluster!r} shares its machines with other users",
            hint="launch under another name: machines with ports are its own",
        )
    machines = tuple(node.machine for node in nodes_of(there, seen) if node.machine is not None)
    return Opening(elastic.buy.provider, machines, build.ports)


def _made_it(answered: str | None) -> bool:
    return answered is not None and "." not in answered


def planned_run(asked: LaunchRequest, owner: Owner, seen: Snapshot, *, name: str) -> Planned:
    """`exec`: `run` alone, in a cluster that has to be there. Raises Unknown, BadSpec, Conflict."""
    there = find_cluster(seen, owner, name)
    if there is None:
        raise Unknown(f"you have no cluster {name!r}", hint=f"`spz launch -c {name} TASK` makes it")
    if there.kept:
        raise Conflict(f"cluster {name!r} is stopped", hint=f"`spz start {name}` starts it")
    plain = asked.model_copy(update={"setup": False})
    task = one_task(plain)
    where = origin(plain, seen.site, task)
    if lacks := lacking(there.spec.volumes, volumes(task, lambda path: absolute(path, where))):
        out = "volumes are attached when a cluster is launched"
        raise Conflict(f"cluster {name!r} does not have {'; '.join(lacks)}", hint=out)
    must_hold(there, nodes=task.num_nodes, gpus=gpus_asked(task))
    return _run_in(there, owner, asked=plain, where=where, notes=())


def _run_in(
    there: Job, owner: Owner, *, asked: LaunchRequest, where: Origin, notes: tuple[str, ...]
) -> Planned:
    task = one_task(asked)
    must_be_possible(task)
    folder = working_directory(task, where) if task.workdir else there.spec.cwd
    elsewhere = folder if folder != there.spec.cwd else None
    run = run_of(
        task,
        cluster=str(there.spec.cluster),
        origin=where,
        where=_within(there, elsewhere),
        with_setup=asked.setup,
    )
    if not run.step.phases:
        raise BadSpec("run", "", "run: nothing to run", hint="write setup or run")
    command = AddStep(job=there.id, by=owner, step=run.step, request=asked.request, blobs=run.blobs)
    wanted = (*run.brought, *_further(task, there, where))
    brings = _brings(there, owner, {"files": wanted, "buckets": own_buckets(task)})
    starts = (StartCluster(job=there.id, by=owner),) if there.kept else ()
    told, name = (*notes, *run.notes), str(there.spec.cluster)
    first, workdir = (*brings, *starts), _workdir(task, where)
    return Planned(command, name, told, folder, workdir=workdir, first=first)


def _workdir(task: Task, where: Origin) -> str | None:
    """The folder that travels; None where there is none, or nodes see it."""
    there = isinstance(task.workdir, str) and where.provider != LOCAL
    return working_directory(task, where) if there else None


def _further(task: Task, there: Job, where: Origin) -> tuple[Mount, ...]:
    """A workdir that is another than that of the cluster's first run."""
    folder = _workdir(task, where)
    if folder is None or folder == there.spec.cwd:
        return ()
    return (Mount(source=folder, target=folder),)


def _brings(
    there: Job, owner: Owner, wanted: Mapping[str, tuple[Value, ...]]
) -> tuple[Update, ...]:
    """Asks that the cluster has these too, by the field of its spec, from now on."""
    known = {field: getattr(there.spec, field) for field in wanted}
    change = tuple(
        (field, tuple(dict.fromkeys((*known[field], *more))))
        for field, more in wanted.items()
        if not set(more) <= set(known[field])
    )
    return (Update(target=Target(there.id), by=owner, spec=change),) if change else ()


def _within(there: Job, folder: str | None) -> Within:
    """What of a cluster a run may have a part of."""
    held = there.shares or there.kept
    if not held:
        return Within(folder)
    share = held[0].tres
    return Within(folder, share.cpu, gpus_of(share))


def one_task(asked: LaunchRequest) -> Task:
    """The only task of the text. Raises BadSpec."""
    tasks = read_file(asked.task, given_with(asked)).tasks
    if len(tasks) > 1:
        raise BadSpec(
            "", "", f"a pipeline or group of {len(tasks)} tasks", hint="`spz jobs launch` takes it"
        )
    return tasks[0]


def nodes_asked(spec: TaskSpec | None) -> int:
    """How many machines it is for; 1 for a run in a cluster that is there."""
    return (spec.resources.min_nodes if spec is not None else None) or 1


def given_with(asked: LaunchRequest) -> Given:
    """What was typed beside the task."""
    return Given(asked.envs, asked.secrets, asked.overrides)


def origin(asked: LaunchRequest, site: Site, task: Task) -> Origin:
    """From where it was sent, and onto what it goes: the partition that it names, or the usual."""
    named = slurm_fields(task.slurm).get("partitions", ())
    partition = site.partition(named[0]) if named else site.default_partition
    elastic = (partition.elastic if partition else None) or Elastic("", max_nodes=0)
    return Origin(
        cwd=asked.cwd,
        home=asked.home,
        logs=asked.logs,
        environ=asked.environ,
        provider=elastic.buy.provider,
        memory_share_percent=elastic.buy.memory_share_percent,
        host=asked.host,
        commit=asked.commit,
    )


def made_up_name(request: str, user: str) -> str:
    """`sky-3f2a-user`; the same for every try of one command."""
    letters = "".join(char for char in user if char.isascii() and char.isalnum()) or "user"
    return f"sky-{sha256(request.encode()).hexdigest()[:4]}-{letters}"


def find_cluster(seen: Snapshot, owner: Owner, name: str) -> Job | None:
    """The owner's open cluster of that name; other people's names do not clash."""
    mine = (job for job in clusters(seen.jobs) if job.owner.uid == owner.uid)
    return next((job for job in mine if job.spec.cluster == name), None)


def must_find(seen: Snapshot, owner: Owner, name: str) -> Job:
    """Administrators reach everybody's clusters. Raises Unknown, Denied."""
    found = find_cluster(seen, owner, name)
    if found is not None:
        return found
    others = [job for job in clusters(seen.jobs) if job.spec.cluster == name]
    if not others:
        raise Unknown(f"no cluster {name!r}", hint="`spz status` lists those there are")
    if owner.uid not in seen.site.admins:
        raise Denied(f"cluster {name!r} is {others[0].owner.user}'s", hint="yours: `spz status`")
    if len(others) > 1:
        users = ", ".join(job.owner.user for job in others)
        raise Conflict(f"several users have a cluster {name!r}: {users}", hint="use its job id")
    return others[0]


def candidates(spec: TaskSpec, site: Site, quote: QuoteFor) -> list[Json]:
    """What could be bought for it, the best first. Raises BadOption if nothing can."""
    named = spec.partitions or ()
    partition = site.partition(named[0]) if named else site.default_partition
    if partition is None and named:
        text = FIRST_LINES["partition"].format(named[0])
        raise BadOption("partition", named[0], text, hint="`sinfo` lists those there are")
    if partition is None or partition.elastic is None:
        return []
    found = quote(need_in(spec, partition), partition.elastic)
    if not found.rungs:
        raise BadOption("resources", "", NOT_AVAILABLE, hint=found.explain)
    return [offer_view(ranked) for ranked in found.rungs[:SHOWN_CANDIDATES]]


def explained(error: SpzError, spec: TaskSpec | None, site: Site) -> SpzError:
    """A refusal of what no node could ever give names what was asked for, and of whom."""
    if error.message != NOT_AVAILABLE or error.hint or spec is None:
        return error
    asked = spec.resources
    mib = asked.mem_per_node_mib
    memory = "all memory" if mib == "ALL" else f"memory {(mib or 0) / 1024:g} GB"
    gpus = [one.gpu for one in asked.any_of if one.gpu] or asked.gres
    kinds = dict.fromkeys(f"{one.count} {one.type or one.name}" for one in gpus)
    cpus = asked.cpus_exactly or asked.min_cpus_per_node or asked.cpus_per_task or 1
    default = site.default_partition.name if site.default_partition else "none"
    where = ",".join(spec.partitions or ()) or default
    parts = ", ".join([f"{cpus} cpus", *([" or ".join(kinds)] if kinds else [])])
    error.hint = (
        f"asked for {parts} and {memory} on each node, in partition {where}: "
        "see resources of the task (--cpus 2+, --memory 4+, --gpus), or sinfo for other partitions"
    )
    return error


def need_in(spec: TaskSpec, partition: Partition) -> Need:
    """What would be bought for it, as long as a run usually lasts."""
    return need_of(spec, demand(spec, partition), EXPECTED_SECONDS)
