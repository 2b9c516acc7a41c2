"""How the keys of a task and the options of sbatch say the same: one table for both ways."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Word = object
"""A value of a key, as YAML has it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An option and the key that says the same. Each way gives None for what has no counterpart."""

    option: str
    key: str
    """`num_nodes`, or below `resources`."""
    to_option: Callable[[Word], str | None]
    to_key: Callable[[str], Word | None]


def _plus(value: Word) -> str | None:
    """`8+` or 8; sbatch always means at least."""
    found = re.fullmatch(r"(\d+)\+?", str(value))
    return found[1] if found else None


def _memory(value: Word) -> str | None:
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?\+?", str(value), re.I)
    return f"{found[1]}{found[2].upper() or 'G'}" if found else None


def _memory_key(text: str) -> Word | None:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text, re.I)
    if found is None or found[1] == "0":
        return None
    unit = found[2].upper() or "M"
    return f"{found[1]}+" if unit == "G" else f"{found[1]}{unit}B+"


def _gpu(value: Word) -> str | None:
    if isinstance(value, Mapping) and len(value) == 1:
        (name, count), *_ = value.items()
        value = name if count is None else f"{name}:{count}"
    text = str(value)
    if not re.fullmatch(r"[A-Za-z][\w-]*(:\d+)?", text):
        return None
    return text if ":" in text else f"{text}:1"


def _gpu_key(text: str) -> Word | None:
    return text if re.fullmatch(r"[A-Za-z][\w-]*:\d+", text) else None


def _count(value: Word) -> str | None:
    return str(value) if re.fullmatch(r"\d+", str(value)) else None


def _count_key(text: str) -> Word | None:
    return int(text) if text.isdigit() else None


def _same(value: Word) -> str | None:
    return None if value is None or "\n" in str(value) else str(value)


def _gres_key(text: str) -> Word | None:
    return _gpu_key(text.removeprefix("gpu:")) if text.startswith("gpu:") else None


PAIRS = (
    Pair("job-name", "name", _same, str),
    Pair("chdir", "workdir", _same, str),
    Pair("nodes", "num_nodes", _count, _count_key),
    Pair("cpus-per-task", "resources.cpus", _plus, lambda text: f"{text}+"),
    Pair("mem", "resources.memory", _memory, _memory_key),
    Pair("gpus-per-node", "resources.accelerators", _gpu, _gpu_key),
)
ALSO = {"gres": Pair("gpus-per-node", "resources.accelerators", _gpu, _gres_key)}
"""Options that are read into a key but not written from it."""
KEPT = ("ntasks", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core")
"""With one of these the cpus of a task are not those of a node: all stay options."""
