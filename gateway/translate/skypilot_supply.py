"""What EC2 has of what a task names: clouds, regions, instance types, accelerators."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from broker.optimize.gpus import NOT_CUDA, gpu_key, matching
from gateway.translate.skypilot import Candidate, Task
from gateway.translate.skypilot_values import Gpu

EC2 = frozenset({None, "aws"})
CLOSE = 0.85
"""How alike a name must be to be what was meant: regions and types are all a little alike."""
TPU = "tpu-"
"""How the names of TPUs begin."""


def served(task: Task) -> list[Candidate]:
    """The alternatives that are not on another cloud."""
    return [one for one in task.resources.candidates if one.place.cloud in EC2]


class Device(NamedTuple):
    """The accelerators of one instance type."""

    gpu: str
    name: str
    gpus: float
    gpu_mem_mib: int
    cuda: bool


@dataclass(frozen=True, slots=True)
class Supply:
    """What can be bought at all, at whatever price."""

    devices: Mapping[str, Device | None]
    """By instance type; None of one without accelerators."""
    regions: frozenset[str]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Supply":
        """Of the table that the package has (`broker.optimize.bundled.packaged`)."""
        types = document["types"]
        rows = zip(
            *(types[name] for name in ("name", "gpu", "gpus", "gpu_mem_mib", "words")), strict=True
        )
        return cls(
            {name: _device(*row[:2], mem_mib=row[2], words=row[3]) for name, *row in rows},
            frozenset(name for name, *_ in document["regions"]),
        )

    def having(self, gpu: Gpu) -> list[Device]:
        """What has accelerators of this name, or of this memory."""
        devices = [one for one in self.devices.values() if one is not None]
        keys = matching(gpu.name, devices)
        return [one for one in devices if one.gpu in keys]


def _device(name: str, gpus: float, *, mem_mib: int, words: str) -> Device | None:
    cuda = NOT_CUDA.isdisjoint(words.split())
    return Device(gpu_key(name), name, gpus, mem_mib, cuda) if gpus else None


@dataclass(frozen=True, slots=True)
class Absent:
    """A key of an alternative that EC2 cannot serve, and why."""

    key: str
    why: str
    hint: str = ""


def absent(one: Candidate, supply: Supply) -> Absent | None:
    """The first thing for which no machine of EC2 can be this alternative."""
    for look in LOOKS:
        if (found := look(one, supply)) is not None:
            return found
    return None


def _cloud(one: Candidate, _supply: Supply) -> Absent | None:
    cloud = one.place.cloud
    return None if cloud in EC2 else Absent("infra", f"{cloud} is not served")


def _region(one: Candidate, supply: Supply) -> Absent | None:
    region = one.place.unnamed().region
    if region is not None and region not in supply.regions:
        return Absent("infra", f"{region} is no region of AWS", _meant(region, supply.regions))
    zone = one.place.zone
    if zone is None or one.place.region is None or one.place.unnamed().zone is not None:
        return None
    if zone.startswith(one.place.region):
        return None
    return Absent("infra", f"{zone} is not in {one.place.region}")


def _type(one: Candidate, supply: Supply) -> Absent | None:
    name = one.instance_type
    if name is None or name.lower() in supply.devices:
        return None
    return Absent("instance_type", f"{name} is no type of EC2", _meant(name, supply.devices))


def _gpus(one: Candidate, supply: Supply) -> Absent | None:
    asked = one.accelerators.choices if one.accelerators else ()
    found = [why for gpu in asked if (why := _gpu(gpu, one.instance_type, supply)) is not None]
    if not asked or len(found) < len(asked):
        return None
    return found[0] if len(found) == 1 else Absent(found[0].key, "; ".join(w.why for w in found))


def _gpu(gpu: Gpu, kind: str | None, supply: Supply) -> Absent | None:
    devices = supply.having(gpu)
    if not devices:
        why = "EC2 has no TPUs" if gpu.name.lower().startswith(TPU) else f"EC2 has no {gpu.name}"
        names = {one.name for one in supply.devices.values() if one is not None}
        return Absent("accelerators", why, _meant(gpu.name, names))
    most = max(one.gpus for one in devices)
    if gpu.count > max(1, most):
        return Absent("accelerators", f"a machine has at most {most:g} {gpu.name}")
    if kind is not None and supply.devices[kind.lower()] not in devices:
        return Absent("accelerators", f"{kind} has no {gpu.name}")
    return None


def _meant(word: str, known: Iterable[str]) -> str:
    """What it may have been meant to be."""
    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), lower, n=1, cutoff=CLOSE)
    return f"did you mean {lower[found[0]]}?" if found else ""


LOOKS: Sequence[Callable[[Candidate, Supply], Absent | None]] = (_cloud, _region, _type, _gpus)
"""In this order: a region of another cloud says nothing where that cloud is named."""


def rounded_up(one: Candidate, supply: Supply) -> Iterator[tuple[Gpu, int]]:
    """Accelerators that no type has so many of, and the next number that one has."""
    for gpu in one.accelerators.choices if one.accelerators else ():
        counts = [int(max(1, device.gpus)) for device in supply.having(gpu)]
        enough = [count for count in counts if count >= gpu.count]
        if enough and gpu.count not in counts:
            yield gpu, min(enough)


def missing_gpus(one: Candidate, supply: Supply) -> Iterator[tuple[Gpu, str]]:
    """Accelerators of a set or list that EC2 does not have, where it has another of them."""
    for gpu in one.accelerators.choices if one.accelerators else ():
        if (why := _gpu(gpu, one.instance_type, supply)) is not None:
            yield gpu, why.why
