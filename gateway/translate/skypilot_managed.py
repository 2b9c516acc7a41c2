"""A task as a managed job: an allocation that is over when its run is, and moves when it is lost.

`--num-jobs` is an array, a pipeline a chain of dependencies, a group a heterogeneous job of
which all but the primary tasks end after those.
"""

from dataclasses import replace

from broker.model import octets
from broker.model.errors import BadSpec
from broker.model.ids import Digest, digest_of
from broker.model.spec import ArraySpec, Dependency, DependencyKind, Managed, Output, TaskSpec
from gateway.translate.skypilot import Task, TaskFile
from gateway.translate.skypilot_run import Origin
from gateway.translate.skypilot_task import Translated, translate
from gateway.translate.skypilot_values import Recovery

FAILOVER = "FAILOVER"
LOG_NAME = "managed-%x-%A_%a.%r{}.log"
LOG_OF_ONE = "managed-%x-%j.%r{}.log"
"""Each attempt has a file of its own, of several nodes each node of it."""


def managed(task: Task, origin: Origin, *, place: Managed, jobs: int | None) -> Translated:
    """The job; `jobs` makes an array of so many. Raises BadSpec."""
    name = task.name or place.name
    made = translate(task.model_copy(update={"name": name}), origin, cluster="managed")
    if not made.spec.steps:
        raise BadSpec("run", "", "run: nothing to run", hint="write setup or run")
    array = ArraySpec(tasks=tuple(range(jobs))) if jobs and jobs > 1 else None
    asked = [one.job_recovery for one in task.resources.candidates if one.job_recovery]
    script = octets.raw((task.event_callback or "").strip())
    told = digest_of(script) if script else None
    spec = made.spec.model_copy(
        update={
            "name": name,
            "cluster": None,
            "idle_seconds": None,
            "idle_stops": False,
            "idle_past_logins": False,
            "requeue": True,
            "managed": _recovering(place, asked[0] if asked else Recovery(), told),
            "array": array,
            "comment": comment(place),
            "output": Output(stdout=_log(origin, array, task.num_nodes), open_mode="append"),
            "submit_line": f"spz jobs launch -n {name}",
            "kill_on_invalid_dep": True,
        }
    )
    blobs = {**made.blobs, **({told: script} if told else {})}
    return replace(made, spec=spec, blobs=blobs)


def _recovering(place: Managed, asked: Recovery, told: Digest | None) -> Managed:
    return place.model_copy(
        update={
            "eager": asked.strategy != FAILOVER,
            "max_restarts": asked.max_restarts,
            "exit_codes": asked.exit_codes,
            "callback": told,
        }
    )


def comment(place: Managed) -> str | None:
    """For `squeue`: of several tasks which."""
    count = len(place.tasks)
    return f"{place.kind} {place.name} {place.number + 1}/{count}" if count > 1 else None


def after(spec: TaskSpec, job: int) -> TaskSpec:
    """The same once another has succeeded."""
    return spec.model_copy(update={"after": (Dependency(kind=DependencyKind.AFTEROK, job=job),)})


def joined(spec: TaskSpec, *, root: int) -> TaskSpec:
    """The same as a part of what began with another job."""
    return _placed(spec, root=root)


def ending_with(spec: TaskSpec, primary: tuple[int, ...]) -> TaskSpec:
    """The same, ending after these components of its group."""
    return _placed(spec, outlives=primary)


def _placed(spec: TaskSpec, **changes: object) -> TaskSpec:
    assert spec.managed is not None
    return spec.model_copy(update={"managed": spec.managed.model_copy(update=changes)})


def places(file: TaskFile, name: str | None, *, at: int) -> list[Managed]:
    """Of each task of a file."""
    called = name or file.header.name or file.tasks[0].name or "task"
    names = tuple(task.name or called for task in file.tasks)
    return [
        Managed(
            kind=file.kind,
            name=called,
            number=number,
            tasks=names,
            at=at,
            delay=file.header.delay(task.name or ""),
        )
        for number, task in enumerate(file.tasks)
    ]


def is_managed(spec: TaskSpec) -> bool:
    return spec.managed is not None


def _log(origin: Origin, array: ArraySpec | None, nodes: int) -> str:
    folder = origin.logs.rstrip("/").replace("%", "%%")
    name = LOG_OF_ONE if array is None else LOG_NAME
    return f"{folder}/{name.format('.%n' if nodes > 1 else '')}"
