"""A task as a managed job: a batch job that is requeued when its machines are lost.

`--num-jobs` is an array, a pipeline a chain of dependencies; the tasks of a group are jobs of their
own that know one another's name.
"""

from dataclasses import dataclass, replace
from hashlib import sha256

from broker.model.errors import BadSpec
from broker.model.ids import Digest
from broker.model.spec import ArraySpec, Dependency, DependencyKind, Output, Phase, TaskSpec
from gateway.translate.environment import pack, unpack
from gateway.translate.skypilot import Task, TaskFile
from gateway.translate.skypilot_run import BASH, Origin
from gateway.translate.skypilot_task import Translated, translate
from gateway.translate.skypilot_values import Recovery

SUBMIT_LINE = "spz jobs launch"
"""How the line begins that is said to have submitted a managed job: they are known by it."""
LOG_NAME = "managed-%x-%A_%a.log"
LOG_OF_ONE = "managed-%x-%j.log"
RETRIES = """\
tried=0
while :; do
  "$1" "$2"; code=$?
  [ "$code" -eq 0 ] && exit 0
  case " $3 " in
    *" $code "*) ;;
    *) tried=$((tried + 1)); [ "$tried" -gt "$4" ] && exit "$code" ;;
  esac
  echo "spz: exit $code, starting again" >&2
  sleep 1
done
"""
"""Runs a script until it succeeds or has failed too often; some exit codes do not count."""


@dataclass(frozen=True, slots=True)
class Place:
    """Of a task in a pipeline or a group."""

    kind: str = "task"
    name: str = ""
    number: int = 0
    of: int = 1

    @property
    def comment(self) -> str | None:
        return f"{self.kind} {self.name} {self.number + 1}/{self.of}" if self.of > 1 else None


def managed(task: Task, origin: Origin, *, place: Place, jobs: int | None) -> Translated:
    """The job; `jobs` makes an array of so many. Raises BadSpec."""
    name = task.name or place.name or "task"
    made = translate(_named(task, name), origin, cluster="managed")
    if not made.spec.steps:
        raise BadSpec("run", "", "run: nothing to run", hint="write setup or run")
    (step,) = made.spec.steps
    recovery = next(
        (one.job_recovery for one in task.resources.candidates if one.job_recovery), None
    )
    phases = tuple(_again(phase, recovery) for phase in step.phases)
    array = ArraySpec(tasks=tuple(range(jobs))) if jobs and jobs > 1 else None
    spec = made.spec.model_copy(
        update={
            "name": name,
            "cluster": None,
            "steps": (),
            "idle_seconds": None,
            "idle_stops": False,
            "batch": step.model_copy(
                update={"name": "batch", "phases": phases, "environment": None}
            ),
            "requeue": True,
            "array": array,
            "comment": place.comment,
            "output": Output(stdout=_log(origin, array), open_mode="append"),
            "submit_line": f"{SUBMIT_LINE} -n {name}",
            "kill_on_invalid_dep": True,
        }
    )
    return _with_variables(replace(made, spec=spec), step.environment, place)


def after(spec: TaskSpec, job: int) -> TaskSpec:
    """The same once another has succeeded."""
    return spec.model_copy(update={"after": (Dependency(kind=DependencyKind.AFTEROK, job=job),)})


def places(file: TaskFile, name: str | None) -> list[Place]:
    """Of each task of a file."""
    tasks = file.tasks
    called = name or file.header.name or tasks[0].name or "task"
    return [Place(file.kind, called, number, len(tasks)) for number in range(len(tasks))]


def is_managed(spec: TaskSpec) -> bool:
    return spec.submit_line.startswith(SUBMIT_LINE)


def _named(task: Task, name: str) -> Task:
    return task.model_copy(update={"name": name})


def _log(origin: Origin, array: ArraySpec | None) -> str:
    folder = origin.logs.rstrip("/").replace("%", "%%")
    return f"{folder}/{LOG_OF_ONE if array is None else LOG_NAME}"


def _again(phase: Phase, recovery: Recovery | None) -> Phase:
    """`run` is started again as often as the task says."""
    if recovery is None or phase.name != "run" or phase.argv != (BASH, None):
        return phase
    if not (recovery.max_restarts or recovery.exit_codes):
        return phase
    codes = " ".join(map(str, recovery.exit_codes))
    argv = (BASH, "-c", RETRIES, BASH, BASH, None, codes, str(recovery.max_restarts))
    return phase.model_copy(update={"argv": argv})


def _with_variables(made: Translated, own: Digest | None, place: Place) -> Translated:
    """The task's variables lie over the submitter's, for the batch step has none of its own."""
    spec = made.spec
    found = dict[str, str]()
    for digest in (spec.environment, own):
        found |= unpack(made.blobs[digest]) if digest is not None else {}
    if place.kind == "group":
        found |= {f"{dialect}_JOBGROUP_NAME": place.name for dialect in ("SKYPILOT", "SKYPURZA")}
    content = pack(found)
    digest = Digest(sha256(content).hexdigest())
    kept = {key: value for key, value in made.blobs.items() if key not in {spec.environment, own}}
    spec = spec.model_copy(update={"environment": digest})
    return replace(made, spec=spec, blobs={**kept, digest: content})
