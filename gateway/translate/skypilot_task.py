"""A task as written in SkyPilot's YAML to a TaskSpec: a cluster, and the run to start in it.

A cluster is an allocation of a whole machine that is kept open; `setup` and `run` are a step in it.
What cannot be done is refused by name, what is left out is said in a note.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from broker.model.errors import BadSpec
from broker.model.ids import Digest
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
from gateway.translate.environment import pack
from gateway.translate.skypilot import Candidate, Git, Task
from gateway.translate.skypilot_values import CLUSTER_NAME, ZONE_NAME, Cpus, Gpu, Place

BASH = "/bin/bash"
ENV = "/usr/bin/env"
LOG_NAME = "%x-%j.%s.log"
"""File of a run's text, in the folder of logs: cluster, job, step."""
EC2 = frozenset({None, "aws"})
LOCAL = "local"
USUAL_CPUS = Cpus(8, exactly=False)
USUAL_MIB_PER_CPU = 4 * 1024
"""Of a task that asks for no GPU and no type, as in SkyPilot."""
KEPT_VARIABLES = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ")
"""Of the submitter's variables: enough for a shell. A task says itself what else it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """From where a task was sent."""

    cwd: str
    home: str
    logs: str
    """Folder for the text of runs."""
    environ: Mapping[str, str]
    provider: str = LOCAL
    memory_share_percent: int = 95
    """How much of a type's memory jobs may have: SkyPilot's figures are those of the machine."""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Translated:
    """A spec, the bytes that it names, and what the user should know."""

    spec: TaskSpec
    blobs: Mapping[Digest, bytes]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A step of a cluster, the bytes that it names, and what the user should know."""

    step: StepSpec
    blobs: Mapping[Digest, bytes]
    notes: tuple[str, ...] = ()


def translate(task: Task, origin: Origin, *, cluster: str, with_setup: bool = True) -> Translated:
    """The cluster that the task asks for, with its run in it. Raises BadSpec."""
    must_be_cluster_name(cluster)
    must_be_possible(task, origin)
    run = run_of(task, with_setup=with_setup)
    environment = _environment(_kept(origin.environ))
    asked, told = _resources(task, origin)
    spec = TaskSpec(
        name=task.name or cluster,
        resources=asked,
        steps=(run.step,) if run.step.phases else (),
        environment=_digest(environment),
        cwd=working_directory(task, origin),
        output=Output(stdout=log_pattern(origin.logs, cluster)),
        requeue=False,
        submit_line=f"spz launch -c {cluster}",
        submit_host=origin.host,
        submit_dir=origin.cwd,
        cluster=cluster,
    )
    blobs = {**run.blobs, _digest(environment): environment}
    return Translated(spec, blobs, (*_ignored(task), *told))


def run_of(task: Task, *, with_setup: bool = True, folder: str | None = None) -> Run:
    """What runs in a cluster: `setup`, then `run`, each a script of its own for bash.

    In `folder` where that is not the cluster's own.
    """
    argv = (BASH, None) if folder is None else (ENV, f"--chdir={folder}", BASH, None)
    phases, blobs = [], {}
    for phase, text in (("setup", task.setup if with_setup else None), ("run", task.run)):
        if text is not None:
            script = text.encode("utf-8", "surrogateescape")
            blobs[_digest(script)] = script
            phases.append(
                Phase.model_validate({"name": phase, "script": _digest(script), "argv": argv})
            )
    environment = _environment(_variables(task))
    blobs[_digest(environment)] = environment
    step = StepSpec(
        name=task.name or "run",
        phases=tuple(phases),
        environment=_digest(environment),
        overlap=True,
    )
    return Run(step, blobs)


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
    return _absolute(task.workdir, origin)


def _absolute(path: str, origin: Origin) -> str:
    if path == "~" or path.startswith("~/"):
        path = origin.home.rstrip("/") + path[1:]
    if not path.startswith("/"):
        path = f"{origin.cwd.rstrip('/')}/{path}"
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return "/" + "/".join(parts)


def log_pattern(folder: str, cluster: str) -> str:
    """Pattern of the files that hold what runs of the cluster say."""
    return f"{folder.rstrip('/').replace('%', '%%')}/{LOG_NAME.replace('%x', cluster)}"


# --- what is not done, and says so


def must_be_possible(task: Task, origin: Origin) -> None:
    """Raises BadSpec for the first thing that cannot be done here, or lacks a value."""
    for path, hint in _refused(task, origin):
        raise BadSpec(path, "", f"{path}: not supported yet", hint=hint)
    missing = [name for name, value in (task.envs or {}).items() if value is None]
    if missing:
        raise BadSpec(
            f"envs.{missing[0]}",
            None,
            f"envs.{missing[0]}: needs a value",
            hint=f'--env {missing[0]}=VALUE, or "" in the file for an empty one',
        )
    _must_have_secrets(task)


def _must_have_secrets(task: Task) -> None:
    stored = task.secrets if isinstance(task.secrets, list) else []
    unset = task.secrets.items() if isinstance(task.secrets, dict) else ()
    for name in [*stored, *(name for name, value in unset if value is None)]:
        plain = name.removeprefix("secrets:")
        raise BadSpec(
            f"secrets.{plain}",
            None,
            f"secrets.{plain}: needs a value, there is no store of secrets here",
            hint=f"--secret {plain}=VALUE",
        )


REFUSED: tuple[tuple[str, Callable[[Task, Origin], object], str], ...] = (
    ("num_nodes", lambda task, _: task.num_nodes > 1, "several nodes follow; ask for one"),
    ("pool", lambda task, _: task.pool, "launch the task itself"),
    ("workdir.url", lambda task, _: isinstance(task.workdir, Git), "clone it in setup"),
    (
        "workdir",
        lambda task, origin: task.workdir and origin.provider != LOCAL,
        "folders are not brought to machines elsewhere; fetch it in setup",
    ),
    ("volumes", lambda task, _: task.volumes or task.volume_mounts, "there are none to attach"),
)
"""What cannot be done here, and the way out."""
REFUSED_RESOURCES: tuple[tuple[str, Callable[[Candidate], object], str], ...] = (
    ("image_id", lambda one: _is_container(one.image_id), "run the image from setup"),
    ("accelerator_args", lambda one: one.accelerator_args, "EC2 has no TPUs"),
    ("volumes", lambda one: one.volumes, "there are none to attach"),
)


def _refused(task: Task, origin: Origin) -> Iterator[tuple[str, str]]:
    """What the task asks for that cannot be done here, with the way out."""
    yield from ((path, hint) for path, asked, hint in REFUSED if asked(task, origin))
    for target, source in (task.file_mounts or {}).items():
        if not _is_there(target, source, origin):
            yield f"file_mounts.{target}", "fetch it in setup"
    for candidate in task.resources.candidates:
        for key, wants, hint in REFUSED_RESOURCES:
            if wants(candidate):
                yield f"resources.{key}", hint


def _is_container(image: object) -> bool:
    images = image.values() if isinstance(image, dict) else (image,)
    return any(str(one).startswith("docker:") for one in images)


def _is_there(target: str, source: object, origin: Origin) -> bool:
    """Whether a mount asks for what this host has already under that name."""
    if not isinstance(source, str) or "://" in source or origin.provider != LOCAL:
        return False
    return _absolute(target, origin) == _absolute(source, origin)


NOTES: tuple[tuple[str, Callable[[Task], Any], str], ...] = (
    ("service", lambda task: task.service, "the task itself is run, once"),
    ("config", lambda task: task.config, "settings of SkyPilot's own"),
    ("experimental", lambda task: task.experimental, "settings of SkyPilot's own"),
    ("inputs, outputs", lambda task: task.inputs or task.outputs, "egress is not in the estimate"),
    ("event_callback", lambda task: task.event_callback, "it is not called"),
    ("managed_secrets", lambda task: task.managed_secrets, "there is no store of secrets"),
    ("api_server_access", lambda task: task.api_server_access, "on this host it is there anyway"),
)
LEFT_OUT: tuple[tuple[str, str], ...] = (
    ("disk_size", "machines have the disk that is there"),
    ("ephemeral_storage", "machines have the disk that is there"),
    ("disk_tier", "machines have the disk that is there"),
    ("network_tier", "machines have the network that is there"),
    ("image_id", "machines have the software that is there"),
    ("ports", "nothing is closed on this host"),
    ("labels", "there is nothing to put them on"),
    ("job_recovery", "it is for managed jobs; a cluster whose machine is lost ends NODE_FAIL"),
    ("priority", "it is for managed jobs"),
    ("priority_class", "it is for managed jobs"),
)
"""Keys of `resources` that change nothing, and why."""


def _ignored(task: Task) -> Iterator[str]:
    for name, given, why in NOTES:
        if given(task):
            yield f"{name}: ignored, {why}"
    for name, why in LEFT_OUT:
        if any(getattr(candidate, name) is not None for candidate in task.resources.candidates):
            yield f"resources.{name}: ignored, {why}"
    if any(candidate.autostop for candidate in task.resources.candidates):
        yield "resources.autostop: ignored, the cluster costs money until `spz down`"


# --- resources


def _resources(task: Task, origin: Origin) -> tuple[Resources, tuple[str, ...]]:
    notes: list[str] = []
    asked = _here(task.resources.candidates, notes)
    first = asked[0]
    for name in ("cpus", "memory", "local_disk"):
        if any(getattr(one, name) != getattr(first, name) for one in asked):
            path = f"resources.{name}"
            raise BadSpec(
                path, "", f"{path}: differs between alternatives", hint="write it once, outside"
            )
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
            min_nodes=1,
            max_nodes=1,
            min_cpus_per_node=cpus.count if cpus else None,
            cpus_exactly=cpus.count if cpus and cpus.exactly else None,
            mem_per_node_mib=_memory(first, cpus, origin=origin, notes=notes),
            tmp_mib=first.local_disk,
            gres=_gres([gpu for _, gpu in choices if gpu]),
            exclusive=True,
            any_of=_any_of(choices),
            ordered=_ordered(task),
        ),
        tuple(dict.fromkeys(notes)),
    )


def _ordered(task: Task) -> bool:
    listed = task.resources.accelerators is not None and task.resources.accelerators.ordered
    return bool(task.resources.ordered) or listed


def _here(candidates: tuple[Candidate, ...], notes: list[str]) -> list[Candidate]:
    """The alternatives that EC2 can serve. Raises BadSpec if there is none."""
    left = [one for one in candidates if one.place.cloud in EC2]
    strange = sorted({str(one.place.cloud) for one in candidates} - {"None", "aws"})
    if not left:
        raise BadSpec(
            "resources.infra",
            strange[0],
            f"resources.infra: {strange[0]} is not served, machines come from EC2",
            hint="leave it out, or write infra: aws (--infra aws)",
        )
    if strange:
        notes.append(f"resources.infra: alternatives on {', '.join(strange)} are left out")
    return left


def _cpus(candidate: Candidate) -> Cpus | None:
    """As asked; SkyPilot's usual eight for a task that says nothing of what it needs."""
    if candidate.cpus is not None:
        return candidate.cpus
    plain = candidate.memory is None or candidate.memory.per_cpu_mib
    return USUAL_CPUS if plain and not (candidate.accelerators or candidate.instance_type) else None


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
    if place.zone is None or not ZONE_NAME.fullmatch(place.zone):
        return place
    region = place.region or place.zone[:-1]
    notes.append(
        f"resources.zone: {place.zone} is read as {region}; a zone's name means another place "
        "in each account, an id such as use1-az4 is taken as it is"
    )
    return Place(place.cloud, region, None)


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


def _variables(task: Task) -> dict[str, str]:
    """`envs`, then `secrets`."""
    secrets = task.secrets if isinstance(task.secrets, dict) else {}
    given = {**(task.envs or {}), **secrets}
    return {name: value for name, value in given.items() if value is not None}


def _environment(variables: Mapping[str, str]) -> bytes:
    """Raises BadSpec for a NUL in a value."""
    for name, value in variables.items():
        if "\0" in value:
            raise BadSpec(f"envs.{name}", "", f"envs.{name}: holds a NUL, which no variable can")
    return pack(variables)


def _digest(content: bytes) -> Digest:
    return Digest(sha256(content).hexdigest())
