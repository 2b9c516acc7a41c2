"""A task as written in SkyPilot's YAML to a TaskSpec: a cluster, and the run to start in it.

A cluster is an allocation of a whole machine that is kept open; `setup` and `run` are a step in it.
What cannot be done is refused by name, what is left out is said in a note.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from broker.model import octets
from broker.model.build import Build
from broker.model.errors import BadSpec
from broker.model.ids import Digest, digest_of
from broker.model.job import Owner
from broker.model.spec import (
    ALL,
    Gres,
    Memory,
    Output,
    Phase,
    Resources,
    StepSpec,
    TaskSpec,
    Where,
)
from broker.model.volume import NamedVolume
from gateway.translate.skypilot import Candidate, Task
from gateway.translate.skypilot_build import build_of, without_effect
from gateway.translate.skypilot_container import image_of, own_image
from gateway.translate.skypilot_files import own_buckets, volumes
from gateway.translate.skypilot_hooks import hooks_of, keeper, seconds_of
from gateway.translate.skypilot_notes import must_be_possible, notes
from gateway.translate.skypilot_run import (
    BASH,
    LOCAL,
    Origin,
    absolute,
    packed,
    run_of,
)
from gateway.translate.skypilot_slurm import options, slurm_fields
from gateway.translate.skypilot_supply import served
from gateway.translate.skypilot_values import CLUSTER_NAME, Cpus, Gpu, Place
from gateway.translate.skypilot_values import Memory as AskedMemory
from gateway.translate.staging import Staging, read_staging
from gateway.translate.volumes import placed
from sbatch_shim.grammar.errors import GrammarError

LOG_NAME = "%x-%j.%s.log"
"""File of a run's text, in the folder of logs: cluster, job, step."""
LOG_OF_EACH = "%x-%j.%s.%n.log"
"""Of several nodes each has its own."""
USUAL_CPUS = Cpus(8, exactly=False)
USUAL_MIB_PER_CPU = 4 * 1024
"""Of a task that asks for no GPU and no type, as in SkyPilot."""
KEPT_VARIABLES = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ")
"""Of the submitter's variables: enough for a shell. A task says itself what else it needs."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A spec, the bytes that it names, and what the user should know."""

    spec: TaskSpec
    blobs: Mapping[Digest, bytes]
    notes: tuple[str, ...] = ()


def translate(task: Task, origin: Origin, *, cluster: str, with_setup: bool = True) -> Translated:
    """The cluster that the task asks for, with its run in it. Raises BadSpec."""
    must_be_cluster_name(cluster)
    must_be_possible(task)
    run = run_of(task, cluster=cluster, origin=origin, with_setup=with_setup)
    environment = packed(_kept(origin.environ))
    asked, told = _resources(task, origin)
    cwd = working_directory(task, origin)
    travels = staging(task, cwd)
    spec = TaskSpec(
        name=task.name or cluster,
        resources=asked,
        steps=(run.step,) if run.step.phases else (),
        environment=digest_of(environment),
        cwd=cwd,
        files=(*travels.files, *run.brought),
        results=tuple(travels.results),
        checkpoint=travels.checkpoint,
        buckets=own_buckets(task),
        volumes=volumes(task, lambda path: absolute(path, origin)),
        output=Output(stdout=log_pattern(origin.logs, cluster, task.num_nodes)),
        requeue=False,
        submit_line=f"spz launch -c {cluster}",
        submit_host=origin.host,
        submit_dir=origin.cwd,
        cluster=cluster,
        **(_limits(task) | _idle(task) | slurm_fields(task.slurm)),
    )
    blobs = {**run.blobs, digest_of(environment): environment}
    if hooks := hooks_of(task):
        script = octets.raw(keeper(hooks))
        phase = Phase(name="run", script=digest_of(script), argv=(BASH, None))
        holds = StepSpec(name="batch", phases=(phase,), environment=run.step.environment)
        kept = {"keeper": holds, "hook_seconds": seconds_of(hooks)}
        spec, blobs = spec.model_copy(update=kept), {**blobs, digest_of(script): script}
    return Translated(spec, blobs, (*notes(task), *told))


def staging(task: Task, cwd: str) -> Staging:
    """What the `#SPZ` lines at the head of `run` ask for, as in batch scripts. Raises BadSpec."""
    try:
        return read_staging(task.run or "", name="run", program="spz", cwd=cwd)
    except GrammarError as error:
        told = error.stderr.removeprefix("spz: error: ").strip()
        raise BadSpec("run", "", told) from error


def must_be_cluster_name(name: str) -> None:
    """Raises BadSpec for a name that SkyPilot would not take either."""
    if not CLUSTER_NAME.fullmatch(name):
        raise BadSpec(
            "cluster",
            name,
            f"{name!r} is no name of a cluster",
            hint="a letter, then letters, digits, - _ and ., a letter or digit at the end",
        )


def working_directory(task: Task, origin: Origin) -> str:
    """Where the scripts start: `workdir`, else SkyPilot's `~/sky_workdir`."""
    if not isinstance(task.workdir, str):
        return f"{origin.home.rstrip('/')}/sky_workdir"
    return absolute(task.workdir, origin)


def log_pattern(folder: str, cluster: str, nodes: int) -> str:
    """Pattern of the files that hold what runs of the cluster say."""
    name = LOG_NAME if nodes == 1 else LOG_OF_EACH
    return f"{folder.rstrip('/').replace('%', '%%')}/{name.replace('%x', cluster)}"


# --- resources


def _resources(task: Task, origin: Origin) -> tuple[Resources, tuple[str, ...]]:
    notes: list[str] = []
    asked = _here(task, notes)
    first = _least(asked, notes)
    cpus = _cpus(first)
    choices = [where for one in asked for where in _choices(one, notes)]
    counts = {gpu.count for _, gpu in choices if gpu} if choices else set()
    if counts and not all(gpu for _, gpu in choices):
        raise BadSpec(
            "resources.accelerators",
            "",
            "resources.accelerators: some alternatives have them, some not",
            hint="launch them as two tasks",
        )
    return (
        Resources(
            min_nodes=task.num_nodes,
            max_nodes=task.num_nodes,
            min_cpus_per_node=cpus.count if cpus else None,
            cpus_exactly=cpus.count if cpus and cpus.exactly else None,
            mem_per_node_mib=_memory(first, cpus, origin=origin, notes=notes),
            tmp_mib=first.local_disk,
            gres=_gres([gpu for _, gpu in choices if gpu]),
            exclusive=True,
            constraint=dict(options(task.slurm)).get("constraint"),
            any_of=_any_of(choices),
            ordered=_ordered(task),
            build=_build(asked, origin, notes),
        ),
        tuple(dict.fromkeys(notes)),
    )


def _build(asked: list[Candidate], origin: Origin, notes: list[str]) -> Build | None:
    if origin.provider != LOCAL:
        return build_of(asked, notes)
    notes += without_effect(asked)
    return None


def _ordered(task: Task) -> bool:
    listed = task.resources.accelerators is not None and task.resources.accelerators.ordered
    return bool(task.resources.ordered) or listed


def hard_limit(task: Task) -> int | None:
    """Seconds from the start after which it ends whatever runs (`wait_for: none`)."""
    found = [one.autostop for one in task.resources.candidates if one.autostop]
    limits = [one.idle_seconds for one in found if one.wait_for == "none"]
    return min(limits) if limits else None


def _limits(task: Task) -> dict[str, int | None]:
    """Its end, and its place in the queue: SkyPilot's priority counts the other way round."""
    asked = [one.priority for one in task.resources.candidates if one.priority is not None]
    return {"time_limit": hard_limit(task), "nice": -max(asked) if asked else 0}


def settled(
    made: Translated, *, known: Mapping[str, NamedVolume], owner: Owner, admin: bool
) -> Translated:
    """Where its owner's volumes are; not before other people's jobs unless that may be.

    Raises BadSpec.
    """
    spec = placed(made.spec, known, owner.uid)
    if spec.nice >= 0 or admin:
        return replace(made, spec=spec)
    told = "priority: jobs of others are only passed by administrators, as with sbatch --nice"
    return replace(made, spec=spec.model_copy(update={"nice": 0}), notes=(*made.notes, told))


def _idle(task: Task) -> dict[str, int | bool | None]:
    found = [one.autostop for one in task.resources.candidates if one.autostop]
    return {
        "idle_seconds": None if hard_limit(task) is not None else idle_seconds(task),
        "idle_stops": bool(found) and not all(one.down for one in found),
        "idle_past_logins": bool(found) and all(one.wait_for == "jobs" for one in found),
    }


def idle_seconds(task: Task) -> int | None:
    """After how long without a run the cluster ends; the shortest of the alternatives."""
    found = [one.autostop.idle_seconds for one in task.resources.candidates if one.autostop]
    return min(found) if found else None


SIZES = ("cpus", "memory", "local_disk")


def _least(asked: list[Candidate], notes: list[str]) -> Candidate:
    """The first alternative, with the least of each size: one figure holds for all of them."""
    first = asked[0]
    for name in SIZES:
        found = [getattr(one, name) for one in asked]
        if any(one != found[0] for one in found):
            least = None if None in found else min(found, key=_size)
            notes.append(f"resources.{name}: differs between alternatives, the least is asked for")
            first = first.model_copy(update={name: least})
    return first


def _size(value: object) -> int:
    if isinstance(value, Cpus):
        return value.count
    return (value.mib or value.per_cpu_mib) if isinstance(value, AskedMemory) else int(str(value))


def _here(task: Task, notes: list[str]) -> list[Candidate]:
    """The alternatives that EC2 can serve, in the one container that the task has."""
    kept = served(task)
    strange = sorted({str(one.place.cloud) for one in task.resources.candidates if one not in kept})
    if strange:
        notes.append(f"resources.infra: alternatives on {', '.join(strange)} are left out")
    image = image_of(task)
    alike = [one for one in kept if own_image(one) == image]
    if len(alike) < len(kept):
        runs = f"in other containers than {image}" if image else "in containers"
        why = "setup and run are in that of the first"
        notes.append(f"resources.image_id: alternatives {runs} are left out, {why}")
    return alike


def _cpus(candidate: Candidate) -> Cpus | None:
    """As asked; SkyPilot's usual eight for a task that says nothing of what it needs."""
    if candidate.cpus is not None:
        return candidate.cpus
    plain = candidate.memory is None or candidate.memory.per_cpu_mib
    return USUAL_CPUS if plain and not (candidate.accelerators or candidate.instance_type) else None


def sizes_said(task: Task) -> frozenset[str]:
    """Which of cpus and memory the task names; whatever is there will do for the others."""
    asked = task.resources.candidates
    named = {"cpus": any(one.cpus for one in asked), "memory": any(one.memory for one in asked)}
    return frozenset(name for name, said in named.items() if said)


def _memory(candidate: Candidate, cpus: Cpus | None, *, origin: Origin, notes: list[str]) -> Memory:
    """The part that jobs may have of a machine of the size asked for; else all that it has."""
    asked = candidate.memory
    if asked is None:
        plain = cpus and not (candidate.accelerators or candidate.instance_type)
        whole = cpus.count * USUAL_MIB_PER_CPU if cpus and plain else 0
    else:
        whole = asked.mib or asked.per_cpu_mib * (cpus.count if cpus else 1)
        if asked.exactly:
            notes.append(f"resources.memory: {_gib(asked.mib)} is read as {_gib(asked.mib)}+")
    return max(1, whole * origin.memory_share_percent // 100) if whole else ALL


def _gib(mib: int) -> str:
    return f"{mib / 1024:g}"


Choice = tuple[Where, Gpu | None]


def _choices(candidate: Candidate, notes: list[str]) -> Iterator[Choice]:
    """Every place and accelerator that this alternative allows."""
    place = _known_place(candidate.place, notes)
    gpus = candidate.accelerators.choices if candidate.accelerators else (None,)
    market = {True: "spot", False: "on-demand", None: None}[candidate.use_spot]
    for gpu in gpus:
        where = Where.model_validate(
            {
                "region": place.region,
                "zone": place.zone,
                "instance_type": candidate.instance_type,
                "market": market,
                "gpu": Gres(name="gpu", type=gpu.name, count=gpu.count) if gpu else None,
                "max_micro_usd_per_hour": candidate.max_hourly_cost,
            }
        )
        yield where, gpu


def _known_place(place: Place, notes: list[str]) -> Place:
    known = place.unnamed()
    if known != place:
        notes.append(
            f"resources.zone: {place.zone} is read as {known.region}; a zone's name means another "
            "place in each account, an id such as use1-az4 is taken as it is"
        )
    return known


def _gres(gpus: list[Gpu]) -> tuple[Gres, ...]:
    """By name where there is no choice; else as many as the least alternative has, of any type."""
    if not gpus:
        return ()
    (first, *others) = dict.fromkeys(gpus)
    named = None if others or first.by_memory else first.name
    return (Gres(name="gpu", type=named, count=min(gpu.count for gpu in gpus)),)


def _any_of(choices: list[Choice]) -> tuple[Where, ...]:
    """Nothing where the only choice says no more than the generic resources do."""
    alternatives = tuple(dict.fromkeys(where for where, _ in choices))
    if len(alternatives) > 1:
        return alternatives
    (where, gpu), *_ = choices
    bare = where if gpu is None or gpu.by_memory else where.model_copy(update={"gpu": None})
    return () if bare == Where() else (bare,)


# --- variables


def _kept(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT_VARIABLES or name.startswith("LC_")
    }
