"""How busy this host is, which declared nodes and local machines are."""

import os
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gateway.query.context import Context

MEMORY = Path("/proc/meminfo")
KIB_PER_MIB = 1024


def host_load() -> float | None:
    """The load of the last minute."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def host_free(path: Path = MEMORY) -> int | None:
    """MiB that nothing uses, as slurmd counts it (MemFree)."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    words = next((line.split() for line in lines if line.startswith("MemFree:")), [])
    return int(words[1]) // KIB_PER_MIB if len(words) > 1 else None


def host_name() -> str:
    """This machine's short name."""
    return platform.node().partition(".")[0] or "localhost"


def measured(
    ctx: Context,
    load: Callable[[], float | None] = host_load,
    free: Callable[[], int | None] = host_free,
) -> Context:
    """The context that knows how busy this host is."""
    return replace(ctx, load=load(), free_mib=free(), host=host_name())
