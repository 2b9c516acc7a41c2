"""A task file in one line: what would be launched, what it still needs, what would be refused."""

from collections.abc import Iterator

from gateway.translate.skypilot import Candidate, Git, Pool, Task, TaskFile
from gateway.translate.skypilot_notes import missing, refusals
from gateway.translate.skypilot_values import Cpus, Gpus, Memory, Place


def summary(file: TaskFile) -> str:
    """What `spz task check` says of a file that can be read."""
    if file.kind == "task":
        (task,) = file.tasks
        return (f"{task.name}: " if task.name else "") + of_task(task)
    told = [f"{task.name or number} ({of_task(task)})" for number, task in enumerate(file.tasks, 1)]
    name = f" {file.header.name}" if file.header.name else ""
    joint = " with " if file.kind == "group" else " then "
    return f"{file.kind}{name} of {len(told)} tasks: {joint.join(told)}"


def of_task(task: Task) -> str:
    """One task, without its name."""
    return "; ".join(filter(None, [_what(task), _runs(task), _files(task), *_open(task)]))


def _what(task: Task) -> str:
    nodes = f"{task.num_nodes} nodes" if task.num_nodes > 1 else "1 node"
    if task.pool is not None:
        nodes = f"pool of {workers(task.pool)} workers"
    candidates = task.resources.candidates
    texts = list(dict.fromkeys(_candidate(one) for one in candidates))
    way = " else " if task.resources.ordered else " or "
    return f"{nodes} of {way.join(texts)}"


def workers(pool: Pool) -> str:
    """How many, `2` or `1-4`."""
    if pool.workers is not None:
        return str(pool.workers)
    least, most = pool.min_workers or 0, pool.max_workers
    return f"{least}-{most}" if most is not None else f"{least or 1}"


def _candidate(one: Candidate) -> str:
    market = {True: "spot", False: "on demand", None: ""}[one.use_spot]
    cost = "" if one.max_hourly_cost is None else f"at most ${one.max_hourly_cost / 1e6:g} an hour"
    size = [one.instance_type, _gpus(one.accelerators), _cpus(one), _memory(one.memory)]
    return ", ".join(filter(None, [*size, market, _place(one.place), cost]))


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
    return f"{memory.mib / 1024:g}{'' if memory.exactly else '+'} GB"


def _place(place: Place) -> str:
    parts = [place.cloud, place.region, place.zone]
    return "/".join(part or "*" for part in parts).rstrip("/*")


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
    refused = [str(one) for one in refusals(task) if one.path != "pool"]
    if refused:
        yield f"refused at launch: {', '.join(refused)}"
