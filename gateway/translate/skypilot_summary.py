"""A task file in one line: what would be launched, what it still needs, what would be refused."""

from collections.abc import Iterator, Sequence

from broker.model.errors import BadSpec
from gateway.config.problems import shown
from gateway.translate.skypilot import Candidate, Git, Task, TaskFile
from gateway.translate.skypilot_build import build_of
from gateway.translate.skypilot_container import image_of
from gateway.translate.skypilot_notes import missing, refusals
from gateway.translate.skypilot_supply import Absent, Supply, absent, missing_gpus, rounded_up
from gateway.translate.skypilot_values import Autostop, Cpus, Gpus, Memory, Place, Recovery

Left = tuple[Candidate, Absent]


def summary(file: TaskFile, supply: Supply) -> str:
    """What `spz task check` says of a file that can be read."""
    if file.kind == "task":
        (task,) = file.tasks
        return (f"{shown(task.name)}: " if task.name else "") + of_task(task, supply)
    told = [
        f"{shown(task.name or number)} ({of_task(task, supply)})"
        for number, task in enumerate(file.tasks, 1)
    ]
    name = f" {file.header.name}" if file.header.name else ""
    joint = " with " if file.kind == "group" else " then "
    return f"{file.kind}{name} of {len(told)} tasks: {joint.join(told)}"


def of_task(task: Task, supply: Supply) -> str:
    """One task, without its name."""
    looked = [(one, absent(one, supply)) for one in task.resources.candidates]
    kept = [one for one, why in looked if why is None]
    left = [(one, why) for one, why in looked if why is not None]
    asked = kept or task.resources.candidates
    parts = [_what(task, asked), *_rounded(asked, supply), *_machine(task, asked)]
    parts += _life(task, asked)
    parts += [_runs(task), _files(task), *_left(kept, left, supply), *_open(task)]
    return "; ".join(filter(None, [*parts, *_refused(task, kept, left)]))


def _what(task: Task, candidates: Sequence[Candidate]) -> str:
    nodes = f"{task.num_nodes} nodes" if task.num_nodes > 1 else "1 node"
    if task.pool is not None:
        nodes = f"pool of {task.pool.kept} workers"
    texts = list(dict.fromkeys(_candidate(one) for one in candidates))
    way = " else " if task.resources.ordered else " or "
    return f"{nodes} of {way.join(texts)}"


def _candidate(one: Candidate) -> str:
    supply = {True: "spot", False: "on demand", None: ""}[one.use_spot]
    cost = "" if one.max_hourly_cost is None else f"at most ${one.max_hourly_cost / 1e6:g} an hour"
    size = [one.instance_type, _gpus(one.accelerators), _cpus(one), _memory(one.memory)]
    return ", ".join(filter(None, [*size, supply, _place(one.place), cost]))


def _gpus(gpus: Gpus | None) -> str:
    if gpus is None:
        return ""
    return "/".join(f"{gpu.name}:{gpu.count}" for gpu in gpus.choices)


def _cpus(one: Candidate) -> str:
    asked = one.cpus
    if asked is None:
        plain = one.accelerators is None and one.instance_type is None and one.memory is None
        asked = Cpus(8, exactly=False) if plain else None
    return "" if asked is None else f"{asked.count}{'' if asked.exactly else '+'} vCPUs"


def _memory(memory: Memory | None) -> str:
    if memory is None:
        return ""
    if memory.per_cpu_mib:
        return f"{memory.per_cpu_mib / 1024:g} GB a vCPU"
    return f"{round(memory.mib / 1024, 2):g}{'' if memory.exactly else '+'} GB"


def _place(place: Place) -> str:
    parts = [place.cloud, place.region, place.zone]
    return "/".join(part or "*" for part in parts).rstrip("/*")


def _rounded(candidates: Sequence[Candidate], supply: Supply) -> Iterator[str]:
    found = [pair for one in candidates for pair in rounded_up(one, supply)]
    for gpu, count in dict.fromkeys(found):
        yield f"{gpu.name}:{gpu.count} comes as {gpu.name}:{count}"


def _machine(task: Task, candidates: Sequence[Candidate]) -> Iterator[str]:
    """What it is made of: the container, the disk, what is open."""
    if (image := image_of(task)) is not None:
        yield f"in {shown(image)}"
    first = candidates[0]
    if first.disk_size or first.disk_tier:
        size = f"{first.disk_size} GB" if first.disk_size else ""
        yield " ".join(filter(None, ["disk", size, first.disk_tier]))
    local = [one.local_disk for one in candidates if one.local_disk]
    if local:
        yield f"local disk {min(local) // 1024} GB"
    if first.ports:
        yield f"open {', '.join(first.ports)}"


def _life(task: Task, candidates: Sequence[Candidate]) -> Iterator[str]:
    """How it ends, and goes on."""
    stops = [_autostop(one.autostop) for one in candidates if one.autostop]
    recoveries = [_recovery(one.job_recovery) for one in candidates if one.job_recovery]
    yield from dict.fromkeys([*stops, *recoveries])
    if task.service is not None:
        yield "a service, of which the task itself is run once"


def _autostop(asked: Autostop) -> str:
    if asked.wait_for == "none":
        return f"goes {asked.idle_seconds / 60:g} min after its start"
    what = "goes" if asked.down else "stops"
    past = ", logins or not" if asked.wait_for == "jobs" else ""
    return f"{what} after {asked.idle_seconds / 60:g} min idle{past}"


def _recovery(asked: Recovery) -> str:
    codes = ", ".join(map(str, asked.exit_codes))
    parts = (
        asked.strategy or "",
        f"{asked.max_restarts} restarts on errors" if asked.max_restarts else "",
        f"on exit codes {codes}" if codes else "",
    )
    return f"recovers {', '.join(filter(None, parts)) or 'as usual'}"


def _left(kept: Sequence[Candidate], left: Sequence[Left], supply: Supply) -> Iterator[str]:
    """Alternatives without which it goes on, and why."""
    told = [f"{_candidate(one)} ({why.why})" for one, why in left] if kept else []
    told += [
        f"{gpu.name}:{gpu.count} ({why})" for one in kept for gpu, why in missing_gpus(one, supply)
    ]
    if told:
        yield f"left out: {', '.join(dict.fromkeys(told))}"


def _refused(task: Task, kept: Sequence[Candidate], left: Sequence[Left]) -> Iterator[str]:
    found = {one.path: str(one) for one in refusals(task) if one.path != "pool"}
    for _, why in () if kept else left:
        hint = f" ({why.hint})" if why.hint else ""
        found.setdefault(f"resources.{why.key}", f"resources.{why.key}: {why.why}{hint}")
    try:
        if kept:
            build_of(kept, [])
    except BadSpec as error:
        found.setdefault(error.path, error.message)
    if found:
        yield f"refused at launch: {', '.join(found.values())}"


def _runs(task: Task) -> str:
    given = [name for name in ("setup", "run") if getattr(task, name)]
    if isinstance(task.workdir, Git):
        given.insert(0, f"clone of {task.workdir.url}")
    return " and ".join(given) or "nothing to run"


def _files(task: Task) -> str:
    counts = (("mount", task.file_mounts), ("volume", task.volumes))
    told = [f"{len(one)} {what}{'s' if len(one) > 1 else ''}" for what, one in counts if one]
    return " and ".join(told)


def _open(task: Task) -> Iterator[str]:
    needs = [f"{option} {name}" for option, name in missing(task)]
    if needs:
        yield f"needs {', '.join(needs)}"
