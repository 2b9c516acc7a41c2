"""The numbers by which accounting knows TRES."""

from collections.abc import Mapping, Sequence
from typing import Any

from accounting.tres import Tres

FIXED = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""1 to 8, in every cluster."""
FIRST = 1001
"""The first number given to a GRES or licence."""


def numbers(names: Sequence[str]) -> dict[str, int]:
    """Number by name; further names in the order of the configuration."""
    others = [name for name in names if name not in FIXED]
    known = {name: place for place, name in enumerate(FIXED, start=1)}
    return known | {name: place for place, name in enumerate(others, start=FIRST)}


def split(name: str) -> tuple[str, str]:
    """Type and name: `gres/gpu:a10g` is a GRES called `gpu:a10g`."""
    kind, _, rest = name.partition("/")
    return kind, rest


def counted(name: str, count: int, known: Mapping[str, int]) -> dict[str, Any]:
    """One TRES with its count."""
    kind, rest = split(name)
    return {"type": kind, "name": rest, "id": known.get(name, 0), "count": count}


def listed(value: tuple[Tres, int | None] | None, known: Mapping[str, int]) -> list[dict[str, Any]]:
    """What a job asks for or holds, by number; what is 0 left out."""
    if value is None:
        return []
    tres, units = value
    counts = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node, "billing": units or 0}
    counts |= {f"gres/{name}": count for name, count in tres.gres}
    found = [counted(name, count, known) for name, count in counts.items() if count]
    return sorted(found, key=lambda one: one["id"])
