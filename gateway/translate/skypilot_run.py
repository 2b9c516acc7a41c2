"""What runs in a cluster: files, `setup` and `run` of a task as phases of a step.

Around `setup` stands what leaves it out where it has succeeded, around `run` what drains mounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.model import octets
from broker.model.errors import BadSpec
from broker.model.ids import Digest, digest_of
from broker.model.spec import Gres, Mount, StepSpec
from gateway.translate.environment import pack
from gateway.translate.skypilot import Git, Task
from gateway.translate.skypilot_container import container_of
from gateway.translate.skypilot_files import Files

GIT_KEYS = ("GIT_TOKEN", "GIT_SSH_KEY_PATH")
"""What opens a private repository, over https and over ssh."""
LOCAL = "local"
"""The provider whose machines see this host's files."""
BASH = "/bin/bash"
SH = "/bin/sh"
"""Around scripts: it reads nothing, so that what BASH_ENV names is read by the script's bash."""
ENV = "/usr/bin/env"


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
    commit: str | None = None
    """Of the repository in which it was typed."""


@dataclass(frozen=True, slots=True)
class Run:
    """A step of a cluster, the bytes that it names, and what the user should know."""

    step: StepSpec
    blobs: Mapping[Digest, bytes]
    notes: tuple[str, ...] = ()
    brought: tuple[Mount, ...] = ()
    """What of this host has to be on its nodes, beside the workdir."""


@dataclass(frozen=True, slots=True)
class Within:
    """The cluster that a run goes to."""

    folder: str | None = None
    """Where it starts, if not in the cluster's own folder."""
    cpus: int | None = None
    """Of a node; None where it is not bought yet."""
    gpus: int = 0

    def part(self, task: Task) -> dict[str, object]:
        """What of the cluster is the run's own: GPUs, and the cpus that go with them.

        Runs without GPUs wait for nobody, as in SkyPilot, where cpus are nominal.
        """
        asked = gpus_asked(task)
        if not asked:
            return {"overlap": True}
        gpus = (Gres(name="gpu", count=asked),)
        part: dict[str, object] = {"gres": gpus, "mem_per_node_mib": 0}
        if self.cpus is None or not self.gpus:
            return part
        return {**part, "exact": True, "cpus_per_task": max(1, self.cpus * asked // self.gpus)}


def gpus_asked(task: Task) -> int:
    """Of each node; of alternatives the least."""
    counts = [
        min(gpu.count for gpu in one.accelerators.choices)
        for one in task.resources.candidates
        if one.accelerators is not None
    ]
    return min(counts) if counts else 0


def run_of(
    task: Task,
    *,
    cluster: str,
    origin: Origin,
    where: "Within | None" = None,
    with_setup: bool = True,
) -> Run:
    """What runs in a cluster: its files, `setup`, then `run`, each a script of its own for bash.

    Without setup only a repository is brought.
    """
    where = where or Within()
    files = Files(task, cluster, lambda path: absolute(path, origin))
    key = _variables(task, origin.environ).get("GIT_SSH_KEY_PATH")
    own = packed(_variables(task, origin.environ))
    once = digest_of(octets.raw(task.setup or "") + own)[:SHORT]
    scripts = (
        ("setup", files.script(mounts=with_setup), ""),
        ("setup", task.setup if with_setup else None, once),
        ("run", task.run, ""),
    )
    given = [(phase, text, once) for phase, text, once in scripts if text is not None]
    if all(phase == "setup" for phase, *_ in given) and not with_setup:
        given = []
    contents = [own, *(octets.raw(text) for _, text, _ in given)]
    blobs = {digest_of(content): content for content in contents}
    step = StepSpec.model_validate(
        {
            "name": task.name or "run",
            "commit": origin.commit,
            "phases": tuple(
                _phase(phase, text, folder=where.folder, around=_around(files, cluster, once))
                for phase, text, once in given
            ),
            "environment": digest_of(own),
            "container": container_of(task, where.folder),
            **_spread(task.num_nodes),
            **where.part(task),
        }
    )
    seen = origin.provider == LOCAL or not with_setup
    return Run(step, blobs, brought=() if seen else files.brought(key))


def _spread(nodes: int) -> dict[str, int]:
    """One task on each node; where one fails, the others have nobody to work with."""
    if nodes == 1:
        return {}
    return {"nodes": nodes, "tasks": nodes, "tasks_per_node": 1, "kill_on_bad_exit": True}


THEN = 'name=$1; shift; "$@"; code=$?; set -- "$name"; {} exit $code'
"""Runs a script, then something more, and exits as the script did."""
ONCE = """\
mark=$HOME/.skypurza/setups/$SLURM_JOB_ID-$SLURM_JOB_START_TIME.$SLURMD_NODENAME.$1
if [ -e "$mark" ]; then echo "spz: setup is as it was and is left out"; exit 0; fi
shift; "$@"; code=$?
if [ "$code" -eq 0 ]; then mkdir -p "${mark%/*}" && : > "$mark"; fi
exit "$code"
"""
"""Runs a script unless the same has succeeded on this node of this cluster."""
SHORT = 16
ALWAYS = {"PYTHONUNBUFFERED": "1"}
"""Of every run, as in SkyPilot: who follows its text sees what Python prints when it does."""
Wrapped = tuple[str, str]
"""A script around another, and its first word; two empty texts where there is none."""


def _around(files: Files, cluster: str, once: str) -> dict[str, Wrapped]:
    """What lies around each phase."""
    drain = files.drain()
    return {
        "setup": (ONCE, once) if once else ("", ""),
        "run": ("", "") if drain is None else (THEN.format(drain), cluster),
    }


def _phase(
    phase: str, text: str, *, folder: str | None, around: Mapping[str, Wrapped]
) -> dict[str, object]:
    """A script for bash, in its folder; what lays out files is in no container."""
    chdir = () if folder is None else (ENV, f"--chdir={folder}")
    wrapper, word = around[phase]
    outer = (*chdir, SH, "-c", wrapper, SH, word) if wrapper else chdir
    inside = len(outer) if wrapper or phase == "run" else None
    argv = (*outer, BASH, None)
    return {"name": phase, "script": digest_of(octets.raw(text)), "argv": argv, "inside": inside}


def absolute(path: str, origin: Origin) -> str:
    if path == "~" or path.startswith("~/"):
        path = origin.home.rstrip("/") + path[1:]
    if not path.startswith("/"):
        path = f"{origin.cwd.rstrip('/')}/{path}"
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return "/" + "/".join(parts)


def _variables(task: Task, environ: Mapping[str, str]) -> dict[str, str]:
    """What each run has, `envs`, then `secrets`; for a private repository what opens it, of the
    shell's own too.
    """
    shell = GIT_KEYS if isinstance(task.workdir, Git) else ()
    keys = {name: environ[name] for name in shell if environ.get(name)}
    given = {**ALWAYS, **keys, **(task.envs or {}), **(task.secrets or {})}
    return {name: value for name, value in given.items() if value is not None}


def packed(variables: Mapping[str, str]) -> bytes:
    """Raises BadSpec for a NUL in a value."""
    for name, value in variables.items():
        if "\0" in value:
            raise BadSpec(f"envs.{name}", "", f"envs.{name}: holds a NUL, which no variable can")
    return pack(variables)
